/*
 * From the first instruction to the program: what a C library's start does elsewhere.
 */
#include "root.h"

struct boot_info *boot_info;
struct entry_state entry_state;
word_t entry_dirty_ipc_words;
__thread struct ipc_buffer *ipc_buffer;

static uint8_t first_tls[TLS_BYTES] __attribute__((aligned(TLS_ALIGN)));

void start(struct boot_info *info);

/*
 * Applies the relocations of a position-independent program. The kernel loads every program to the
 * addresses it was linked for, so each comes down to storing its addend.
 */
static void relocate(void)
{
    const struct program_header *header = program_header_of(PT_DYNAMIC);
    if (header == NULL)
        return;
    word_t table = 0, bytes = 0;
    for (const struct dynamic *entry = (const struct dynamic *)header->vaddr; entry->tag != DT_NULL;
         entry++) {
        if (entry->tag == DT_RELA)
            table = entry->value;
        if (entry->tag == DT_RELASZ)
            bytes = entry->value;
    }
    for (word_t at = table; at < table + bytes; at += sizeof(struct relocation)) {
        const struct relocation *relocation = (const struct relocation *)at;
        if ((uint32_t)relocation->info == R_RELATIVE)
            *(int64_t *)relocation->offset = relocation->addend;
    }
}

static word_t dirty_words(const void *page)
{
    word_t count = 0;
    for (size_t i = 0; i < PAGE_BYTES / sizeof(word_t); i++)
        count += ((const word_t *)page)[i] != 0;
    return count;
}

struct range image_range(void)
{
    struct range image = {UINT64_MAX, 0};
    for (unsigned i = 0; i < __ehdr_start.program_header_count; i++) {
        const struct program_header *header = program_header(i);
        if (header->memory_bytes == 0)
            continue;
        word_t end = header->vaddr + header->memory_bytes;
        if (header->vaddr < image.start)
            image.start = header->vaddr;
        if (end > image.end)
            image.end = end;
    }
    image.end = (image.end + PAGE_BYTES - 1) & -PAGE_BYTES;
    return image;
}

cptr_t image_frame(const void *address)
{
    word_t page = ((word_t)address - image_range().start) / PAGE_BYTES;
    return boot_info->user_image_frames.start + page;
}

/* A function of its own: compilers keep the thread pointer within one. */
static __attribute__((noinline)) void run(void)
{
    ipc_buffer = boot_info->ipc_buffer;
    console_open();
    root_main();
    leave(tests_close());
}

void start(struct boot_info *info)
{
    relocate();
    boot_info = info;
    entry_dirty_ipc_words = dirty_words(info->ipc_buffer);
    set_thread_pointer(tls_make(first_tls));
    /* Only now are there thread-local variables, and only now can anything be invoked. */
    run();
}
