/*
 * The tests of this root task, by what they go through.
 */
#ifndef INVENTORY_H
#define INVENTORY_H

#include "root.h"

struct extra_memory_map {
    struct extra_chunk header;
    uint32_t bytes; /* of the entries in use */
    struct memory_map_entry {
        uint32_t size;
        uint64_t base;
        uint64_t length;
        uint32_t kind;
    } __attribute__((packed)) entries[50];
} __attribute__((packed));

_Static_assert(sizeof(struct extra_memory_map) == 1220, "the chunk has 1220 bytes");

#define MEMORY_AVAILABLE 1u

void test_boot_info(void);
void test_extra_boot_info(void);
void test_untypeds(void);
void test_image(void);
void test_capabilities(void);

/* The chunk of extra boot information with `id`, or NULL. */
const struct extra_chunk *extra_chunk(enum extra_id id);
/* Bytes reserved for extra boot information, and mapped. */
word_t extra_bytes(void);

/*
 * Maps the frame `frame`, which is mapped nowhere, into a page of this program's own, where it can
 * be read and written until `window_close`.
 */
void *window_open(cptr_t frame);
void window_close(cptr_t frame);

#endif
