/* What the filter is asked, and answers.
 *
 * A request is a ticket, the first sample, the value before it, and the sample to stop before. The answer is FILTER_DONE or
 * FILTER_PARTIAL, the ticket, the sample that comes next, and the value there. */
#ifndef FILTER_PROTOCOL_H
#define FILTER_PROTOCOL_H

#include <sandglass.h>

enum { FILTER_DONE = 0x51, FILTER_PARTIAL = 0x52 }; /* apart from the kernel's errors */

/* How far a request is. */
struct progress {
    uint64_t next; /* sample */
    int64_t value; /* 16 bits behind the point */
};

static inline sg_message filter_request(uint64_t ticket, struct progress from, uint64_t end)
{
    return (sg_message){.length = 4, .words = {ticket, from.next, (uint64_t)from.value, end}};
}

#endif
