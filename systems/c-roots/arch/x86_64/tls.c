/*
 * Thread-local storage (x86-64 psABI, variant II): a thread's block ends at its thread pointer,
 * where a word holds the thread pointer itself.
 */
#include "root.h"

#include "memory.h"

word_t tls_make(void *area)
{
    const struct program_header *header = program_header_of(PT_TLS);
    word_t thread_pointer = (word_t)area + TLS_BYTES / 2;
    if (header != NULL) {
        word_t align = header->align > 1 ? header->align : 1;
        word_t bytes = (header->memory_bytes + align - 1) & -align;
        if (bytes > TLS_BYTES / 2 || align > TLS_BYTES / 2)
            __builtin_trap();
        memset(area, 0, TLS_BYTES);
        memcpy((void *)(thread_pointer - bytes), (const void *)header->vaddr, header->file_bytes);
    }
    *(word_t *)thread_pointer = thread_pointer;
    return thread_pointer;
}

bool tls_holds(word_t base, word_t address)
{
    return address < base && base - address < TLS_BYTES;
}
