/*
 * Processor time as a resource: budgets, timeout faults, periods.
 */
#include "tour.h"

#define BUDGET_US 2000
#define PERIOD_US 10000
#define CONTEXT_BADGE 0x71e
/* A budget is used up when less than this, in µs, is left of it (ABI 04, section 1). */
#define MIN_BUDGET_US 20

static bool has_clock;

static void read_clock(void *argument)
{
    timestamp();
    sys_send(*(cptr_t *)argument, empty_message());
}

/* Programs of some kernels for aarch64 cannot read the counter, which is a fault then. */
static void clock_is_read(void)
{
    cptr_t endpoint = object_new(OBJECT_ENDPOINT, 0);
    struct thread *thread = thread_spawn(
        (struct thread_params){.priority = HELPER_PRIORITY, ROUND_ROBIN, .fault_handler = endpoint},
        read_clock, &endpoint);
    struct message message = sys_recv(endpoint, object_new(OBJECT_REPLY, 0));
    has_clock = info_label(message.info) == 0;
    if (!has_clock) {
        EXPECT_EQ(info_label(message.info), FAULT_USER_EXCEPTION);
        say("  programs of this kernel cannot read the counter\n");
    }
    thread_end(thread);
}

/* The counter, if there is one. */
static word_t now(void)
{
    return has_clock ? timestamp() : 0;
}

static volatile bool stop;
static volatile word_t turns;

/* Takes time until it is stopped; then says so at an endpoint. */
static void spin(void *argument)
{
    cptr_t done = *(cptr_t *)argument;
    while (!stop)
        turns++;
    sys_send(done, empty_message());
}

/*
 * Who uses up its budget faults to its timeout handler, which may give it more. In real time on a
 * busy host a budget may pass before the thread's first instruction, hence the loops.
 */
static void timeout_fault(void)
{
    cptr_t endpoint = object_new(OBJECT_ENDPOINT, 0);
    cptr_t reply = object_new(OBJECT_REPLY, 0);
    stop = false;
    turns = 0;
    struct thread *thread = thread_new((struct thread_params){.priority = HELPER_PRIORITY,
                                                              .budget = BUDGET_US,
                                                              .period = PERIOD_US,
                                                              .badge = CONTEXT_BADGE},
                                       spin, &endpoint);
    EXPECT_DONE(tcb_set_timeout_endpoint(thread->tcb, endpoint));
    thread_start(thread);
    struct message fault = sys_recv(endpoint, reply);
    while (info_label(fault.info) == FAULT_TIMEOUT) {
        EXPECT_EQ(info_length(fault.info), 2);
        EXPECT_EQ(fault.mr[0], CONTEXT_BADGE);
        EXPECT(fault.mr[1] >= BUDGET_US - MIN_BUDGET_US);
        stop = turns > 0;
        EXPECT_DONE(sched_control_configure(boot_info->sched_control.start, thread->context,
                                            BUDGET_US, PERIOD_US, CONTEXT_BADGE));
        fault = sys_reply_recv(endpoint, empty_message(), reply);
    }
    /* It would not have ended without a fault. */
    EXPECT(stop);
    thread_end(thread);
}

#define JOBS 5

struct periodic {
    cptr_t done;
    word_t starts[JOBS];
};

static void periodic_jobs(void *argument)
{
    struct periodic *periodic = argument;
    for (unsigned i = 0; i < JOBS; i++) {
        periodic->starts[i] = now();
        sys_yield();
    }
    sys_signal(periodic->done);
}

/*
 * A thread that yields gives up the rest of its budget, and gets the next a period later. That
 * holds for jobs that stay within their budgets; in real time on a busy host it may take some
 * attempts to have five of them.
 */
static void periodic_thread(void)
{
    enum { ATTEMPTS = 50 };
    struct periodic periodic = {.done = object_new(OBJECT_NOTIFICATION, 0)};
    word_t before = 0, consumed = BUDGET_US;
    for (unsigned i = 0; i < ATTEMPTS && consumed >= BUDGET_US; i++) {
        before = now();
        struct thread *thread = thread_spawn((struct thread_params){.priority = HELPER_PRIORITY,
                                                                    .budget = BUDGET_US,
                                                                    .period = PERIOD_US},
                                             periodic_jobs, &periodic);
        sys_wait(periodic.done);
        consumed = sched_context_consumed(thread->context).mr[0];
        thread_end(thread);
    }
    EXPECT(consumed < BUDGET_US);
    for (unsigned i = 0; has_clock && i < JOBS; i++)
        EXPECT(periodic.starts[i] - before >= i * PERIOD_US * ticks_per_us());
}

/* Two threads of one priority share the processor in slices, and the first one stops them. */
static void round_robin(void)
{
    cptr_t endpoint = object_new(OBJECT_ENDPOINT, 0);
    cptr_t reply = object_new(OBJECT_REPLY, 0);
    stop = false;
    struct thread_params params = {.priority = HELPER_PRIORITY - 1, .budget = 1000,
                                   .period = 1000};
    struct thread *spinners[] = {thread_spawn(params, spin, &endpoint),
                                 thread_spawn(params, spin, &endpoint)};
    /* Ends after some periods, in which the others run. */
    struct periodic periodic = {.done = object_new(OBJECT_NOTIFICATION, 0)};
    struct thread *clock = thread_spawn((struct thread_params){.priority = HELPER_PRIORITY,
                                                               .budget = BUDGET_US,
                                                               .period = PERIOD_US},
                                        periodic_jobs, &periodic);
    sys_wait(periodic.done);
    stop = true;
    for (unsigned i = 0; i < 2; i++) {
        word_t consumed = sched_context_consumed(spinners[i]->context).mr[0];
        EXPECT(consumed >= PERIOD_US);
    }
    for (unsigned i = 0; i < 2; i++)
        sys_recv(endpoint, reply);
    for (unsigned i = 0; i < 2; i++)
        thread_end(spinners[i]);
    thread_end(clock);
}

void test_time(void)
{
    test("clock_is_read", clock_is_read);
    test("timeout_fault", timeout_fault);
    test("periodic_thread", periodic_thread);
    test("round_robin", round_robin);
}
