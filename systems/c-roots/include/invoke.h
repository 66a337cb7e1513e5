/*
 * Invocations of kernel objects (ABI page 03): messages to their capabilities, answered like calls.
 *
 * Slots are named by their number in the initial CSpace, whose operations have depth 64.
 */
#ifndef INVOKE_H
#define INVOKE_H

#include "syscalls.h"

#define CSPACE_DEPTH 64u

/* Where this thread's IPC buffer is: nothing but the thread itself knows. */
extern __thread struct ipc_buffer *ipc_buffer;

/* The answer to an invocation; the words mean what its label says (errors: 03, section 1). */
struct result {
    enum error error;
    word_t length;
    word_t mr[REGISTER_WORDS];
};

struct result invoke(cptr_t cap, enum label label, size_t arg_count, const word_t *args,
                     size_t cap_count, const cptr_t *caps);

#define WORDS(...) sizeof((word_t[]){__VA_ARGS__}) / sizeof(word_t), (word_t[]){__VA_ARGS__}
#define NO_WORDS 0, NULL

static inline struct result untyped_retype(cptr_t untyped, enum object_type type, word_t size_bits,
                                           cptr_t first_slot, word_t count)
{
    return invoke(untyped, UNTYPED_RETYPE, WORDS(type, size_bits, 0, 0, first_slot, count),
                  WORDS(INIT_CNODE));
}

static inline struct result cnode_delete(cptr_t slot)
{
    return invoke(INIT_CNODE, CNODE_DELETE, WORDS(slot, CSPACE_DEPTH), NO_WORDS);
}

static inline struct result cnode_revoke(cptr_t slot)
{
    return invoke(INIT_CNODE, CNODE_REVOKE, WORDS(slot, CSPACE_DEPTH), NO_WORDS);
}

static inline struct result cnode_copy(cptr_t destination, cptr_t source, word_t rights)
{
    return invoke(INIT_CNODE, CNODE_COPY,
                  WORDS(destination, CSPACE_DEPTH, source, CSPACE_DEPTH, rights),
                  WORDS(INIT_CNODE));
}

/* Into the CNode `root`, which has `depth` bits. */
static inline struct result cnode_copy_into(cptr_t root, word_t index, word_t depth, cptr_t source)
{
    return invoke(root, CNODE_COPY, WORDS(index, depth, source, CSPACE_DEPTH, ALL_RIGHTS),
                  WORDS(INIT_CNODE));
}

static inline struct result cnode_mint(cptr_t destination, cptr_t source, word_t rights,
                                       word_t data)
{
    return invoke(INIT_CNODE, CNODE_MINT,
                  WORDS(destination, CSPACE_DEPTH, source, CSPACE_DEPTH, rights, data),
                  WORDS(INIT_CNODE));
}

static inline struct result cnode_move(cptr_t destination, cptr_t source)
{
    return invoke(INIT_CNODE, CNODE_MOVE,
                  WORDS(destination, CSPACE_DEPTH, source, CSPACE_DEPTH), WORDS(INIT_CNODE));
}

/* The data word of a CNode capability: its guard. */
static inline word_t cnode_guard(word_t guard, word_t guard_bits)
{
    return guard << 6 | guard_bits;
}

static inline struct result tcb_configure(cptr_t tcb, cptr_t cspace, word_t cspace_data,
                                          cptr_t vspace, word_t buffer, cptr_t buffer_frame)
{
    return invoke(tcb, TCB_CONFIGURE, WORDS(cspace_data, 0, buffer),
                  WORDS(cspace, vspace, buffer_frame));
}

static inline struct result tcb_set_space(cptr_t tcb, cptr_t fault_handler, cptr_t cspace,
                                          word_t cspace_data, cptr_t vspace)
{
    return invoke(tcb, TCB_SET_SPACE, WORDS(cspace_data, 0),
                  WORDS(fault_handler, cspace, vspace));
}

static inline struct result tcb_set_sched_params(cptr_t tcb, word_t mcp, word_t priority,
                                                 cptr_t context, cptr_t fault_handler)
{
    return invoke(tcb, TCB_SET_SCHED_PARAMS, WORDS(mcp, priority),
                  WORDS(INIT_TCB, context, fault_handler));
}

static inline struct result tcb_set_timeout_endpoint(cptr_t tcb, cptr_t endpoint)
{
    return invoke(tcb, TCB_SET_TIMEOUT_ENDPOINT, NO_WORDS, WORDS(endpoint));
}

