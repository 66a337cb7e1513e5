#include "memory.h"

#include <stdbool.h>
#include <stdint.h>

#include "root.h"

void *memmove(void *to, const void *from, size_t bytes)
{
    if ((uintptr_t)to - (uintptr_t)from >= bytes)
        return memcpy(to, from, bytes);
    for (volatile uint8_t *byte = (uint8_t *)to; bytes > 0; bytes--)
        byte[bytes - 1] = ((const uint8_t *)from)[bytes - 1];
    return to;
}

int memcmp(const void *a, const void *b, size_t bytes)
{
    const uint8_t *left = a, *right = b;
    for (size_t i = 0; i < bytes; i++) {
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    }
    return 0;
}

bool all_zero(const void *start, size_t bytes)
{
    const uint8_t *byte = start;
    while (bytes > 0 && (uintptr_t)byte % sizeof(uint64_t) != 0) {
        if (*byte != 0)
            return false;
        byte++, bytes--;
    }
    for (; bytes >= sizeof(uint64_t); byte += sizeof(uint64_t), bytes -= sizeof(uint64_t)) {
        if (*(const uint64_t *)byte != 0)
            return false;
    }
    for (; bytes > 0; byte++, bytes--) {
        if (*byte != 0)
            return false;
    }
    return true;
}
