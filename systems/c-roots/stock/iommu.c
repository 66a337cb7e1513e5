/*
 * Calls that would be about an IOMMU, on a machine without one (ABI 09, section 4).
 */
#include "stock.h"

static void page_tables(void)
{
    cptr_t table = object_new(OBJECT_IO_PAGE_TABLE, 0), other = slot_new();
    struct result copy = cnode_copy(other, table, ALL_RIGHTS);
    EXPECT_EQ(copy.error, ILLEGAL_OPERATION);
    EXPECT_EQ(cnode_mint(other, table, ALL_RIGHTS, 0).error, ILLEGAL_OPERATION);
    struct result map = invoke(table, IO_PAGE_TABLE_MAP, NO_WORDS, WORDS(INIT_VSPACE));
    EXPECT_EQ(map.error, TRUNCATED_MESSAGE);
    map = invoke(table, IO_PAGE_TABLE_MAP, WORDS(0x1000), NO_WORDS);
    EXPECT_EQ(map.error, TRUNCATED_MESSAGE);
    map = invoke(table, IO_PAGE_TABLE_MAP, WORDS(0x1000), WORDS(INIT_VSPACE));
    EXPECT_EQ(map.error, INVALID_CAPABILITY);
    EXPECT_EQ(map.mr[0], 0);
    EXPECT_DONE(invoke(table, IO_PAGE_TABLE_UNMAP, NO_WORDS, NO_WORDS));
    EXPECT_EQ(invoke(table, PAGE_MAP, NO_WORDS, NO_WORDS).error, ILLEGAL_OPERATION);
    EXPECT_DONE(cnode_move(other, table));
    EXPECT_DONE(cnode_delete(other));
}

static void pages(void)
{
    cptr_t page = object_new(OBJECT_PAGE, 0);
    struct result map = invoke(page, PAGE_MAP_IO, WORDS(3), WORDS(INIT_VSPACE));
    EXPECT_EQ(map.error, TRUNCATED_MESSAGE);
    map = invoke(page, PAGE_MAP_IO, WORDS(3, 0x1000), NO_WORDS);
    EXPECT_EQ(map.error, TRUNCATED_MESSAGE);
    map = invoke(page, PAGE_MAP_IO, WORDS(3, 0x1000), WORDS(INIT_VSPACE));
    EXPECT_EQ(map.error, INVALID_CAPABILITY);
    EXPECT_EQ(map.mr[0], 0);
    EXPECT_DONE(cnode_delete(page));
}

/* Types end behind that of an I/O page table, which is no device's. */
static void types(void)
{
    cptr_t slot = slot_new();
    cptr_t memory = object_new(OBJECT_UNTYPED, 12);
    struct result none = untyped_retype(memory, OBJECT_IO_PAGE_TABLE + 1, 0, slot, 1);
    EXPECT_EQ(none.error, INVALID_ARGUMENT);
    EXPECT_EQ(none.mr[0], 0);
    EXPECT_DONE(untyped_retype(memory, OBJECT_IO_PAGE_TABLE, 0, slot, 1));
    EXPECT_EQ(untyped_retype(memory, OBJECT_ENDPOINT, 0, slot_new(), 1).error, NOT_ENOUGH_MEMORY);
    EXPECT_DONE(cnode_delete(slot));
}

void test_iommu(void)
{
    test("I/O page tables are never mapped", page_tables);
    test("pages are not mapped for devices", pages);
    test("an I/O page table is a type, and the last", types);
}