static inline struct result tcb_set_priority(cptr_t tcb, word_t priority)
{
    return invoke(tcb, TCB_SET_PRIORITY, WORDS(priority), WORDS(INIT_TCB));
}

static inline struct result tcb_bind_notification(cptr_t tcb, cptr_t notification)
{
    return invoke(tcb, TCB_BIND_NOTIFICATION, NO_WORDS, WORDS(notification));
}

static inline struct result tcb_unbind_notification(cptr_t tcb)
{
    return invoke(tcb, TCB_UNBIND_NOTIFICATION, NO_WORDS, NO_WORDS);
}

static inline struct result tcb_set_tls_base(cptr_t tcb, word_t base)
{
    return invoke(tcb, TCB_SET_TLS_BASE, WORDS(base), NO_WORDS);
}

static inline struct result tcb_set_flags(cptr_t tcb, word_t clear, word_t set)
{
    return invoke(tcb, TCB_SET_FLAGS, WORDS(clear, set), NO_WORDS);
}

static inline struct result tcb_suspend(cptr_t tcb)
{
    return invoke(tcb, TCB_SUSPEND, NO_WORDS, NO_WORDS);
}

static inline struct result tcb_resume(cptr_t tcb)
{
    return invoke(tcb, TCB_RESUME, NO_WORDS, NO_WORDS);
}

struct result tcb_write_registers(cptr_t tcb, bool resume, const word_t registers[USER_REGISTERS]);
struct result tcb_read_registers(cptr_t tcb, bool suspend, word_t registers[USER_REGISTERS]);

/* Times in µs; with `budget` equal to `period`, round robin. */
static inline struct result sched_control_configure(cptr_t control, cptr_t context, word_t budget,
                                                    word_t period, word_t badge)
{
    return invoke(control, SCHED_CONTROL_CONFIGURE_FLAGS, WORDS(budget, period, 0, badge, 0),
                  WORDS(context));
}

static inline struct result sched_context_bind(cptr_t context, cptr_t object)
{
    return invoke(context, SCHED_CONTEXT_BIND, NO_WORDS, WORDS(object));
}

static inline struct result sched_context_unbind_object(cptr_t context, cptr_t object)
{
    return invoke(context, SCHED_CONTEXT_UNBIND_OBJECT, NO_WORDS, WORDS(object));
}

static inline struct result sched_context_consumed(cptr_t context)
{
    return invoke(context, SCHED_CONTEXT_CONSUMED, NO_WORDS, NO_WORDS);
}

static inline struct result page_map(cptr_t page, cptr_t vspace, word_t vaddr, word_t rights)
{
    return invoke(page, PAGE_MAP, WORDS(vaddr, rights, OF_MEMORY), WORDS(vspace));
}

static inline struct result page_unmap(cptr_t page)
{
    return invoke(page, PAGE_UNMAP, NO_WORDS, NO_WORDS);
}

static inline struct result page_get_address(cptr_t page)
{
    return invoke(page, PAGE_GET_ADDRESS, NO_WORDS, NO_WORDS);
}

/* `label` says which table: PDPT_MAP, PAGE_DIRECTORY_MAP, PAGE_TABLE_MAP. */
static inline struct result table_map(cptr_t table, enum label label, cptr_t vspace, word_t vaddr)
{
    return invoke(table, label, WORDS(vaddr, 0), WORDS(vspace));
}

static inline struct result asid_control_make_pool(cptr_t untyped, cptr_t slot)
{
    return invoke(INIT_ASID_CONTROL, ASID_CONTROL_MAKE_POOL, WORDS(slot, CSPACE_DEPTH),
                  WORDS(untyped, INIT_CNODE));
}

static inline struct result asid_pool_assign(cptr_t pool, cptr_t vspace)
{
    return invoke(pool, ASID_POOL_ASSIGN, NO_WORDS, WORDS(vspace));
}

static inline struct result irq_handler_ack(cptr_t handler)
{
    return invoke(handler, IRQ_HANDLER_ACK, NO_WORDS, NO_WORDS);
}

static inline struct result irq_handler_set_notification(cptr_t handler, cptr_t notification)
{
    return invoke(handler, IRQ_HANDLER_SET_NOTIFICATION, NO_WORDS, WORDS(notification));
}

#endif
