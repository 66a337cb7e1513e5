/*
 * Every invocation, by its number: each has an effect, or is refused as no other would be.
 */
#include "stock.h"

/* Far from the image; each test of memory has a gibibyte of its own. */
#define SOMEWHERE 0x200000000000ul

static void threads(void)
{
    cptr_t tcb = object_new(OBJECT_TCB, 0), other = object_new(OBJECT_TCB, 0);
    cptr_t endpoint = object_new(OBJECT_ENDPOINT, 0), signal = object_new(OBJECT_NOTIFICATION, 0);
    cptr_t context = object_new(OBJECT_SCHED_CONTEXT, SCHED_CONTEXT_BITS);
    word_t registers[USER_REGISTERS] = {0};
    registers[REG_RIP] = 0x1234;
    EXPECT_DONE(tcb_write_registers(tcb, false, registers));
    /* Frame registers of the one become the other's. */
    EXPECT_DONE(invoke(other, TCB_COPY_REGISTERS, WORDS(1 << 2), WORDS(tcb)));
    registers[REG_RIP] = 0;
    EXPECT_DONE(tcb_read_registers(other, false, registers));
    EXPECT_EQ(registers[REG_RIP], 0x1234);
    EXPECT_DONE(tcb_configure(tcb, INIT_CNODE, 0, INIT_VSPACE, 0, 0));
    EXPECT_DONE(tcb_set_priority(tcb, 7));
    EXPECT_DONE(invoke(tcb, TCB_SET_MC_PRIORITY, WORDS(9), WORDS(INIT_TCB)));
    EXPECT_EQ(invoke(tcb, TCB_SET_MC_PRIORITY, WORDS(256), WORDS(INIT_TCB)).error, RANGE_ERROR);
    EXPECT_DONE(tcb_set_sched_params(tcb, 9, 7, 0, endpoint));
    EXPECT_DONE(tcb_set_timeout_endpoint(tcb, endpoint));
    EXPECT_DONE(invoke(tcb, TCB_SET_IPC_BUFFER, WORDS(0), WORDS(0)));
    EXPECT_DONE(tcb_set_space(tcb, endpoint, INIT_CNODE, 0, INIT_VSPACE));
    EXPECT_DONE(tcb_bind_notification(tcb, signal));
    EXPECT_EQ(tcb_bind_notification(tcb, signal).error, ILLEGAL_OPERATION);
    EXPECT_DONE(tcb_unbind_notification(tcb));
    EXPECT_DONE(tcb_bind_notification(tcb, signal));
    EXPECT_DONE(tcb_suspend(tcb));
    EXPECT_DONE(tcb_resume(tcb));
    EXPECT_DONE(tcb_set_tls_base(tcb, 0x7000));
    EXPECT_DONE(tcb_read_registers(tcb, true, registers));
    EXPECT_EQ(registers[REG_FS_BASE], 0x7000);
    struct result flags = tcb_set_flags(tcb, 0, 1);
    EXPECT_EQ(flags.error, NO_ERROR);
    EXPECT_EQ(flags.mr[0], 1);
    /* What is behind the last of a thread's is none of a thread's. */
    EXPECT_EQ(invoke(tcb, TCB_SET_FLAGS + 1, WORDS(0, 0, 0), NO_WORDS).error, ILLEGAL_OPERATION);
    EXPECT_DONE(invoke(context, SCHED_CONTEXT_BIND, NO_WORDS, WORDS(tcb)));
    EXPECT_DONE(cnode_delete(tcb));
    EXPECT_DONE(cnode_delete(other));
}

static void contexts(void)
{
    cptr_t tcb = object_new(OBJECT_TCB, 0);
    cptr_t context = object_new(OBJECT_SCHED_CONTEXT, SCHED_CONTEXT_BITS);
    cptr_t control = boot_info->sched_control.start;
    EXPECT_DONE(sched_control_configure(control, context, 1000, 10000, 0));
    EXPECT_EQ(sched_control_configure(control, context, 1, 10000, 0).error, RANGE_ERROR);
    EXPECT_DONE(sched_context_bind(context, tcb));
    EXPECT_EQ(sched_context_bind(context, tcb).error, ILLEGAL_OPERATION);
    EXPECT_DONE(invoke(context, SCHED_CONTEXT_UNBIND, NO_WORDS, NO_WORDS));
    EXPECT_DONE(sched_context_bind(context, tcb));
    EXPECT_DONE(sched_context_unbind_object(context, tcb));
    struct result consumed = sched_context_consumed(context);
    EXPECT_EQ(consumed.error, NO_ERROR);
    EXPECT_EQ(consumed.length, 1);
    /* Nobody runs on it. */
    EXPECT_EQ(invoke(context, SCHED_CONTEXT_YIELD_TO, NO_WORDS, NO_WORDS).error, ILLEGAL_OPERATION);
    EXPECT_DONE(sched_context_bind(context, tcb));
    struct result yield = invoke(context, SCHED_CONTEXT_YIELD_TO, NO_WORDS, NO_WORDS);
    EXPECT_EQ(yield.error, NO_ERROR);
    EXPECT_EQ(yield.length, 1);
    EXPECT_DONE(cnode_delete(tcb));
    EXPECT_DONE(cnode_delete(context));
}

