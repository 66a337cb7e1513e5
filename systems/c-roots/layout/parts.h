/*
 * The parts of the image, for the assembler and for C.
 */
#ifndef PARTS_H
#define PARTS_H

#define PATTERN_STEP 0x9e3779b1

#define HIGHEST_FIRST 0x48494748
#define HIGHEST_WORDS 1500
#define UNALIGNED_FIRST 0x554e414c
#define UNALIGNED_WORDS 3000
#define SMALL_FIRST 0x534d414c
#define SMALL_WORDS 1
#define ALIGNED_FIRST 0x414c4947
#define ALIGNED_WORDS 2000
#define TAIL_FIRST 0x5441494c
#define TAIL_WORDS 1111
#define TAIL_ZERO_BYTES 70001
#define ALONE_BYTES 12345

#ifndef __ASSEMBLER__

#include <stdint.h>

extern const uint32_t part_highest[HIGHEST_WORDS], part_unaligned[UNALIGNED_WORDS],
    part_small[SMALL_WORDS], part_aligned[ALIGNED_WORDS], part_tail[TAIL_WORDS];
extern const uint8_t part_tail_zeroes[TAIL_ZERO_BYTES], part_alone[ALONE_BYTES];

#endif
#endif
