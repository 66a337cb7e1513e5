/*
 * Notifications.
 */
#include "tour.h"

static cptr_t minted(cptr_t object, word_t badge)
{
    cptr_t slot = slot_new();
    must(cnode_mint(slot, object, RIGHT_WRITE, badge), "a badge");
    return slot;
}

/* Signals that nobody has waited for add up. */
static void badges_add_up(void)
{
    cptr_t notification = object_new(OBJECT_NOTIFICATION, 0);
    EXPECT_EQ(sys_nb_wait(notification).badge, 0);
    sys_signal(minted(notification, 1));
    sys_signal(minted(notification, 4));
    EXPECT_EQ(sys_wait(notification).badge, 5);
    EXPECT_EQ(sys_nb_wait(notification).badge, 0);
}

struct waiter {
    cptr_t cap;
    cptr_t reply;
    cptr_t done;
    word_t badge;
};

static void wait_once(void *argument)
{
    struct waiter *waiter = argument;
    waiter->badge = sys_wait(waiter->cap).badge;
    sys_signal(waiter->done);
}

static void receive_once(void *argument)
{
    struct waiter *waiter = argument;
    sys_signal(waiter->done);
    waiter->badge = sys_recv(waiter->cap, waiter->reply).badge;
    sys_signal(waiter->done);
}

static void signal_wakes_a_waiter(void)
{
    struct waiter waiter = {
        .cap = object_new(OBJECT_NOTIFICATION, 0),
        .done = object_new(OBJECT_NOTIFICATION, 0),
    };
    struct thread *thread = thread_spawn(
        (struct thread_params){.priority = HELPER_PRIORITY, ROUND_ROBIN}, wait_once, &waiter);
    sys_signal(minted(waiter.cap, 11));
    sys_wait(waiter.done);
    EXPECT_EQ(waiter.badge, 11);
    thread_end(thread);
}

/* A notification that is bound to a thread reaches it while it waits for messages. */
static void signal_to_a_receiver(void)
{
    struct waiter waiter = {
        .cap = object_new(OBJECT_ENDPOINT, 0),
        .reply = object_new(OBJECT_REPLY, 0),
        .done = object_new(OBJECT_NOTIFICATION, 0),
    };
    cptr_t bound = object_new(OBJECT_NOTIFICATION, 0);
    struct thread *thread = thread_new(
        (struct thread_params){.priority = HELPER_PRIORITY, ROUND_ROBIN}, receive_once, &waiter);
    EXPECT_DONE(tcb_bind_notification(thread->tcb, bound));
    thread_start(thread);
    sys_wait(waiter.done);
    sys_signal(minted(bound, 12));
    sys_wait(waiter.done);
    EXPECT_EQ(waiter.badge, 12);
    EXPECT_DONE(tcb_unbind_notification(thread->tcb));
    thread_end(thread);
}

void test_signals(void)
{
    test("badges_add_up", badges_add_up);
    test("signal_wakes_a_waiter", signal_wakes_a_waiter);
    test("signal_to_a_receiver", signal_to_a_receiver);
}
