/*
 * Processes: threads with a capability space and an address space of their own.
 */
#include "tour.h"

/* The child's capability space: 16 slots, found by pointers of which the last 4 bits count. */
#define CHILD_RADIX 4
#define CHILD_GUARD_BITS (64 - CHILD_RADIX)

enum { CHILD_ENDPOINT = 1, CHILD_TCB = 2 };

static volatile word_t shared_variable = 1;

static void child(void *argument)
{
    (void)argument;
    /* Its pages are the parent's, by other capabilities. */
    shared_variable = 2;
    struct message answer = sys_call(CHILD_ENDPOINT, word_message(1, 20));
    sys_call(CHILD_ENDPOINT, word_message(2, answer.mr[0] + 1));
}

/* An address space in which all of this program is where it is here. */
static cptr_t clone_of_vspace(void)
{
    cptr_t vspace = object_new(OBJECT_PML4, 0);
    must(asid_pool_assign(INIT_ASID_POOL, vspace), "an address space");
    word_t vaddr = image_range().start;
    struct slot_region frames = boot_info->user_image_frames;
    for (cptr_t frame = frames.start; frame < frames.end; frame++, vaddr += PAGE_BYTES) {
        cptr_t copy = slot_new();
        must(cnode_copy(copy, frame, ALL_RIGHTS), "a frame");
        map_with_tables(copy, vspace, vaddr, RIGHT_READ | RIGHT_WRITE);
    }
    return vspace;
}

static void process(void)
{
    cptr_t endpoint = object_new(OBJECT_ENDPOINT, 0);
    cptr_t reply = object_new(OBJECT_REPLY, 0);
    cptr_t vspace = clone_of_vspace();
    cptr_t cspace = object_new(OBJECT_CNODE, CHILD_RADIX);
    struct thread *thread = thread_new(
        (struct thread_params){.priority = HELPER_PRIORITY, ROUND_ROBIN}, child, NULL);
    EXPECT_DONE(cnode_copy_into(cspace, CHILD_ENDPOINT, CHILD_RADIX, endpoint));
    EXPECT_DONE(cnode_copy_into(cspace, CHILD_TCB, CHILD_RADIX, thread->tcb));
    EXPECT_DONE(
        tcb_set_space(thread->tcb, 0, cspace, cnode_guard(0, CHILD_GUARD_BITS), vspace));
    thread_start(thread);

    struct message request = sys_recv(endpoint, reply);
    EXPECT_EQ(info_label(request.info), 1);
    EXPECT_EQ(shared_variable, 2);
    request = sys_reply_recv(endpoint, word_message(0, 2 * request.mr[0]), reply);
    EXPECT_EQ(info_label(request.info), 2);
    EXPECT_EQ(request.mr[0], 41);
    thread_end(thread);
    EXPECT_DONE(cnode_delete(cspace));
    EXPECT_DONE(cnode_delete(vspace));
}

/*
 * A root task that needs more than 8192 slots puts another level above its first CNode and goes on
 * with the same pointers, as allocators do when they start.
 */
static void second_level_of_slots(void)
{
    enum { TOP_RADIX = 2 };
    unsigned low_bits = boot_info->init_thread_cnode_size_bits;
    unsigned guard_bits = 64 - TOP_RADIX - low_bits;
    cptr_t top = object_new(OBJECT_CNODE, TOP_RADIX);
    cptr_t low = slot_new();
    EXPECT_DONE(cnode_mint(low, INIT_CNODE, ALL_RIGHTS, cnode_guard(0, 0)));
    EXPECT_DONE(cnode_copy_into(top, 0, TOP_RADIX, low));
    cptr_t more = object_new(OBJECT_CNODE, low_bits);
    EXPECT_DONE(cnode_copy_into(top, 1, TOP_RADIX, more));

    EXPECT_DONE(tcb_set_space(INIT_TCB, 0, top, cnode_guard(0, guard_bits), INIT_VSPACE));
    /* All pointers mean what they meant, and there are new ones. */
    EXPECT_DONE(tcb_set_priority(INIT_TCB, 255));
    EXPECT_DONE(cnode_copy_into(more, 5, low_bits, object_new(OBJECT_NOTIFICATION, 0)));
    cptr_t high = (1ul << low_bits) + 5;
    sys_signal(high);
    sys_wait(high);
    EXPECT_DONE(tcb_set_space(INIT_TCB, 0, INIT_CNODE, 0, INIT_VSPACE));
    EXPECT_DONE(tcb_set_priority(INIT_TCB, 255));
}

void test_spaces(void)
{
    test("process", process);
    test("second_level_of_slots", second_level_of_slots);
}
