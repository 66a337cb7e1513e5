/*
 * What the layout's tests know of x86_64.
 */
#include "own.h"
#include "root.h"

#define RFLAGS_AT_START 0x202
#define MXCSR_AT_START 0x1f80
#define X87_CONTROL_AT_START 0x37f

void registers_at_start(void)
{
    const struct entry_state *at = &entry_state;
    EXPECT_EQ(at->rdi, boot_info);
    EXPECT_EQ(at->rsp, 0);
    EXPECT_EQ(at->rflags, RFLAGS_AT_START);
    EXPECT_EQ(at->rax | at->rbx | at->rcx | at->rdx | at->rsi | at->rbp, 0);
    EXPECT_EQ(at->r8 | at->r9 | at->r10 | at->r11, 0);
    EXPECT_EQ(at->r12 | at->r13 | at->r14 | at->r15, 0);
    EXPECT_EQ(at->mxcsr, MXCSR_AT_START);
    EXPECT_EQ(at->x87_control, X87_CONTROL_AT_START);
}

/* mov eax, 42; ret; nop */
const uint8_t answer_42[ANSWER_42_BYTES] = {0xb8, 42, 0, 0, 0, 0xc3, 0x90, 0x90};

/* What is not an address is ignored. */
void odd_thread_pointers(void)
{
    set_thread_pointer(0x800000000000);
}
