/*
 * The boot information's own page (ABI 06, sections 1.2, 2 and 3).
 */
#include "inventory.h"

#define CNODE_BITS 13

static void numbers(void)
{
    EXPECT_EQ(boot_info->node_id, 0);
    EXPECT_EQ(boot_info->num_nodes, 1);
    EXPECT_EQ(boot_info->num_io_pt_levels, NO_IOMMU);
    EXPECT_EQ(boot_info->init_thread_cnode_size_bits, CNODE_BITS);
    EXPECT_EQ(boot_info->init_thread_domain, 0);
}

static word_t slots(struct slot_region region)
{
    return region.end - region.start;
}

/* The dynamic capabilities lie one behind the other, in the order of the table (06, section 1.2). */
static void regions_follow_each_other(void)
{
    word_t next = INIT_FIRST_DYNAMIC;
    for (unsigned i = 0; i < DYNAMIC_REGIONS; i++) {
        struct slot_region region = dynamic_region(i);
        EXPECT_EQ(region.start, next);
        next = region.end;
    }
    EXPECT_EQ(slots(boot_info->sched_control), 1);
    EXPECT_EQ(boot_info->empty.start, next);
    EXPECT_EQ(boot_info->empty.end, 1 << CNODE_BITS);
}

static void regions_that_do_not_exist(void)
{
    EXPECT_EQ(boot_info->shared_frames.start | boot_info->shared_frames.end, 0);
    EXPECT_EQ(boot_info->io_space_caps.start | boot_info->io_space_caps.end, 0);
}

/* One frame for every page of the image, which is most of all slots. */
static void thousands_of_frames(void)
{
    struct range image = image_range();
    EXPECT_EQ(slots(boot_info->user_image_frames), (image.end - image.start) / PAGE_BYTES);
    EXPECT(slots(boot_info->user_image_frames) >= 7680);
    EXPECT_EQ(slots(boot_info->extra_bi_pages), extra_pages());
}

static void addresses_behind_the_image(void)
{
    struct range image = image_range();
    EXPECT_EQ(boot_info->ipc_buffer, image.end);
    EXPECT_EQ(boot_info, image.end + PAGE_BYTES);
    EXPECT_EQ(entry_dirty_ipc_words, 0);
}

/* What the list does not use is zero, like the padding in it and the page behind it. */
static void nothing_else_is_in_the_page(void)
{
    word_t count = slots(boot_info->untyped);
    EXPECT(count > 0 && count <= MAX_UNTYPEDS);
    EXPECT(all_zero(&boot_info->untyped_list[count],
                    (MAX_UNTYPEDS - count) * sizeof(struct untyped_desc)));
    for (word_t i = 0; i < count; i++)
        EXPECT(all_zero(boot_info->untyped_list[i].padding, 6));
    EXPECT(all_zero(boot_info + 1, PAGE_BYTES - sizeof(*boot_info)));
}

void test_boot_info(void)
{
    test("boot_info_numbers", numbers);
    test("regions_follow_each_other", regions_follow_each_other);
    test("regions_that_do_not_exist", regions_that_do_not_exist);
    test("thousands_of_frames", thousands_of_frames);
    test("addresses_behind_the_image", addresses_behind_the_image);
    test("nothing_else_is_in_the_page", nothing_else_is_in_the_page);
}
