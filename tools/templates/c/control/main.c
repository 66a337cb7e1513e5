/* Controls an oven: a job at each release of a timer. It ends the system after `jobs` jobs, with status 0 if none ended
 * after its deadline. */

#include <sandglass.h>

#include "law.h"

SG_STACK(0x4000);
SG_HEAP(0x1000);

static const int64_t wanted = 180000; /* thousandths of a degree */

/* Marks the release for the trace: the HPET's time in ticks of the time-stamp counter. */
static void mark_release(sg_release release)
{
    uint64_t late_us = sg_hpet_ticks_to_us(sg_hpet_ticks() - release.at);
    sg_mark_release(release.number, sg_ticks() - sg_us_to_ticks(late_us));
}

int main(void)
{
    sg_cap oven = sg_capability("oven");
    uint64_t jobs = sg_parameter("jobs"), late = 0;
    struct controller controller = {0};
    int64_t watts = 0, temperature = 0;

    sg_error error = sg_hpet_open("hpet", "timer", "pit");
    if (error != SG_OK)
        sg_panic("the HPET: %s", sg_error_text(error));
    uint64_t period = sg_hpet_us_to_ticks(sg_parameter("period"));
    uint64_t deadline = sg_hpet_us_to_ticks(sg_parameter("deadline"));
    sg_releases releases = {.at = sg_hpet_ticks() + period, .period = period, .skip_missed = true};

    for (uint64_t job = 0; job < jobs; job++) {
        sg_release release = sg_next_release(&releases, sg_hpet_ticks());
        error = sg_hpet_wait_until(release.at);
        sg_assert(error == SG_OK);
        mark_release(release);
        sg_message answer = sg_call(oven, (sg_message){.length = 1, .words = {(uint64_t)watts}});
        temperature = (int64_t)sg_word(&answer, 0);
        watts = controller_step(&controller, temperature, wanted);
        sg_mark_end(release.number);
        if (sg_hpet_ticks() - release.at > deadline)
            late++;
    }
    sg_printf("control: %lu jobs, %lu late; the oven has %.0f degrees\n", jobs, late, (double)temperature / 1000.0);
    return late == 0 ? 0 : 1;
}
