#include "memory.h"

#include <stdint.h>

/* By loops that the compiler must not take for calls of what they are. */
void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    uint8_t *byte = to;
    const uint8_t *source = from;
    for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t)) {
        uint64_t word;
        /* Memory of programs may be accessed at any address. */
        __asm__ volatile("ldr %0, [%1], #8" : "=r"(word), "+r"(source) : : "memory");
        __asm__ volatile("str %1, [%0], #8" : "+r"(byte) : "r"(word) : "memory");
    }
    for (; bytes > 0; bytes--)
        *(volatile uint8_t *)byte++ = *source++;
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    uint8_t *byte = to;
    uint64_t word = (uint8_t)value * 0x0101010101010101ul;
    for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t))
        __asm__ volatile("str %1, [%0], #8" : "+r"(byte) : "r"(word) : "memory");
    for (; bytes > 0; bytes--)
        *(volatile uint8_t *)byte++ = (uint8_t)value;
    return to;
}
