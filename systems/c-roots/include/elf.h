/*
 * The parts of the ELF format that a program reads about itself. The C library's <elf.h> is not
 * there in freestanding programs.
 */
#ifndef ELF_H
#define ELF_H

#include <stdint.h>

struct elf_header {
    uint8_t ident[16];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, program_headers, section_headers;
    uint32_t flags;
    uint16_t header_bytes, program_header_bytes, program_header_count;
    uint16_t section_header_bytes, section_header_count, names;
};

enum { ELF_TYPE_SHARED = 3 };

struct program_header {
    uint32_t type, flags;
    uint64_t offset, vaddr, paddr, file_bytes, memory_bytes, align;
};

enum { PT_LOAD = 1, PT_DYNAMIC = 2, PT_TLS = 7 };

struct dynamic {
    uint64_t tag, value;
};

enum { DT_NULL = 0, DT_RELA = 7, DT_RELASZ = 8 };

struct relocation {
    uint64_t offset, info;
    int64_t addend;
};

/* Relocation by the base alone: of x86_64, of aarch64. */
#ifdef __aarch64__
enum { R_RELATIVE = 1027 };
#else
enum { R_RELATIVE = 8 };
#endif

/* The program's own header: the linker defines it when the first segment contains it. */
extern const struct elf_header __ehdr_start __attribute__((visibility("hidden")));

static inline const struct program_header *program_header(unsigned i)
{
    const uint8_t *headers = (const uint8_t *)&__ehdr_start + __ehdr_start.program_headers;
    return (const struct program_header *)(headers + i * __ehdr_start.program_header_bytes);
}

/* The first program header of `type`, or NULL. */
static inline const struct program_header *program_header_of(uint32_t type)
{
    for (unsigned i = 0; i < __ehdr_start.program_header_count; i++) {
        if (program_header(i)->type == type)
            return program_header(i);
    }
    return (const struct program_header *)0;
}

#endif
