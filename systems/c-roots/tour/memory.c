/*
 * Pages and tables.
 */
#include "tour.h"

/* What a failed mapping says about the table that is missing, level by level. */
static void missing_tables_are_told(void)
{
    static const struct {
        word_t bits_left;
        enum object_type type;
        enum label label;
    } levels[] = {
        {39, OBJECT_PDPT, PDPT_MAP},
        {30, OBJECT_PAGE_DIRECTORY, PAGE_DIRECTORY_MAP},
        {21, OBJECT_PAGE_TABLE, PAGE_TABLE_MAP},
    };
    word_t vaddr = 0x765432100000;
    cptr_t page = object_new(OBJECT_PAGE, 0);
    for (unsigned i = 0; i < 3; i++) {
        struct result result = page_map(page, INIT_VSPACE, vaddr, RIGHT_READ | RIGHT_WRITE);
        EXPECT_EQ(result.error, FAILED_LOOKUP);
        EXPECT_EQ(result.mr[0], 0);
        EXPECT_EQ(result.mr[1], MISSING_CAPABILITY);
        EXPECT_EQ(result.mr[2], levels[i].bits_left);
        cptr_t table = object_new(levels[i].type, 0);
        EXPECT_DONE(table_map(table, levels[i].label, INIT_VSPACE, vaddr));
    }
    EXPECT_DONE(page_map(page, INIT_VSPACE, vaddr, RIGHT_READ | RIGHT_WRITE));
    EXPECT(all_zero((const void *)vaddr, PAGE_BYTES));
}

/* Two mappings of one frame, by two capabilities. */
static void shared_page(void)
{
    cptr_t page = page_at(MEMORY_AREA);
    cptr_t copy = slot_new();
    EXPECT_DONE(cnode_copy(copy, page, RIGHT_READ));
    EXPECT_DONE(page_map(copy, INIT_VSPACE, MEMORY_AREA + PAGE_BYTES, RIGHT_READ));
    *(volatile word_t *)MEMORY_AREA = 0x5a;
    EXPECT_EQ(*(volatile word_t *)(MEMORY_AREA + PAGE_BYTES), 0x5a);
    EXPECT_EQ(page_get_address(page).mr[0], page_get_address(copy).mr[0]);
}

/* 2 MiB at once. */
static void large_page(void)
{
    word_t vaddr = MEMORY_AREA + (1ul << LARGE_PAGE_BITS);
    cptr_t page = object_new(OBJECT_LARGE_PAGE, 0);
    EXPECT_EQ(page_map(page, INIT_VSPACE, vaddr + PAGE_BYTES, ALL_RIGHTS).error, ALIGNMENT_ERROR);
    EXPECT_DONE(page_map(page, INIT_VSPACE, vaddr, ALL_RIGHTS));
    EXPECT(all_zero((const void *)vaddr, 1ul << LARGE_PAGE_BITS));
    volatile word_t *last = (volatile word_t *)(vaddr + (1ul << LARGE_PAGE_BITS)) - 1;
    *last = 1;
    EXPECT_EQ(*last, 1);
    EXPECT_DONE(page_unmap(page));
    EXPECT_DONE(cnode_delete(page));
}

/* Memory that is revoked can be made into something else, and is zero again. */
static void memory_is_recycled(void)
{
    cptr_t untyped = object_new(OBJECT_UNTYPED, PAGE_BITS);
    cptr_t page = slot_new();
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_DONE(untyped_retype(untyped, OBJECT_PAGE, 0, page, 1));
        word_t vaddr = MEMORY_AREA + 8 * PAGE_BYTES;
        EXPECT_DONE(page_map(page, INIT_VSPACE, vaddr, ALL_RIGHTS));
        EXPECT(all_zero((const void *)vaddr, PAGE_BYTES));
        *(volatile word_t *)vaddr = ~0ul;
        struct result full = untyped_retype(untyped, OBJECT_ENDPOINT, 0, slot_new(), 1);
        EXPECT_EQ(full.error, NOT_ENOUGH_MEMORY);
        EXPECT_EQ(full.mr[0], 0);
        EXPECT_DONE(cnode_revoke(untyped));
    }
}

/* As many objects as fit, with one invocation. */
static void objects_by_the_hundred(void)
{
    cptr_t first = objects_new(OBJECT_ENDPOINT, 0, 256);
    for (cptr_t slot = first; slot < first + 256; slot++)
        sys_nb_send(slot, empty_message());
    for (cptr_t slot = first; slot < first + 256; slot++)
        EXPECT_DONE(cnode_delete(slot));
}

void test_memory(void)
{
    test("missing_tables_are_told", missing_tables_are_told);
    test("shared_page", shared_page);
    test("large_page", large_page);
    test("memory_is_recycled", memory_is_recycled);
    test("objects_by_the_hundred", objects_by_the_hundred);
}
