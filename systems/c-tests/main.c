/* Every role that is short: tasks, and how components end. */

#include "roles.h"

SG_STACK(0x8000);
SG_HEAP(0x8000);

static SG_NORETURN void idle(void)
{
    for (;;)
        sg_spin_us(10);
}

/* Calls somebody who never answers, until its time runs out. */
static int spend(void)
{
    sg_message answer = sg_call(sg_capability("work"), (sg_message){.label = SPIN});
    if (answer.label == ROLLED_BACK && sg_word(&answer, 0) == 4)
        sg_signal(sg_capability("news"));
    return 0;
}

static int do_jobs(void)
{
    uint64_t last = 0;
    for (uint64_t number = 0; number < JOBS; number++) {
        sg_job job = sg_edf_next();
        sg_assert(job.number == number && job.release > last && job.deadline > job.release);
        last = job.release;
    }
    sg_signal(sg_capability("news"));
    for (;;)
        sg_edf_next();
}

static void job(uint64_t number, void *context)
{
    sg_cap *news = context;
    if (number == JOBS - 1)
        sg_signal(*news);
}

static int divide(void)
{
    volatile int zero = 0;
    return 100 / zero;
}

/* Each call has its own kilobyte. */
static int deeper(int depth)
{
    volatile char room[1024];
    room[0] = (char)depth;
    return depth < 1000 ? deeper(depth + 1) + room[0] : 0;
}

static bool is_called(const char *name)
{
    const char *own = sg_name();
    return strlen(own) == strlen(name) && memcmp(own, name, strlen(name)) == 0;
}

int main(void)
{
    if (is_called("client"))
        return client();
    if (is_called("server"))
        server();
    if (is_called("pool"))
        pool();
    if (is_called("spawner"))
        spawner();
    if (is_called("device"))
        device();
    if (is_called("raw"))
        return raw();
    if (is_called("idler"))
        idle();
    if (is_called("spender"))
        return spend();
    if (is_called("task"))
        return do_jobs();
    if (is_called("released")) {
        sg_cap news = sg_capability("news");
        sg_run_released(job, &news);
    }
    if (is_called("quitter"))
        sg_exit(7);
    if (is_called("panicker"))
        sg_panic("there are %d reasons", 3);
    if (is_called("asserter"))
        sg_assert(1 + 1 == 3);
    if (is_called("divider"))
        return divide();
    if (is_called("overrunner"))
        return deeper(0);
    sg_panic("no role is called %s", sg_name());
}
