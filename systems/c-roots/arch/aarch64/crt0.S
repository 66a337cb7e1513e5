/*
 * The program's first instructions. The kernel gives no stack, no arguments and no thread-local
 * storage: X0 is the address of the boot information, everything else is zero.
 */
    .text
    .globl _start
    .type _start, %function
_start:
    /* A register is needed before any can be stored: the thread pointer, which is not looked at, keeps that one. */
    msr tpidr_el0, x1
    adrp x1, entry_state
    add x1, x1, :lo12:entry_state
    str x0, [x1]
    stp x2, x3, [x1, #16]
    stp x4, x5, [x1, #32]
    stp x6, x7, [x1, #48]
    stp x8, x9, [x1, #64]
    stp x10, x11, [x1, #80]
    stp x12, x13, [x1, #96]
    stp x14, x15, [x1, #112]
    stp x16, x17, [x1, #128]
    stp x18, x19, [x1, #144]
    stp x20, x21, [x1, #160]
    stp x22, x23, [x1, #176]
    stp x24, x25, [x1, #192]
    stp x26, x27, [x1, #208]
    stp x28, x29, [x1, #224]
    str x30, [x1, #240]
    mrs x2, tpidr_el0
    str x2, [x1, #8]
    mov x2, sp
    str x2, [x1, #248]
    mrs x2, nzcv
    str x2, [x1, #256]
    mrs x2, fpcr
    str x2, [x1, #264]
    mrs x2, fpsr
    str x2, [x1, #272]
    mrs x2, tpidrro_el0
    str x2, [x1, #288]

    adrp x2, first_stack_top
    add x2, x2, :lo12:first_stack_top
    mov sp, x2
    mov x29, xzr
    mov x30, xzr
    bl start
    udf #0
    .size _start, . - _start

    .bss
    .balign 16
    .skip 32768
first_stack_top:

    .section .note.GNU-stack, "", %progbits
