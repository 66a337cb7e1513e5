/*
 * A debugger watches another thread by the hardware-debug API, where there is one (ABI 09, section 3).
 */
#include "stock.h"

#if HAS_DEBUG_API
#define FAULT_DEBUG_EXCEPTION 4
#define REASON_DATA 0
#define WATCH_DATA 0
#define WATCH_WRITE 1

static volatile word_t watched, other;

static void write(void *argument)
{
    (void)argument;
    for (word_t i = 1; i <= 3; i++) {
        other = i;
        watched = i;
    }
    __builtin_trap();
}

/* Each write is told behind it, with what is watched; who writes elsewhere, or is not watched, goes on. On `core`. */
static void watch_on(word_t core)
{
    cptr_t endpoint = object_new(OBJECT_ENDPOINT, 0), reply = object_new(OBJECT_REPLY, 0);
    struct thread *thread = thread_new(
        (struct thread_params){.priority = 100, ROUND_ROBIN, .fault_handler = endpoint}, write, NULL);
    EXPECT_DONE(sched_control_configure(boot_info->sched_control.start + core, thread->context, 5000, 5000, 0));
    EXPECT_DONE(invoke(thread->tcb, TCB_SET_BREAKPOINT,
                       WORDS(2, (word_t)&watched, WATCH_DATA, 4, WATCH_WRITE), NO_WORDS));
    thread_start(thread);
    for (word_t i = 1; i <= 3; i++) {
        struct message fault = sys_recv(endpoint, reply);
        EXPECT_EQ(info_label(fault.info), FAULT_DEBUG_EXCEPTION);
        EXPECT_EQ(fault.mr[1], REASON_DATA);
        EXPECT_EQ(fault.mr[2], (word_t)&watched);
        EXPECT_EQ(fault.mr[3], 2);
        EXPECT_EQ(watched, i);
        EXPECT_EQ(other, i);
        /* The debugger itself is not watched. */
        watched = 0;
        sys_send(reply, empty_message());
    }
    struct message end = sys_recv(endpoint, reply);
    EXPECT_EQ(info_label(end.info), FAULT_USER_EXCEPTION);
    thread_end(thread);
}

static void watchpoint(void)
{
    watch_on(0);
}

/* The last that runs: the debugger's own, if there is no other. */
static void watchpoint_elsewhere(void)
{
    watch_on(boot_info->num_nodes - 1);
}
#endif

void test_debugger(void)
{
#if HAS_DEBUG_API
    test("a debugger sees another thread's writes", watchpoint);
    test("and those of a thread on another core", watchpoint_elsewhere);
#endif
}
