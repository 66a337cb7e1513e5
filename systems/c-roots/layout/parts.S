/*
 * Data whose words are known, in sections that the linker script puts into segments of their own.
 * Word i of a part that begins with `first` is first + i * PATTERN_STEP.
 */
#include "parts.h"

    .macro part name, section, first, words
    .section \section, "aw", @progbits
    .globl \name
\name:
    .set value, \first
    .rept \words
    .long value
    .set value, (value + PATTERN_STEP) & 0xffffffff
    .endr
    .endm

    part part_highest, .part.highest, HIGHEST_FIRST, HIGHEST_WORDS
    part part_unaligned, .part.unaligned, UNALIGNED_FIRST, UNALIGNED_WORDS
    part part_small, .part.small, SMALL_FIRST, SMALL_WORDS
    part part_aligned, .part.aligned, ALIGNED_FIRST, ALIGNED_WORDS
    part part_tail, .part.tail, TAIL_FIRST, TAIL_WORDS

    /* Behind the last word of `part_tail`, in the middle of a page: many pages of zeroes. */
    .section .zero.tail, "aw", @nobits
    .globl part_tail_zeroes
part_tail_zeroes:
    .skip TAIL_ZERO_BYTES

    /* A segment without bytes in the file. */
    .section .zero.alone, "aw", @nobits
    .globl part_alone
part_alone:
    .skip ALONE_BYTES

    .section .note.GNU-stack, "", @progbits