static void slots(void)
{
    cptr_t endpoint = object_new(OBJECT_ENDPOINT, 0);
    cptr_t copy = slot_new(), minted = slot_new(), moved = slot_new(), last = slot_new();
    EXPECT_DONE(cnode_copy(copy, endpoint, ALL_RIGHTS));
    EXPECT_DONE(cnode_mint(minted, endpoint, ALL_RIGHTS, 5));
    EXPECT_DONE(cnode_move(moved, minted));
    EXPECT_DONE(invoke(INIT_CNODE, CNODE_CANCEL_BADGED_SENDS, WORDS(moved, CSPACE_DEPTH), NO_WORDS));
    EXPECT_DONE(cnode_revoke(endpoint));
    /* All that was made of it is gone. The thread's goes behind, and a copy of it to where that was. */
    EXPECT_DONE(cnode_copy(moved, INIT_TCB, ALL_RIGHTS));
    EXPECT_DONE(cnode_copy(copy, INIT_TCB, ALL_RIGHTS));
    EXPECT_DONE(invoke(INIT_CNODE, CNODE_ROTATE,
                       WORDS(last, CSPACE_DEPTH, 0, moved, CSPACE_DEPTH, 0, copy, CSPACE_DEPTH),
                       WORDS(INIT_CNODE, INIT_CNODE)));
    EXPECT_EQ(cnode_copy(moved, endpoint, ALL_RIGHTS).error, DELETE_FIRST);
    EXPECT_DONE(cnode_copy(copy, INIT_TCB, ALL_RIGHTS));
    EXPECT_DONE(invoke(INIT_CNODE, CNODE_MUTATE, WORDS(minted, CSPACE_DEPTH, copy, CSPACE_DEPTH, 0),
                       WORDS(INIT_CNODE)));
    EXPECT_EQ(cnode_copy(minted, endpoint, ALL_RIGHTS).error, DELETE_FIRST);
    EXPECT_DONE(cnode_delete(copy));
    EXPECT_DONE(cnode_delete(last));
    EXPECT_DONE(cnode_delete(endpoint));
}

static void interrupts(void)
{
    cptr_t handler = slot_new(), message = slot_new();
    cptr_t signal = object_new(OBJECT_NOTIFICATION, 0);
    /* Of a machine with an I/O APIC, never (ABI 03, section 7.1). */
    EXPECT_EQ(invoke(INIT_IRQ_CONTROL, IRQ_CONTROL_GET, WORDS(1, handler, CSPACE_DEPTH),
                     WORDS(INIT_CNODE))
                  .error,
              ILLEGAL_OPERATION);
    EXPECT_DONE(invoke(INIT_IRQ_CONTROL, IRQ_CONTROL_GET_IOAPIC,
                       WORDS(handler, CSPACE_DEPTH, 0, 22, 0, 0, 40), WORDS(INIT_CNODE)));
    EXPECT_DONE(invoke(INIT_IRQ_CONTROL, IRQ_CONTROL_GET_MSI,
                       WORDS(message, CSPACE_DEPTH, 0, 0, 0, 0, 41), WORDS(INIT_CNODE)));
    EXPECT_DONE(irq_handler_set_notification(handler, signal));
    EXPECT_EQ(irq_handler_set_notification(handler, INIT_TCB).error, INVALID_CAPABILITY);
    EXPECT_DONE(irq_handler_ack(handler));
    EXPECT_DONE(invoke(handler, IRQ_HANDLER_CLEAR, NO_WORDS, NO_WORDS));
    EXPECT_DONE(cnode_delete(handler));
    EXPECT_DONE(cnode_delete(message));
}

