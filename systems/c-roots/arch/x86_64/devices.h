/*
 * Invocations of what only x86_64 has.
 */
#ifndef DEVICES_H
#define DEVICES_H

#include "invoke.h"

static inline struct result io_port_issue(word_t first, word_t last, cptr_t slot)
{
    return invoke(INIT_IO_PORT_CONTROL, IO_PORT_CONTROL_ISSUE,
                  WORDS(first, last, slot, CSPACE_DEPTH), WORDS(INIT_CNODE));
}

static inline struct result io_port_in8(cptr_t ports, word_t port)
{
    return invoke(ports, IO_PORT_IN8, WORDS(port), NO_WORDS);
}

static inline struct result io_port_out8(cptr_t ports, word_t port, word_t value)
{
    return invoke(ports, IO_PORT_OUT8, WORDS(port, value), NO_WORDS);
}

/* An edge-triggered, active-high pin. */
static inline struct result irq_control_get_ioapic(cptr_t slot, word_t ioapic, word_t pin,
                                                   word_t vector)
{
    return invoke(INIT_IRQ_CONTROL, IRQ_CONTROL_GET_IOAPIC,
                  WORDS(slot, CSPACE_DEPTH, ioapic, pin, 0, 0, vector), WORDS(INIT_CNODE));
}

#endif
