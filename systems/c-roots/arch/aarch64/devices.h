/*
 * Devices of QEMU's machine `virt`.
 */
#ifndef DEVICES_H
#define DEVICES_H

#include "invoke.h"

/* The serial port: where it is, where this program has it, its interrupt, and its registers. */
#define SERIAL_PADDR 0x9000000ul
#define SERIAL_ADDRESS 0x700000000000ul
#define SERIAL_IRQ 33
enum {
    PL011_DATA = 0x00,
    PL011_FLAGS = 0x18,
    PL011_FULL = 1 << 5,
    PL011_MASK = 0x38,
    PL011_CLEAR = 0x44,
    PL011_TRANSMITTED = 1 << 5,
};
extern volatile uint32_t *const serial_port;

/* The handler of an interrupt, by its number in the controller. */
static inline struct result irq_control_get(cptr_t slot, word_t irq)
{
    return invoke(INIT_IRQ_CONTROL, IRQ_CONTROL_GET, WORDS(irq, slot, CSPACE_DEPTH),
                  WORDS(INIT_CNODE));
}

#endif
