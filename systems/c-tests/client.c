/* The tests. */

#include "roles.h"

static unsigned passed, failed;

static void check(bool holds, const char *what, int line)
{
    if (holds) {
        passed++;
    } else {
        failed++;
        sg_printf("client.c:%d: failed: %s\n", line, what);
    }
}

#define CHECK(condition) check(condition, #condition, __LINE__)

static bool is_text(const char *a, const char *b)
{
    return strlen(a) == strlen(b) && memcmp(a, b, strlen(a)) == 0;
}

/* Waits for news until all of `flags` came. */
static void await(uint64_t flags)
{
    static uint64_t seen;
    while ((seen & flags) != flags)
        seen |= sg_wait(sg_capability("news"));
}

static void environment(void)
{
    CHECK(is_text(sg_name(), "client") && sg_name() == sg_name());
    CHECK(sg_capability("news") != SG_NO_CAP && sg_find_capability("news") == sg_capability("news"));
    CHECK(sg_find_capability("nothing") == SG_NO_CAP);
    CHECK(sg_memory("start").length == 4096 && sg_find_memory("start").address == sg_memory("start").address);
    CHECK(sg_find_memory("nothing").address == NULL);
    CHECK(sg_parameter("answer") == 42 && sg_parameter_or("answer", 1) == 42 && sg_parameter_or("nothing", 1) == 1);
    CHECK(is_text(sg_error_text(SG_OK), "no error") && is_text(sg_error_text(12345), "an unknown error"));
}

static void heap(void)
{
    char *block = sg_malloc(100), *zeros = sg_calloc(10, 10), *aligned = sg_aligned_alloc(256, 10);
    CHECK(block != NULL && zeros != NULL && (uintptr_t)aligned % 256 == 0);
    memset(block, 7, 100);
    block = sg_realloc(block, 200);
    CHECK(block != NULL && block[99] == 7 && zeros[99] == 0);
    memcpy(zeros, block, 100);
    memmove(zeros + 1, zeros, 99);
    CHECK(zeros[99] == 7);
    sg_free(block);
    sg_free(zeros);
    sg_free(aligned);
    CHECK(sg_malloc(1 << 20) == NULL);
    for (int i = 0; i < 1000; i++) {
        block = sg_malloc(1000);
        if (block == NULL)
            break;
        sg_free(block);
    }
    CHECK(block != NULL);
}

static void console(void)
{
    char buffer[16];
    CHECK(sg_snprintf(buffer, sizeof buffer, "%s %5.2f %#x", "is", 3.14159, 255) == 13);
    CHECK(is_text(buffer, "is  3.14 0xff"));
    CHECK(sg_snprintf(buffer, 4, "%d", 123456) == 6 && is_text(buffer, "123"));
    /* More arguments than there are registers. */
    int bytes = sg_printf("%d %d %d %d %d %d %d %d %.1f %s\n", 1, 2, 3, 4, 5, 6, 7, 8, 9.5, "ten");
    CHECK(bytes == 24);
    sg_log(SG_LOG_WARNING, "the log has %d line", 1);
    sg_log(SG_LOG_TRACE, "this is too much");
    sg_report_alive();
    sg_rest();
    sg_puts("a line");
    sg_write((const uint8_t *)"bytes\n", 6);
}

static void time(void)
{
    CHECK(sg_ticks_per_us() > 0 && sg_us_to_ticks(10) == 10 * (uint64_t)sg_ticks_per_us());
    CHECK(sg_ticks_to_us(sg_us_to_ticks(1234)) == 1234 && sg_ticks_to_ns(sg_us_to_ticks(3)) == 3000);
    uint64_t begin = sg_ticks(), begin_us = sg_now_us();
    sg_spin_us(100);
    CHECK(sg_ticks_to_us(sg_ticks() - begin) >= 100 && sg_now_us() - begin_us >= 100);

    sg_releases releases = {.at = 100, .period = 10, .skip_missed = true};
    sg_release first = sg_next_release(&releases, 95), second = sg_next_release(&releases, 137);
    CHECK(first.number == 0 && first.at == 100 && second.number == 4 && second.at == 140);
    sg_mark_release(0, begin);
    sg_mark_deadline(0, begin + sg_us_to_ticks(1000000));
    sg_mark_end(0);
    sg_mark_note(1, 2);
    sg_yield();
}

