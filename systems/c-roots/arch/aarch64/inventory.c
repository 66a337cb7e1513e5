/*
 * What the inventory goes through on aarch64: QEMU's machine `virt`, with a GICv2.
 */
#include "devices.h"
#include "inventory.h"

#include "memory.h"

struct slot_region dynamic_region(unsigned i)
{
    const struct slot_region regions[DYNAMIC_REGIONS] = {
        boot_info->user_image_paging, boot_info->extra_bi_pages, boot_info->sched_control,
        boot_info->user_image_frames, boot_info->untyped};
    return regions[i];
}

const word_t extra_order[] = {EXTRA_DEVICE_TREE, EXTRA_TIMING, 0};

word_t extra_pages(void)
{
    return (boot_info->extra_len + PAGE_BYTES - 1) / PAGE_BYTES;
}

/* The device tree: numbers are big-endian. */
enum { TREE_MAGIC = 0xd00dfeed, BEGIN_NODE = 1, PROPERTY = 3, END = 9 };

static uint32_t number_at(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static word_t word_at(const uint8_t *at)
{
    return (word_t)number_at(at) << 32 | number_at(at + 4);
}

static const uint8_t *tree(void)
{
    const struct extra_chunk *chunk = extra_chunk(EXTRA_DEVICE_TREE);
    return chunk == NULL ? NULL : (const uint8_t *)(chunk + 1);
}

static size_t length_of(const uint8_t *text)
{
    size_t length = 0;
    while (text[length] != 0)
        length++;
    return length;
}

static bool begins_with(const uint8_t *text, const char *begin)
{
    for (; *begin != 0; text++, begin++) {
        if (*text != (uint8_t)*begin)
            return false;
    }
    return true;
}

/* The first node `memory@...` has the machine's RAM: its address and size are two numbers each. */
struct range available(unsigned i)
{
    struct range none = {0, 0};
    const uint8_t *blob = tree();
    if (blob == NULL || i > 0)
        return none;
    const uint8_t *at = blob + number_at(blob + 8);
    const uint8_t *strings = blob + number_at(blob + 12);
    bool is_memory = false;
    for (;;) {
        uint32_t token = number_at(at);
        at += 4;
        if (token == BEGIN_NODE) {
            is_memory = begins_with(at, "memory@");
            at += (length_of(at) + 4) & -4ul;
        } else if (token == PROPERTY) {
            uint32_t bytes = number_at(at);
            const uint8_t *name = strings + number_at(at + 4);
            if (is_memory && begins_with(name, "reg") && name[3] == 0) {
                word_t start = word_at(at + 8);
                return (struct range){start, start + word_at(at + 16)};
            }
            at += 8 + ((bytes + 3) & -4u);
        } else if (token == END) {
            return none;
        }
    }
}

const struct range kept_from_users[] = {
    {0x8000000, 0x8001000}, /* the distributor */
    {0x8010000, 0x8011000}, /* the interface of processors */
};
const unsigned kept_count = sizeof(kept_from_users) / sizeof(kept_from_users[0]);

static void device_tree(void)
{
    const struct extra_chunk *chunk = extra_chunk(EXTRA_DEVICE_TREE);
    EXPECT(chunk != NULL);
    EXPECT_EQ(number_at(tree()), TREE_MAGIC);
    EXPECT_EQ(number_at(tree() + 4), chunk->length - sizeof(*chunk));
}

static void memory_of_the_tree(void)
{
    struct range ram = available(0);
    EXPECT(ram.start < ram.end);
    EXPECT_EQ((ram.start | ram.end) % PAGE_BYTES, 0);
}

void test_own_extra_boot_info(void)
{
    test("device_tree", device_tree);
    test("memory_of_the_tree", memory_of_the_tree);
}

static void interrupts(void)
{
    cptr_t handler = slot_new();
    EXPECT_DONE(irq_control_get(handler, SERIAL_IRQ));
    EXPECT_EQ(irq_control_get(slot_new(), SERIAL_IRQ).error, REVOKE_FIRST);
    EXPECT_DONE(irq_handler_ack(handler));
    EXPECT_DONE(cnode_delete(handler));
    /* The control exists once: it cannot be copied. */
    EXPECT_EQ(cnode_copy(slot_new(), INIT_IRQ_CONTROL, ALL_RIGHTS).error, ILLEGAL_OPERATION);
}

void test_own_capabilities(void)
{
    test("interrupts", interrupts);
}
