/*
 * The tests of this root task, by what they go through.
 */
#ifndef INVENTORY_H
#define INVENTORY_H

#include "root.h"

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
