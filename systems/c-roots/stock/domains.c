/*
 * Sixteen domains share the processor in the turns of their schedule (ABI 04, section 11; ABI 09, section 5). Where there is
 * one, there is nothing to share, and the numbers are checked.
 */
#include "stock.h"

/* Ticks of the counter in a µs; until it is read, turns have no length. */
static word_t mhz;

static struct result configure(word_t index, word_t domain, word_t us)
{
    return invoke(INIT_DOMAIN, DOMAIN_SCHEDULE_CONFIGURE, WORDS(index, domain, us * mhz), NO_WORDS);
}

static struct result set_start(word_t index)
{
    return invoke(INIT_DOMAIN, DOMAIN_SCHEDULE_SET_START, WORDS(index), NO_WORDS);
}

static struct result set_domain(cptr_t tcb, word_t domain)
{
    return invoke(INIT_DOMAIN, DOMAIN_SET, WORDS(domain), WORDS(tcb));
}

#if DOMAINS > 1
/* Lengths of the turns of domains 0, 1 and 2, µs. */
static const word_t TURNS_US[3] = {500, 2000, 1000};
#define ROUND_US 3500ul
/* By how much a turn may differ (ABI 09, section 5: it ends early if the kernel is entered shortly before). */
#define EARLY_US 20ul
#define LATE_US 20ul
#define RUNS 12u

/* When a thread ran without a break, by the counter. */
struct log {
    volatile unsigned count;
    struct {
        word_t from, to;
    } runs[RUNS];
};
static struct log logs[2];
static word_t read_mhz(void)
{
    const uint8_t *chunk = (const uint8_t *)boot_info + PAGE_BYTES;
    const uint8_t *end = chunk + boot_info->extra_len;
    for (; chunk < end; chunk += ((const struct extra_chunk *)chunk)->length) {
        if (((const struct extra_chunk *)chunk)->id == EXTRA_TSC_MHZ)
            return *(const uint32_t *)(chunk + sizeof(struct extra_chunk));
    }
    return 0;
}

/* Notes when it runs, until it has run often enough. */
static void watch(void *argument)
{
    struct log *log = argument;
    word_t from = timestamp(), last = from;
    while (log->count < RUNS) {
        word_t now = timestamp();
        if (now - last > 100 * mhz) {
            log->runs[log->count].from = from;
            log->runs[log->count].to = last;
            log->count = log->count + 1;
            from = now;
        }
        last = now;
    }
}

/* In the turn of each domain its thread runs, and nobody else does, however high. */
static void shares(void)
{
    mhz = read_mhz();
    EXPECT(mhz != 0);
    struct thread *threads[2];
    for (word_t i = 0; i < 2; i++) {
        logs[i].count = 0;
        threads[i] =
            thread_new((struct thread_params){.priority = 254, ROUND_ROBIN}, watch, &logs[i]);
        EXPECT_DONE(set_domain(threads[i]->tcb, i + 1));
        thread_start(threads[i]);
    }
    for (word_t i = 0; i < 3; i++)
        EXPECT_DONE(configure(i, i, TURNS_US[i]));
    EXPECT_DONE(set_start(0));
    word_t limit = timestamp() + 2 * RUNS * ROUND_US * mhz;
    while ((logs[0].count < RUNS || logs[1].count < RUNS) && timestamp() < limit) {
    }
    EXPECT(logs[0].count == RUNS && logs[1].count == RUNS);
    for (word_t i = 0; i < 2; i++) {
        /* The first began somewhere. */
        for (unsigned run = 1; run < RUNS; run++) {
            word_t from = logs[i].runs[run].from, to = logs[i].runs[run].to;
            word_t turn = TURNS_US[i + 1] * mhz;
            EXPECT(to - from >= turn - EARLY_US * mhz && to - from <= turn + LATE_US * mhz);
            word_t round = from - logs[i].runs[run - 1].from;
            if (run > 1)
                EXPECT(round >= (ROUND_US - 3 * EARLY_US) * mhz &&
                       round <= (ROUND_US + 3 * LATE_US) * mhz);
        }
    }
    /* One behind the other: the second begins when the first has ended. */
    for (unsigned run = 1; run < RUNS; run++)
        EXPECT(logs[1].runs[run].from - logs[0].runs[run].to <= LATE_US * mhz);
    EXPECT_DONE(configure(1, 0, 0));
    EXPECT_DONE(set_start(0));
    thread_end(threads[0]);
    thread_end(threads[1]);
}

