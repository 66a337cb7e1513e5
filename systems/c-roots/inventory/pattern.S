/*
 * The pattern as data of the program. It ends in the middle of a page.
 */
    .section .rodata
    .balign 4096
    .skip 8
    .globl pattern
pattern:
    .incbin "pattern.bin"

    .section .note.GNU-stack, "", @progbits
