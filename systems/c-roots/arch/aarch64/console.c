/*
 * The first serial port of QEMU's machine `virt`, a PL011 that the kernel or firmware has set up, by a frame of its
 * registers; and the end of the machine by semihosting, which an emulator can offer to programs. Both work on every kernel,
 * unlike the debug kernel's console.
 */
#include "devices.h"
#include "root.h"

volatile uint32_t *const serial_port = (volatile uint32_t *)SERIAL_ADDRESS;

void console_open(void)
{
    cptr_t page = device_page(SERIAL_PADDR);
    if (page == 0)
        leave(2);
    map_device(page, SERIAL_ADDRESS);
}

void console_put(char c)
{
    while ((serial_port[PL011_FLAGS / 4] & PL011_FULL) != 0) {
    }
    serial_port[PL011_DATA / 4] = (unsigned char)c;
}

_Noreturn void leave(unsigned status)
{
    enum { EXIT = 0x18, APPLICATION_ENDED = 0x20026 };
    word_t block[] = {APPLICATION_ENDED, status};
    register word_t operation __asm__("x0") = EXIT;
    register word_t *argument __asm__("x1") = block;
    __asm__ volatile("hlt #0xf000" : "+r"(operation) : "r"(argument) : "memory");
    for (;;)
        tcb_suspend(INIT_TCB);
}
