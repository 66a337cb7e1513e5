/*
 * The 30 MiB of numbers in the image: what the generator writes, the program computes again.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <stdint.h>

#define PATTERN_BYTES (30ul << 20)
#define PATTERN_WORDS (PATTERN_BYTES / sizeof(uint64_t))
#define PATTERN_FIRST 0x73616e64676c6173ul

/* The number after `word` (Marsaglia's xorshift, which repeats itself after 2^64 - 1 words). */
static inline uint64_t pattern_next(uint64_t word)
{
    word ^= word << 13;
    word ^= word >> 7;
    word ^= word << 17;
    return word;
}

#endif