static void timers(void)
{
    sg_timer timer = sg_timer_named("clock"), second = timer, third = timer;
    second.number = 1;
    third.number = 2;
    bool is_set = false;
    uint64_t count = 0, begin = sg_ticks(), ms = sg_us_to_ticks(1000);
    CHECK(sg_set_timer(timer, begin + 2 * ms, &is_set) == SG_OK && is_set);
    CHECK((sg_wait(timer.signal) & 1) == 1 && sg_ticks() >= begin + 2 * ms);
    CHECK(sg_timer_expiries(timer, &count) == SG_OK && count == 1);
    CHECK(sg_set_timer(timer, begin, &is_set) == SG_OK && !is_set);
    CHECK(sg_set_timer(third, begin, NULL) == SG_NO_SUCH_TIMER);
    CHECK(sg_repeat_timer(second, begin, ms / 2) == SG_TOO_FREQUENT);
    CHECK(sg_repeat_timer(second, sg_ticks() + 50 * ms, 50 * ms) == SG_OK);
    CHECK(sg_cancel_timer(second, &is_set) == SG_OK && is_set);
    CHECK(sg_cancel_timer(second, &is_set) == SG_OK && !is_set);
    CHECK(sg_wait_until(timer, sg_ticks() + ms) == SG_OK && sg_ticks() >= begin + 3 * ms);

    sg_releases releases;
    CHECK(sg_start_releases(&releases, timer, 5000, false) == SG_OK);
    for (uint64_t number = 0; number < 3; number++) {
        sg_release release = sg_wait_for_release(&releases, timer);
        CHECK(release.number == number && sg_ticks() >= release.at && sg_ticks() < release.at + 5 * ms);
    }
    CHECK(sg_cancel_timer(timer, NULL) == SG_OK);
}

static void calls(void)
{
    sg_cap work = sg_capability("work");
    sg_message answer = sg_call(work, (sg_message){.label = NEXT, .length = 1, .words = {41}});
    CHECK(answer.label == DONE && sg_word(&answer, 0) == 3 && sg_word(&answer, 1) == 42 && sg_word(&answer, 2) == 0);

    sg_message sum = {.label = SUM};
    for (uint64_t i = 0; i < SG_MESSAGE_WORDS; i++)
        sg_assert(sg_add_word(&sum, i));
    CHECK(!sg_add_word(&sum, 0));
    answer = sg_call(work, sum);
    CHECK(sg_word(&answer, 0) == 120 && sg_word(&answer, 1) == 7140);
    static const uint64_t words[] = {1, 2, 3, 4, 5, 6};
    answer = sg_call(work, sg_long_message(SUM, words, 6));
    CHECK(sg_word(&answer, 0) == 6 && sg_word(&answer, 1) == 21);

    sg_message badge = {.label = BADGE};
    CHECK(sg_add_capability(&badge, work));
    answer = sg_call(work, badge);
    CHECK(sg_word(&answer, 0) == 1 && sg_word(&answer, 1) == 3);

}

static void servers(void)
{
    sg_message next = {.label = NEXT, .length = 1, .words = {1}};
    sg_message answer = sg_call(sg_capability("pool"), next);
    CHECK(sg_word(&answer, 0) == 2 && sg_word(&answer, 1) == 2);

    sg_cap hall = sg_capability("hall");
    /* By the capability that the spawner received. */
    CHECK(sg_poll(sg_capability("given")) == 1 && sg_poll(sg_capability("given")) == 0);
    answer = sg_call(hall, (sg_message){.label = SLOTS});
    CHECK(answer.label == DONE && sg_word(&answer, 0) == 1);
    answer = sg_call(hall, next);
    CHECK(sg_word(&answer, 1) == 2);

    sg_cap disk = sg_capability("disk");
    answer = sg_call(disk, next);
    CHECK(answer.label == DONE && sg_word(&answer, 1) == 2);
    sg_signal(sg_capability("go-signal"));
    answer = sg_call(disk, (sg_message){.label = LATER});
    CHECK(answer.label == LATER && sg_word(&answer, 0) == 1);

    sg_cap raw = sg_capability("raw"), raw_send = sg_capability("raw-send");
    CHECK(sg_call(raw, next).label == DONE && sg_call(raw, next).label == DONE);
    sg_send(raw_send, (sg_message){.label = 0x71});
    sg_try_send(raw_send, (sg_message){.label = 0x72});
    await(FROM_RAW);
}

