/*
 * What the inventory knows of x86_64.
 */
#ifndef OWN_INVENTORY_H
#define OWN_INVENTORY_H

#include "abi.h"

#define NO_IOMMU UINT64_MAX
/* Slots without a capability that other architectures have one in: none. */
#define OWN_NULL_SLOTS INIT_NULL
#define DEVICE_TOP (1ul << 47)
/* Most bytes of RAM that nobody is given. */
#define MOST_KEPT (1ul << 20)

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

#endif
