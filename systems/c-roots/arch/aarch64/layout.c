/*
 * What the layout's tests know of aarch64.
 */
#include "own.h"
#include "root.h"

void registers_at_start(void)
{
    const struct entry_state *at = &entry_state;
    EXPECT_EQ(at->x[0], boot_info);
    for (unsigned i = 1; i < 31; i++)
        EXPECT_EQ(at->x[i], 0);
    EXPECT_EQ(at->sp, 0);
    EXPECT_EQ(at->nzcv | at->fpcr | at->fpsr | at->read_only_pointer, 0);
}

/* mov w0, #42; ret */
const uint8_t answer_42[ANSWER_42_BYTES] = {0x40, 0x05, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6};

/* There are none: any word is a thread pointer, and programs set it themselves. It stays over system calls. */
void odd_thread_pointers(void)
{
    word_t own, after;
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(own));
    set_thread_pointer(0x800000000000);
    sys_yield();
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(after));
    set_thread_pointer(own);
    EXPECT_EQ(after, 0x800000000000);
}