static cptr_t wake;
static volatile bool woken;

static void wait_for_it(void *argument)
{
    (void)argument;
    sys_wait(wake);
    woken = true;
}

/* Who is woken in another domain waits for its turn. */
static void woken_in_another(void)
{
    wake = object_new(OBJECT_NOTIFICATION, 0);
    struct thread *thread =
        thread_spawn((struct thread_params){.priority = 254, ROUND_ROBIN}, wait_for_it, NULL);
    /* It comes to its wait. */
    EXPECT_DONE(tcb_set_priority(INIT_TCB, 253));
    EXPECT_DONE(set_domain(thread->tcb, DOMAINS - 1));
    sys_send(wake, empty_message());
    EXPECT(!woken);
    /* A turn of its own, in which the call that makes it begin does not return. */
    EXPECT_DONE(configure(0, DOMAINS - 1, 1000));
    EXPECT_DONE(configure(1, 0, 10000));
    EXPECT_DONE(configure(2, 0, 0));
    word_t before = timestamp();
    EXPECT_DONE(set_start(0));
    word_t passed = timestamp() - before;
    EXPECT(woken);
    EXPECT(passed >= (1000 - EARLY_US) * mhz && passed <= (1000 + LATE_US) * mhz);
    EXPECT_DONE(configure(0, 0, 10000));
    EXPECT_DONE(tcb_set_priority(INIT_TCB, 255));
    thread_end(thread);
}

/* Who puts itself into another domain goes on when that has its turn. */
static void oneself(void)
{
    EXPECT_DONE(configure(0, 0, 1000));
    EXPECT_DONE(configure(1, 3, 1000));
    EXPECT_DONE(configure(2, 0, 0));
    EXPECT_DONE(set_start(0));
    word_t before = timestamp();
    EXPECT_DONE(set_domain(INIT_TCB, 3));
    word_t passed = timestamp() - before;
    EXPECT(passed >= (1000 - EARLY_US - 20) * mhz && passed <= (1000 + LATE_US) * mhz);
    before = timestamp();
    EXPECT_DONE(set_domain(INIT_TCB, 0));
    passed = timestamp() - before;
    EXPECT(passed >= (1000 - EARLY_US - 20) * mhz && passed <= (1000 + LATE_US) * mhz);
    EXPECT_DONE(configure(1, 0, 0));
}
#endif

static void ranges(void)
{
    EXPECT_EQ(set_domain(INIT_TCB, DOMAINS).error, INVALID_ARGUMENT);
    struct result result = configure(SCHEDULE_ENTRIES - 1, 0, 1000);
    EXPECT_EQ(result.error, RANGE_ERROR);
    EXPECT_EQ(result.mr[1], SCHEDULE_ENTRIES - 2);
    result = configure(0, DOMAINS, 1000);
    EXPECT_EQ(result.error, RANGE_ERROR);
    EXPECT_EQ(result.mr[1], DOMAINS - 1);
    result = set_start(SCHEDULE_ENTRIES);
    EXPECT_EQ(result.error, RANGE_ERROR);
    EXPECT_EQ(result.mr[1], SCHEDULE_ENTRIES - 1);
    EXPECT_EQ(set_start(SCHEDULE_ENTRIES - 1).error, INVALID_ARGUMENT);
}

void test_domains(void)
{
#if DOMAINS > 1
    test("domains share the processor as scheduled", shares);
    test("who is woken in another domain waits for its turn", woken_in_another);
    test("who changes its own domain goes on there", oneself);
#endif
    test("numbers of domains and entries are checked", ranges);
}
