/*
 * The functions that the compiler may call even in freestanding programs.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);

#endif
