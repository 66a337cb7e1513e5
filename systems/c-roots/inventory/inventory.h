/*
 * The tests of this root task, by what they go through.
 */
#ifndef INVENTORY_H
#define INVENTORY_H

#include "own_inventory.h"
#include "root.h"

void test_boot_info(void);
void test_extra_boot_info(void);
void test_untypeds(void);
void test_image(void);
void test_capabilities(void);

/* What the architecture has of these, in its inventory.c. */
void test_own_extra_boot_info(void);
void test_own_capabilities(void);

/* The regions of dynamic capabilities in their order. */
#define DYNAMIC_REGIONS 5u
struct slot_region dynamic_region(unsigned i);

/* Numbers of chunks in their order, and 0. The last one is of Sandglass, outside the ABI's numbers. */
extern const word_t extra_order[] __attribute__((visibility("hidden")));
#define EXTRA_TIMING 0x656d6954646e6153
/* Before that, on x86_64: how the clock was measured. */
#define EXTRA_CLOCK 0x6b636c43646e6153

/* Pages of extra boot information that have a capability. */
word_t extra_pages(void);

/* RAM number `i`, below 50, that the machine has, in whole pages; empty if there is none. */
struct range available(unsigned i);

/* What is neither RAM nor a device's: the kernel's interrupt controllers. */
extern const struct range kept_from_users[] __attribute__((visibility("hidden")));
extern const unsigned kept_count __attribute__((visibility("hidden")));


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
