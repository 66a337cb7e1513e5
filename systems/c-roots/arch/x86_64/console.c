/*
 * The first serial port, which firmware has set up, by capabilities to its I/O ports; and the
 * emulator's exit device. Both work on every kernel, unlike the debug kernel's console.
 */
#include "devices.h"
#include "root.h"

enum {
    COM1 = 0x3f8,
    COM1_LAST = 0x3ff,
    LINE_CONTROL = 3,
    LINE_STATUS = 5,
    TRANSMITTER_EMPTY = 0x20,
    EIGHT_BITS_NO_PARITY = 3,
    DEBUG_EXIT = 0xf4,
};

static cptr_t com1, debug_exit;

void console_open(void)
{
    com1 = slot_new();
    must(io_port_issue(COM1, COM1_LAST, com1), "the serial port");
    must(io_port_out8(com1, COM1 + LINE_CONTROL, EIGHT_BITS_NO_PARITY), "its line");
    debug_exit = slot_new();
    must(io_port_issue(DEBUG_EXIT, DEBUG_EXIT, debug_exit), "the exit device");
}

void console_put(char c)
{
    while ((io_port_in8(com1, COM1 + LINE_STATUS).mr[0] & TRANSMITTER_EMPTY) == 0) {
    }
    io_port_out8(com1, COM1, (unsigned char)c);
}

_Noreturn void leave(unsigned status)
{
    io_port_out8(debug_exit, DEBUG_EXIT, status);
    for (;;)
        tcb_suspend(INIT_TCB);
}
