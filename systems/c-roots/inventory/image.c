/*
 * The image: 30 MiB of known numbers, and a capability to each of its pages.
 */
#include "inventory.h"

#include "memory.h"
#include "pattern.h"

extern const uint64_t pattern[PATTERN_WORDS];

static void thirty_mebibytes_are_right(void)
{
    uint64_t word = PATTERN_FIRST;
    for (word_t i = 0; i < PATTERN_WORDS; i++) {
        EXPECT_EQ(pattern[i], word);
        word = pattern_next(word);
    }
}

/* The n-th capability is to the n-th page, mapped there and nowhere else. */
static void frames_are_in_the_order_of_pages(void)
{
    struct range image = image_range();
    struct slot_region frames = boot_info->user_image_frames;
    word_t vaddr = image.start;
    for (cptr_t frame = frames.start; frame < frames.end; frame++, vaddr += PAGE_BYTES) {
        EXPECT_DONE(page_map(frame, INIT_VSPACE, vaddr, RIGHT_READ | RIGHT_WRITE));
        struct result elsewhere =
            page_map(frame, INIT_VSPACE, vaddr ^ PAGE_BYTES, RIGHT_READ | RIGHT_WRITE);
        EXPECT_EQ(elsewhere.error, INVALID_ARGUMENT);
    }
    EXPECT_EQ(vaddr, image.end);
}

/* A copy of each capability, mapped elsewhere, shows the page's contents. */
static void frames_hold_the_contents_of_pages(void)
{
    struct range image = image_range();
    struct slot_region frames = boot_info->user_image_frames;
    cptr_t copy = slot_new();
    const uint8_t *page = (const uint8_t *)image.start;
    for (cptr_t frame = frames.start; frame < frames.end; frame++, page += PAGE_BYTES) {
        EXPECT_DONE(cnode_copy(copy, frame, ALL_RIGHTS));
        const void *alias = window_open(copy);
        /* The window itself shows what is mapped there. */
        bool same = memcmp(alias, page, PAGE_BYTES) == 0;
        window_close(copy);
        EXPECT(same);
        EXPECT_DONE(cnode_delete(copy));
    }
}

/* No two frames are the same memory. */
static void frames_are_disjoint(void)
{
    struct slot_region frames = boot_info->user_image_frames;
    word_t lowest = UINT64_MAX, highest = 0, sum = 0;
    for (cptr_t frame = frames.start; frame < frames.end; frame++) {
        struct result address = page_get_address(frame);
        EXPECT_EQ(address.error, NO_ERROR);
        EXPECT_EQ(address.mr[0] % PAGE_BYTES, 0);
        lowest = address.mr[0] < lowest ? address.mr[0] : lowest;
        highest = address.mr[0] > highest ? address.mr[0] : highest;
        sum += address.mr[0] / PAGE_BYTES;
        for (word_t i = 0; i < boot_info->untyped.end - boot_info->untyped.start; i++) {
            const struct untyped_desc *untyped = &boot_info->untyped_list[i];
            EXPECT(address.mr[0] - untyped->paddr >= 1ul << untyped->size_bits);
        }
    }
    /* As many pages as lie between the lowest and the highest, with their sum. */
    word_t count = frames.end - frames.start;
    word_t first = lowest / PAGE_BYTES;
    EXPECT_EQ(highest, lowest + (count - 1) * PAGE_BYTES);
    EXPECT_EQ(sum, count * first + count * (count - 1) / 2);
}

void test_image(void)
{
    test("thirty_mebibytes_are_right", thirty_mebibytes_are_right);
    test("frames_are_in_the_order_of_pages", frames_are_in_the_order_of_pages);
    test("frames_hold_the_contents_of_pages", frames_hold_the_contents_of_pages);
    test("frames_are_disjoint", frames_are_disjoint);
}