static void tables(void)
{
    cptr_t page = object_new(OBJECT_PAGE, 0);
    static const struct {
        enum object_type type;
        enum label map, unmap;
    } levels[] = {
        {OBJECT_PDPT, PDPT_MAP, PDPT_UNMAP},
        {OBJECT_PAGE_DIRECTORY, PAGE_DIRECTORY_MAP, PAGE_DIRECTORY_UNMAP},
        {OBJECT_PAGE_TABLE, PAGE_TABLE_MAP, PAGE_TABLE_UNMAP},
    };
    cptr_t made[3];
    for (unsigned i = 0; i < 3; i++) {
        made[i] = object_new(levels[i].type, 0);
        EXPECT_EQ(page_map(page, INIT_VSPACE, SOMEWHERE, 3).error, FAILED_LOOKUP);
        EXPECT_DONE(table_map(made[i], levels[i].map, INIT_VSPACE, SOMEWHERE));
    }
    EXPECT_DONE(page_map(page, INIT_VSPACE, SOMEWHERE, 3));
    *(volatile word_t *)SOMEWHERE = 1;
    struct result address = page_get_address(page);
    EXPECT_EQ(address.error, NO_ERROR);
    EXPECT_EQ(address.length, 1);
    EXPECT(address.mr[0] % PAGE_BYTES == 0);
    EXPECT_DONE(page_unmap(page));
    for (unsigned i = 3; i > 0; i--)
        EXPECT_DONE(invoke(made[i - 1], levels[i - 1].unmap, NO_WORDS, NO_WORDS));
    EXPECT_EQ(page_map(page, INIT_VSPACE, SOMEWHERE, 3).error, FAILED_LOOKUP);
}

static void identifiers(void)
{
    cptr_t memory = object_new(OBJECT_UNTYPED, 12), pool = slot_new();
    cptr_t space = object_new(OBJECT_PML4, 0);
    EXPECT_DONE(asid_control_make_pool(memory, pool));
    EXPECT_DONE(asid_pool_assign(pool, space));
    EXPECT_EQ(asid_pool_assign(pool, space).error, INVALID_CAPABILITY);
}

/* The scratch register of the first serial port, and ports where nothing is. */
static void ports(void)
{
    cptr_t serial = slot_new(), nothing = slot_new();
    EXPECT_DONE(invoke(INIT_IO_PORT_CONTROL, IO_PORT_CONTROL_ISSUE,
                       WORDS(0x2ff, 0x2ff, serial, CSPACE_DEPTH), WORDS(INIT_CNODE)));
    EXPECT_DONE(invoke(INIT_IO_PORT_CONTROL, IO_PORT_CONTROL_ISSUE,
                       WORDS(0x5000, 0x5003, nothing, CSPACE_DEPTH), WORDS(INIT_CNODE)));
    EXPECT_DONE(invoke(serial, IO_PORT_OUT8, WORDS(0x2ff, 0x5a), NO_WORDS));
    static const struct {
        enum label in, out;
        word_t bytes, none;
    } widths[] = {
        {IO_PORT_IN8, IO_PORT_OUT8, 1, 0xff},
        {IO_PORT_IN16, IO_PORT_OUT16, 2, 0xffff},
        {IO_PORT_IN32, IO_PORT_OUT32, 4, 0xffffffff},
    };
    for (unsigned i = 0; i < 3; i++) {
        struct result in = invoke(nothing, widths[i].in, WORDS(0x5000), NO_WORDS);
        EXPECT_EQ(in.error, NO_ERROR);
        EXPECT_EQ(in.mr[0], widths[i].none);
        EXPECT_DONE(invoke(nothing, widths[i].out, WORDS(0x5000, 0), NO_WORDS));
        /* As wide as that, and no narrower. */
        word_t last = 0x5004 - widths[i].bytes;
        EXPECT_DONE(invoke(nothing, widths[i].in, WORDS(last), NO_WORDS));
        EXPECT(invoke(nothing, widths[i].in, WORDS(last + 1), NO_WORDS).error != NO_ERROR);
        EXPECT(invoke(nothing, widths[i].out, WORDS(last + 1, 0), NO_WORDS).error != NO_ERROR);
    }
}

/* Numbers behind the last are nobody's. */
static void beyond(void)
{
    static const cptr_t initial[] = {INIT_TCB, INIT_CNODE, INIT_IRQ_CONTROL, INIT_ASID_CONTROL,
                                     INIT_ASID_POOL, INIT_IO_PORT_CONTROL, INIT_DOMAIN};
    for (unsigned i = 0; i < sizeof(initial) / sizeof(initial[0]); i++)
        EXPECT_EQ(invoke(initial[i], LAST_LABEL + 1, WORDS(0, 0, 0), WORDS(INIT_CNODE)).error,
                  ILLEGAL_OPERATION);
}

void test_invocations(void)
{
    test("invocations of threads", threads);
    test("invocations of scheduling contexts", contexts);
    test("invocations of CNodes", slots);
    test("invocations of interrupts", interrupts);
    test("invocations of pages and tables", tables);
    test("invocations of address-space identifiers", identifiers);
    test("invocations of I/O ports", ports);
    test("numbers behind the last", beyond);
}
