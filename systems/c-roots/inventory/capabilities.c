/*
 * Each initial capability is of the kind that its slot promises (ABI 06, section 1.2): what it
 * answers to an invocation that no other kind answers so.
 */
#include "inventory.h"

static void null_slots(void)
{
    static const cptr_t null_slots[] = {INIT_NULL, INIT_IO_SPACE, INIT_SMMU_SID, INIT_SMMU_CB,
                                        INIT_SMC, OWN_NULL_SLOTS};
    cptr_t copy = slot_new();
    for (unsigned i = 0; i < sizeof(null_slots) / sizeof(null_slots[0]); i++) {
        struct result result = cnode_copy(copy, null_slots[i], ALL_RIGHTS);
        EXPECT_EQ(result.error, FAILED_LOOKUP);
        EXPECT_EQ(result.mr[0], 1);
        EXPECT_EQ(result.mr[1], MISSING_CAPABILITY);
    }
}

static void empty_slots(void)
{
    cptr_t copy = slot_new();
    for (cptr_t slot = copy + 1; slot < boot_info->empty.end; slot++) {
        struct result result = cnode_copy(copy, slot, ALL_RIGHTS);
        EXPECT_EQ(result.error, FAILED_LOOKUP);
        EXPECT_EQ(result.mr[1], MISSING_CAPABILITY);
    }
}

/* The root CNode has a guard of zeroes, so that a pointer is the number of a slot. */
static void cnode(void)
{
    struct result result = invoke(INIT_CNODE, CNODE_DELETE, WORDS(slot_new(), 13), NO_WORDS);
    EXPECT_EQ(result.error, FAILED_LOOKUP);
    EXPECT_EQ(result.length, 5);
    EXPECT_EQ(result.mr[0], 0);
    EXPECT_EQ(result.mr[1], GUARD_MISMATCH);
    EXPECT_EQ(result.mr[2], 13);
    EXPECT_EQ(result.mr[3], 0);
    EXPECT_EQ(ipc_buffer->mr[4], 51);
    EXPECT_DONE(cnode_copy(slot_new(), INIT_CNODE, ALL_RIGHTS));
}

static void thread_and_time(void)
{
    struct result flags = tcb_set_flags(INIT_TCB, 0, 0);
    EXPECT_EQ(flags.error, NO_ERROR);
    EXPECT_EQ(flags.length, 1);
    EXPECT_EQ(flags.mr[0], 0);
    /* Priority and maximum controlled priority are 255. */
    EXPECT_DONE(tcb_set_priority(INIT_TCB, 255));
    EXPECT_EQ(tcb_set_priority(INIT_TCB, 256).error, RANGE_ERROR);

    EXPECT_EQ(sched_context_consumed(INIT_SCHED_CONTEXT).length, 1);
    /* The thread runs on that context: it cannot have another one, nor the context a thread. */
    EXPECT_EQ(sched_context_bind(INIT_SCHED_CONTEXT, INIT_TCB).error, ILLEGAL_OPERATION);
    cptr_t context = object_new(OBJECT_SCHED_CONTEXT, SCHED_CONTEXT_BITS);
    EXPECT_DONE(
        sched_control_configure(boot_info->sched_control.start, context, 1000, 10000, 0));
    EXPECT_EQ(sched_context_bind(context, INIT_TCB).error, ILLEGAL_OPERATION);
    EXPECT_EQ(sched_context_unbind_object(INIT_SCHED_CONTEXT, INIT_TCB).error, ILLEGAL_OPERATION);
    EXPECT_DONE(invoke(INIT_DOMAIN, DOMAIN_SET, WORDS(0), WORDS(INIT_TCB)));
    EXPECT_EQ(invoke(INIT_DOMAIN, DOMAIN_SET, WORDS(1), WORDS(INIT_TCB)).error, INVALID_ARGUMENT);
}

static void spaces(void)
{
    EXPECT_EQ(invoke(INIT_VSPACE, PDPT_MAP, NO_WORDS, NO_WORDS).error, ILLEGAL_OPERATION);
    cptr_t root = object_new(OBJECT_PML4, 0);
    EXPECT_DONE(asid_pool_assign(INIT_ASID_POOL, root));
    EXPECT_EQ(asid_pool_assign(INIT_ASID_POOL, INIT_VSPACE).error, INVALID_CAPABILITY);
    cptr_t pool = slot_new();
    EXPECT_DONE(asid_control_make_pool(object_new(OBJECT_UNTYPED, PAGE_BITS), pool));
    EXPECT_DONE(asid_pool_assign(pool, object_new(OBJECT_PML4, 0)));
}

/* Number of tables that map the range, each of which covers 2^bits bytes. */
static word_t tables(struct range range, unsigned bits)
{
    return ((range.end - 1) >> bits) - (range.start >> bits) + 1;
}

/*
 * The tables of the initial address space: first the PDPTs, then the page directories, then the
 * page tables. A table that is mapped refuses to be mapped, and only by the label of its kind.
 */
static void tables_in_order(void)
{
    struct range mapped = image_range();
    mapped.end += 2 * PAGE_BYTES + extra_bytes();
    static const struct {
        enum label label;
        unsigned covered_bits;
    } kinds[] = {{PDPT_MAP, 39}, {PAGE_DIRECTORY_MAP, 30}, {PAGE_TABLE_MAP, 21}};

    cptr_t table = boot_info->user_image_paging.start;
    for (unsigned i = 0; i < 3; i++) {
        for (word_t n = tables(mapped, kinds[i].covered_bits); n > 0; n--, table++) {
            struct result own = table_map(table, kinds[i].label, INIT_VSPACE, 0);
            EXPECT_EQ(own.error, INVALID_CAPABILITY);
            EXPECT_EQ(own.mr[0], 0);
            enum label other = kinds[(i + 1) % 3].label;
            if (other != kinds[i].label)
                EXPECT_EQ(table_map(table, other, INIT_VSPACE, 0).error, ILLEGAL_OPERATION);
        }
    }
    EXPECT_EQ(table, boot_info->user_image_paging.end);
}

/* The pages behind the image: mapped where the boot information says. */
static void pages_behind_the_image(void)
{
    word_t rights = RIGHT_READ | RIGHT_WRITE;
    EXPECT_DONE(page_map(INIT_IPC_BUFFER, INIT_VSPACE, (word_t)boot_info->ipc_buffer, rights));
    EXPECT_DONE(page_map(INIT_BOOT_INFO_FRAME, INIT_VSPACE, (word_t)boot_info, rights));
    word_t vaddr = (word_t)boot_info + PAGE_BYTES;
    struct slot_region extra = boot_info->extra_bi_pages;
    for (cptr_t frame = extra.start; frame < extra.end; frame++, vaddr += PAGE_BYTES)
        EXPECT_DONE(page_map(frame, INIT_VSPACE, vaddr, rights));
    /* They can be written, like all that is mapped at the start. */
    volatile word_t *word = &boot_info->node_id;
    *word = 7;
    EXPECT_EQ(*word, 7);
    *word = 0;
}

void test_capabilities(void)
{
    test("null_slots", null_slots);
    test("empty_slots", empty_slots);
    test("cnode", cnode);
    test("thread_and_time", thread_and_time);
    test("spaces", spaces);
    test_own_capabilities();
    test("tables_in_order", tables_in_order);
    test("boot_pages", pages_behind_the_image);
}