static void objects(void)
{
    sg_cap control = sg_capability("sched-control.0");
    sg_cap thread = sg_capability("idler.tcb"), context = sg_capability("idler.context");
    uint64_t us = 0;
    sg_reservation reservation = {.budget_us = 2000, .period_us = 40000};
    CHECK(sg_configure_context(control, context, &reservation) == SG_OK);
    reservation.budget_us = 50000;
    CHECK(sg_configure_context(control, context, &reservation) == SG_OUT_OF_RANGE);
    CHECK(sg_consumed_us(context, &us) == SG_OK);
    CHECK(sg_yield_to(context, &us) == SG_OK);
    CHECK(sg_suspend(thread) == SG_OK && sg_resume(thread) == SG_OK);
    CHECK(sg_set_priority(thread, thread, 200) != SG_OK);
    CHECK(sg_set_priority(thread, thread, 0) == SG_OK);

    sg_cap ports = sg_capability("pci");
    uint8_t byte;
    uint16_t half;
    uint32_t word;
    CHECK(sg_port_write32(ports, 0xcf8, 0x80000000) == SG_OK);
    CHECK(sg_port_read32(ports, 0xcfc, &word) == SG_OK && sg_port_read16(ports, 0xcfc, &half) == SG_OK);
    CHECK(sg_port_read8(ports, 0xcfc, &byte) == SG_OK && half == (uint16_t)word && byte == (uint8_t)word);
    /* The vendor cannot be changed. */
    CHECK(sg_port_write16(ports, 0xcfc, 0) == SG_OK && sg_port_write8(ports, 0xcfc, 0) == SG_OK);
    CHECK(half == 0x8086);
    CHECK(sg_port_read8(ports, 0xc00, &byte) != SG_OK);
}

/* The helper uses the heap all the time. */
static _Atomic bool is_busy;

/* The client, which preempts it at any instruction, waits for it if that is in the middle of something. */
static void shared_heap(void)
{
    sg_timer timer = sg_timer_named("clock");
    is_busy = true;
    sg_signal(sg_capability("go-signal"));
    unsigned allocated = 0;
    for (unsigned i = 0; i < 40; i++) {
        sg_error error = sg_wait_until(timer, sg_ticks() + sg_us_to_ticks(1000) + 17 * i);
        void *block = sg_malloc(100);
        allocated += error == SG_OK && block != NULL;
        sg_free(block);
    }
    is_busy = false;
    CHECK(allocated == 40);
}

/* Ticks when it is asked to, below the client: so the client waits. */
static void help(void *context)
{
    sg_cap *tick = context;
    for (;;) {
        sg_wait(sg_capability("go"));
        do {
            sg_free(sg_malloc(64));
        } while (is_busy);
        sg_signal(*tick);
    }
}

int client(void)
{
    static sg_cap tick;
    tick = sg_capability("tick");
    sg_share_heap(sg_capability("heap"), sg_capability("heap-signal"));
    sg_prepare_thread("helper", help, &tick);
    sg_signal(sg_capability("ready"));
    environment();
    heap();
    console();
    time();
    timers();
    calls();
    servers();
    shared_heap();
    objects();
    uint64_t *start = sg_memory("start").address;
    __atomic_store_n(start, sg_ticks(), __ATOMIC_RELAXED);
    sg_signal(sg_capability("released.release"));
    await(FROM_SPENDER | FROM_SERVER | FROM_TASK);
    for (int i = 0; i < JOBS; i++) {
        sg_spin_us(10000);
        sg_signal(sg_capability("released.release"));
    }
    await(FROM_RELEASED);
    sg_printf("%u passed, %u failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
