#include "memory.h"

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    void *start = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
    return start;
}

void *memset(void *to, int value, size_t bytes)
{
    void *start = to;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(value) : "memory");
    return start;
}
