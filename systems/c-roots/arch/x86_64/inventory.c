/*
 * What the inventory goes through on x86_64.
 */
#include "devices.h"
#include "inventory.h"

#include "memory.h"

#define LOW_MEMORY 0x100000ul

struct slot_region dynamic_region(unsigned i)
{
    const struct slot_region regions[DYNAMIC_REGIONS] = {
        boot_info->sched_control, boot_info->user_image_paging, boot_info->extra_bi_pages,
        boot_info->user_image_frames, boot_info->untyped};
    return regions[i];
}

const word_t extra_order[] = {EXTRA_VBE,        EXTRA_RSDP,    EXTRA_FRAMEBUFFER,
                              EXTRA_MEMORY_MAP, EXTRA_TSC_MHZ, EXTRA_CLOCK,   EXTRA_TIMING, 0};

word_t extra_pages(void)
{
    return extra_bytes() / PAGE_BYTES;
}

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

void test_own_extra_boot_info(void)
{
    test("root_pointer_of_acpi", root_pointer_of_acpi);
    test("memory_map", memory_map);
    test("rate_of_the_clock", rate_of_the_clock);
}

/* Memory of the map that is available, without the lowest MiB, in whole pages. */
struct range available(unsigned i)
{
    const struct extra_memory_map *map =
        (const struct extra_memory_map *)extra_chunk(EXTRA_MEMORY_MAP);
    struct range none = {0, 0};
    if (map == NULL || i >= map->bytes / sizeof(map->entries[0]) ||
        map->entries[i].kind != MEMORY_AVAILABLE || map->entries[i].base < LOW_MEMORY)
        return none;
    word_t start = (map->entries[i].base + PAGE_BYTES - 1) & -PAGE_BYTES;
    word_t end = (map->entries[i].base + map->entries[i].length) & -PAGE_BYTES;
    return (struct range){start, end};
}

const struct range kept_from_users[] = {
        {0xfec00000, 0xfec01000}, /* the I/O APIC */
        {0xfee00000, 0xfee01000}, /* the local APIC */
        {0xfffffff0, 0x100000000}, /* interrupts by message, and crumbs below 16 bytes */
    };
const unsigned kept_count = sizeof(kept_from_users) / sizeof(kept_from_users[0]);

static void interrupts_and_ports(void)
{
    EXPECT_EQ(invoke(INIT_IRQ_CONTROL, IRQ_CONTROL_GET, WORDS(4, slot_new(), CSPACE_DEPTH),
                     WORDS(INIT_CNODE))
                  .error,
              ILLEGAL_OPERATION);
    cptr_t handler = slot_new();
    EXPECT_DONE(irq_control_get_ioapic(handler, 0, 4, 4));
    EXPECT_DONE(irq_handler_ack(handler));
    EXPECT_DONE(cnode_delete(handler));
    cptr_t ports = slot_new();
    EXPECT_DONE(io_port_issue(0x70, 0x71, ports));
    EXPECT_DONE(io_port_out8(ports, 0x70, 0));
    EXPECT_EQ(io_port_in8(ports, 0x72).error, ILLEGAL_OPERATION);
    /* The controls exist once: they cannot be copied. */
    EXPECT_EQ(cnode_copy(slot_new(), INIT_IRQ_CONTROL, ALL_RIGHTS).error, ILLEGAL_OPERATION);
    EXPECT_EQ(cnode_copy(slot_new(), INIT_IO_PORT_CONTROL, ALL_RIGHTS).error, ILLEGAL_OPERATION);
}

void test_own_capabilities(void)
{
    test("interrupts_and_ports", interrupts_and_ports);
}
