/*
 * Thread-local storage (ABI of aarch64, variant I): a thread's block begins at its thread pointer with two words that are
 * the runtime's, and its variables follow where their alignment allows.
 */
#include "root.h"

#include "memory.h"

#define HEAD_BYTES (2 * sizeof(word_t))

word_t tls_make(void *area)
{
    const struct program_header *header = program_header_of(PT_TLS);
    memset(area, 0, TLS_BYTES);
    if (header != NULL) {
        word_t align = header->align > HEAD_BYTES ? header->align : HEAD_BYTES;
        if (align > TLS_ALIGN || align + header->memory_bytes > TLS_BYTES)
            __builtin_trap();
        memcpy((uint8_t *)area + align, (const void *)header->vaddr, header->file_bytes);
    }
    return (word_t)area;
}

bool tls_holds(word_t base, word_t address)
{
    return address >= base + HEAD_BYTES && address - base < TLS_BYTES;
}
