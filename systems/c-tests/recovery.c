/* Does what its component's name says: see recovery.toml. */

#include <sandglass.h>

SG_STACK(0x4000);
SG_HEAP(0x1000);

enum { ANSWER = 1, NEVER = 2 };

static int control(void)
{
    uint64_t jobs = sg_parameter("jobs"), late = 0;
    sg_error error = sg_hpet_open("hpet", "timer", "pit");
    sg_assert(error == SG_OK);
    uint64_t period = sg_hpet_us_to_ticks(sg_parameter("period"));
    uint64_t deadline = sg_hpet_us_to_ticks(sg_parameter("deadline"));
    sg_releases releases = {.at = sg_hpet_ticks() + period, .period = period, .skip_missed = true};
    for (uint64_t job = 0; job < jobs; job++) {
        sg_release release = sg_next_release(&releases, sg_hpet_ticks());
        error = sg_hpet_wait_until(release.at);
        sg_assert(error == SG_OK);
        sg_spin_us(100);
        if (release.number != job || sg_hpet_ticks() - release.at > deadline)
            late++;
    }
    sg_assert(sg_hpet_ticks_to_us(sg_hpet_us_to_ticks(1000)) >= 999);
    sg_printf("%lu jobs, %lu late\n", jobs, late);
    /* So that what was logged is written. */
    error = sg_hpet_wait_until(sg_hpet_ticks() + sg_hpet_us_to_ticks(100000));
    sg_assert(error == SG_OK);
    return late == 0 ? 0 : 1;
}

static sg_message divide(const sg_request *request, void *context)
{
    (void)context;
    uint64_t quotient = sg_word(&request->message, 0) / sg_word(&request->message, 1);
    return (sg_message){.label = ANSWER, .length = 1, .words = {quotient}};
}

static sg_message listen(const sg_request *request, void *context)
{
    (void)context;
    while (request->message.label == NEVER)
        sg_spin_us(10);
    return (sg_message){.label = ANSWER};
}

static void ask_to_divide(uint64_t by)
{
    sg_message question = {.label = ANSWER, .length = 2, .words = {60, by}};
    sg_message answer = sg_call(sg_capability("divide"), question);
    if (answer.label == SG_FAILED)
        sg_printf("60 / %lu: failed\n", by);
    else
        sg_printf("60 / %lu = %lu\n", by, sg_word(&answer, 0));
}

static void ask_to_listen(uint64_t label)
{
    sg_message answer = sg_call(sg_capability("listen"), (sg_message){.label = label});
    sg_puts(answer.label == SG_FAILED ? "no answer: failed" : "an answer");
}

static int client(void)
{
    ask_to_divide(0);
    ask_to_divide(4);
    ask_to_divide(0);
    ask_to_listen(NEVER);
    ask_to_listen(ANSWER);
    return 0;
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
    return strlen(sg_name()) == strlen(name) && memcmp(sg_name(), name, strlen(name)) == 0;
}

int main(void)
{
    if (is_called("control"))
        return control();
    if (is_called("divider"))
        sg_serve("divide", divide, NULL);
    if (is_called("deaf"))
        sg_serve_watched("listen", listen, NULL);
    if (is_called("client"))
        return client();
    return deeper(0);
}
