/*
 * The initial untyped memory (ABI 06, section 5).
 */
#include "inventory.h"

#define MIN_BITS 4
/* Below this address, the alignment of an untyped is that of its physical address. */
#define ALIAS_FROM (1ul << 39)

static word_t count(void)
{
    return boot_info->untyped.end - boot_info->untyped.start;
}

static const struct untyped_desc *untyped(word_t i)
{
    return &boot_info->untyped_list[i];
}

static word_t end_of(const struct untyped_desc *untyped)
{
    return untyped->paddr + (1ul << untyped->size_bits);
}

static void print_list(void)
{
    for (word_t i = 0; i < count(); i++) {
        say("  untyped %lu: 0x%lx, 2^%d bytes%s\n", boot_info->untyped.start + i,
            untyped(i)->paddr, (int)untyped(i)->size_bits,
            untyped(i)->is_device ? ", device" : "");
    }
}

/* Devices come first, ascending; then what was the kernel's boot code; then RAM, ascending, perhaps from below that. */
static void order(void)
{
    unsigned descents = 0;
    for (word_t i = 0; i + 1 < count(); i++) {
        const struct untyped_desc *a = untyped(i), *b = untyped(i + 1);
        EXPECT(a->is_device >= b->is_device);
        if (a->is_device == b->is_device && end_of(a) > b->paddr) {
            EXPECT(!a->is_device);
            descents++;
        }
    }
    EXPECT(descents <= 1);
}

static void disjoint(void)
{
    for (word_t i = 0; i < count(); i++) {
        for (word_t j = 0; j < i; j++) {
            const struct untyped_desc *a = untyped(i), *b = untyped(j);
            EXPECT(end_of(a) <= b->paddr || end_of(b) <= a->paddr);
        }
    }
}

static void sizes_and_alignments(void)
{
    for (word_t i = 0; i < count(); i++) {
        const struct untyped_desc *piece = untyped(i);
        EXPECT(piece->size_bits >= MIN_BITS && piece->size_bits <= 47);
        EXPECT(piece->is_device <= 1);
        if (piece->paddr < ALIAS_FROM)
            EXPECT_EQ(piece->paddr & ((1ul << piece->size_bits) - 1), 0);
        EXPECT(end_of(piece) <= DEVICE_TOP);
    }
}

/* RAM lies in available memory, and devices outside of it. */
static void flags_agree_with_the_memory_map(void)
{
    for (word_t i = 0; i < count(); i++) {
        const struct untyped_desc *piece = untyped(i);
        bool inside = false, overlaps = false;
        for (unsigned j = 0; j < 50; j++) {
            struct range ram = available(j);
            inside |= ram.start <= piece->paddr && end_of(piece) <= ram.end;
            overlaps |= piece->paddr < ram.end && ram.start < end_of(piece);
        }
        if (piece->is_device)
            EXPECT(!overlaps);
        else
            EXPECT(inside);
    }
}

/* All RAM is given out but the kernel, its few objects, and this program. */
static void ram_is_complete(void)
{
    word_t all = 0, given = 0;
    for (unsigned i = 0; i < 50; i++)
        all += available(i).end - available(i).start;
    for (word_t i = 0; i < count(); i++) {
        if (!untyped(i)->is_device)
            given += 1ul << untyped(i)->size_bits;
    }
    word_t image = image_range().end - image_range().start;
    word_t kept = all - given - image;
    say("  of %lu KiB, %lu are given out, %lu hold the image, %lu are the kernel's\n", all / 1024,
        given / 1024, image / 1024, kept / 1024);
    EXPECT(given + image < all);
    EXPECT(kept < MOST_KEPT);
}

/* The end of what is known from `at` on: a device's untyped, or RAM; `at` if it is a hole. */
static word_t known_from(word_t at, word_t *next)
{
    for (word_t i = 0; i < count(); i++) {
        if (!untyped(i)->is_device)
            continue;
        if (untyped(i)->paddr <= at && at < end_of(untyped(i)))
            return end_of(untyped(i));
        if (untyped(i)->paddr > at && untyped(i)->paddr < *next)
            *next = untyped(i)->paddr;
    }
    for (unsigned i = 0; i < 50; i++) {
        struct range ram = available(i);
        if (ram.start <= at && at < ram.end)
            return ram.end;
        if (ram.start > at && ram.start < *next)
            *next = ram.start;
    }
    return at;
}

