/* What client and servers have in common. */
#ifndef ROLES_H
#define ROLES_H

#include <sandglass.h>

/* Requests. Their labels are apart from the kernel's errors. */
enum {
    NEXT = 0x51,  /* answer: the badge, and the word plus one */
    SUM = 0x52,   /* answer: the sum of all words */
    BADGE = 0x53, /* answer: whether a capability came as a badge, and which */
    SPIN = 0x54,  /* never answered */
    SLOTS = 0x55, /* answer: whether the tests of slots passed, and a capability came */
    GIFT = 0x56,  /* answer: a capability to signal */
    LATER = 0x57, /* answered at the next tick */
};

/* Labels of answers. */
enum { DONE = 0x61, ROLLED_BACK = 0x62 };

/* Flags of `news`. */
enum { FROM_RAW = 2, FROM_SPENDER = 4, FROM_TASK = 8, FROM_RELEASED = 16, FROM_SERVER = 32 };

/* Jobs that `task` and `released` do. */
enum { JOBS = 3 };

int client(void);
SG_NORETURN void server(void);
SG_NORETURN void pool(void);
SG_NORETURN void spawner(void);
SG_NORETURN void device(void);
int raw(void);

#endif
