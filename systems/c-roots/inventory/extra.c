/*
 * Extra boot information (ABI 06, section 4).
 */
#include "inventory.h"

#include "memory.h"

struct extra_rsdp {
    struct extra_chunk header;
    char signature[8];
    uint8_t checksum;
    char oem[6];
    uint8_t revision;
    uint32_t rsdt;
    uint8_t version_2[16];
} __attribute__((packed));

struct extra_tsc {
    struct extra_chunk header;
    uint32_t mhz;
} __attribute__((packed));

static const uint8_t *chunks_start(void)
{
    return (const uint8_t *)boot_info + PAGE_BYTES;
}

const struct extra_chunk *extra_chunk(enum extra_id id)
{
    word_t at = 0;
    while (at + sizeof(struct extra_chunk) <= boot_info->extra_len) {
        const struct extra_chunk *chunk = (const struct extra_chunk *)(chunks_start() + at);
        if (chunk->id == id)
            return chunk;
        if (chunk->length < sizeof(*chunk))
            return NULL;
        at += chunk->length;
    }
    return NULL;
}

/* The least power of two of pages that holds all chunks. */
word_t extra_bytes(void)
{
    word_t bytes = boot_info->extra_len == 0 ? 0 : PAGE_BYTES;
    while (bytes < boot_info->extra_len)
        bytes *= 2;
    return bytes;
}

/* The chunks fill their length, in their order, and behind them is nothing. */
static void chunks_in_order(void)
{
    /* The last one is of Sandglass, outside the ABI's numbers. */
    static const word_t order[] = {EXTRA_VBE, EXTRA_RSDP, EXTRA_FRAMEBUFFER,
                                   EXTRA_MEMORY_MAP, EXTRA_TSC_MHZ, 0x656d6954646e6153};
    static const unsigned places = sizeof(order) / sizeof(order[0]);
    word_t at = 0;
    unsigned place = 0;
    while (at < boot_info->extra_len) {
        const struct extra_chunk *chunk = (const struct extra_chunk *)(chunks_start() + at);
        EXPECT(chunk->length >= sizeof(*chunk));
        while (place < places && order[place] != chunk->id)
            place++;
        EXPECT(place < places);
        at += chunk->length;
    }
    EXPECT_EQ(at, boot_info->extra_len);
    EXPECT(all_zero(chunks_start() + at, extra_bytes() - at));
}

static void root_pointer_of_acpi(void)
{
    const struct extra_rsdp *rsdp = (const struct extra_rsdp *)extra_chunk(EXTRA_RSDP);
    EXPECT(rsdp != NULL);
    EXPECT_EQ(rsdp->header.length, 52);
    EXPECT_EQ(memcmp(rsdp->signature, "RSD PTR ", 8), 0);
    uint8_t sum = 0;
    for (unsigned i = 0; i < 20; i++)
        sum += ((const uint8_t *)rsdp->signature)[i];
    EXPECT_EQ(sum, 0);
    EXPECT(rsdp->rsdt != 0);
}

static void memory_map(void)
{
    const struct extra_memory_map *map =
        (const struct extra_memory_map *)extra_chunk(EXTRA_MEMORY_MAP);
    EXPECT(map != NULL);
    EXPECT_EQ(map->header.length, sizeof(*map));
    EXPECT_EQ(map->bytes % sizeof(map->entries[0]), 0);
    unsigned count = map->bytes / sizeof(map->entries[0]);
    EXPECT(count > 0 && count <= 50);
    bool has_memory = false;
    for (unsigned i = 0; i < count; i++) {
        EXPECT_EQ(map->entries[i].size, 20);
        EXPECT(map->entries[i].length > 0);
        has_memory |= map->entries[i].kind == MEMORY_AVAILABLE;
    }
    EXPECT(has_memory);
    EXPECT(all_zero(&map->entries[count], (50 - count) * sizeof(map->entries[0])));
}

static void rate_of_the_clock(void)
{
    const struct extra_tsc *tsc = (const struct extra_tsc *)extra_chunk(EXTRA_TSC_MHZ);
    EXPECT(tsc != NULL);
    EXPECT_EQ(tsc->header.length, 20);
    say("  the time-stamp counter has %lu MHz\n", (word_t)tsc->mhz);
    EXPECT(tsc->mhz > 0);
}

void test_extra_boot_info(void)
{
    test("chunks_in_order", chunks_in_order);
    test("root_pointer_of_acpi", root_pointer_of_acpi);
    test("memory_map", memory_map);
    test("rate_of_the_clock", rate_of_the_clock);
}