/* All else below the highest device is devices, except what is the kernel's: its interrupt controllers. */
static void devices_are_complete(void)
{
    unsigned holes = 0;
    word_t at = 0;
    while (at < DEVICE_TOP) {
        word_t next = DEVICE_TOP;
        word_t end = known_from(at, &next);
        if (end == at) {
            EXPECT(holes < kept_count);
            EXPECT_EQ(at, kept_from_users[holes].start);
            EXPECT_EQ(next, kept_from_users[holes].end);
            holes++;
            end = next;
        }
        at = end;
    }
    EXPECT_EQ(holes, kept_count);
}

/* From every untyped something can be made, and it is where the list says. */
static void each_can_be_retyped(void)
{
    cptr_t slot = slot_new();
    for (word_t i = 0; i < count(); i++) {
        const struct untyped_desc *piece = untyped(i);
        cptr_t cap = boot_info->untyped.start + i;
        if (untyped_is_used(i))
            continue;
        if (piece->size_bits < PAGE_BITS) {
            EXPECT_DONE(untyped_retype(cap, OBJECT_UNTYPED, piece->size_bits, slot, 1));
        } else {
            EXPECT_DONE(untyped_retype(cap, OBJECT_PAGE, 0, slot, 1));
            struct result address = page_get_address(slot);
            EXPECT_EQ(address.error, NO_ERROR);
            EXPECT_EQ(address.mr[0], piece->paddr);
        }
        EXPECT_DONE(cnode_delete(slot));
    }
}

/* A device's memory becomes frames and untypeds, and nothing that the kernel would write. */
static void devices_are_not_memory(void)
{
    cptr_t slot = slot_new();
    for (word_t i = 0; i < count(); i++) {
        cptr_t cap = boot_info->untyped.start + i;
        if (untyped(i)->size_bits < PAGE_BITS || untyped_is_used(i))
            continue;
        struct result result = untyped_retype(cap, OBJECT_ENDPOINT, 0, slot, 1);
        EXPECT_EQ(result.error, untyped(i)->is_device ? INVALID_ARGUMENT : NO_ERROR);
        if (result.error == NO_ERROR)
            EXPECT_DONE(cnode_delete(slot));
        else
            EXPECT_EQ(result.mr[0], 1);
    }
}

/* A page in either half of each piece of RAM can be written, and was zero. */
static void ram_is_zero_and_can_be_used(void)
{
    cptr_t slots = slot_new();
    slot_new();
    for (word_t i = 0; i < count(); i++) {
        const struct untyped_desc *piece = untyped(i);
        cptr_t cap = boot_info->untyped.start + i;
        if (piece->is_device || piece->size_bits <= PAGE_BITS || untyped_is_used(i))
            continue;
        EXPECT_DONE(untyped_retype(cap, OBJECT_UNTYPED, piece->size_bits - 1, slots, 2));
        for (cptr_t half = slots; half < slots + 2; half++) {
            EXPECT_DONE(cnode_move(boot_info->empty.end - 1, half));
            EXPECT_DONE(
                untyped_retype(boot_info->empty.end - 1, OBJECT_PAGE, 0, half, 1));
            uint8_t *page = window_open(half);
            bool zero = all_zero(page, PAGE_BYTES);
            page[i % PAGE_BYTES] = 0xff;
            window_close(half);
            EXPECT(zero);
            EXPECT_DONE(cnode_delete(half));
            EXPECT_DONE(cnode_delete(boot_info->empty.end - 1));
        }
    }
}

void test_untypeds(void)
{
    print_list();
    test("untypeds_in_order", order);
    test("untypeds_are_disjoint", disjoint);
    test("untypeds_are_aligned", sizes_and_alignments);
    test("flags_agree_with_the_memory_map", flags_agree_with_the_memory_map);
    test("ram_is_complete", ram_is_complete);
    test("devices_are_complete", devices_are_complete);
    test("each_untyped_can_be_retyped", each_can_be_retyped);
    test("devices_are_not_memory", devices_are_not_memory);
    test("ram_is_zero_and_can_be_used", ram_is_zero_and_can_be_used);
}
