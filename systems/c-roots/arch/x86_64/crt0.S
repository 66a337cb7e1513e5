/*
 * The program's first instructions. The kernel gives no stack, no arguments and no thread-local
 * storage: RDI is the address of the boot information, everything else is zero.
 */
    .text
    .globl _start
    .type _start, @function
_start:
    /* Neither of these changes the flags. */
    movq %rax, entry_state + 0(%rip)
    movq %rbx, entry_state + 8(%rip)
    movq %rcx, entry_state + 16(%rip)
    movq %rdx, entry_state + 24(%rip)
    movq %rsi, entry_state + 32(%rip)
    movq %rdi, entry_state + 40(%rip)
    movq %rbp, entry_state + 48(%rip)
    movq %rsp, entry_state + 56(%rip)
    movq %r8, entry_state + 64(%rip)
    movq %r9, entry_state + 72(%rip)
    movq %r10, entry_state + 80(%rip)
    movq %r11, entry_state + 88(%rip)
    movq %r12, entry_state + 96(%rip)
    movq %r13, entry_state + 104(%rip)
    movq %r14, entry_state + 112(%rip)
    movq %r15, entry_state + 120(%rip)

    leaq first_stack_top(%rip), %rsp
    pushfq
    popq entry_state + 128(%rip)
    stmxcsr entry_state + 136(%rip)
    fnstcw entry_state + 140(%rip)

    xorl %ebp, %ebp
    call start
    ud2
    .size _start, . - _start

    .bss
    .balign 16
    .skip 32768
first_stack_top:

    .section .note.GNU-stack, "", @progbits
