/* The control loop: keeps the plant's level at 60. */

#include <sandglass.h>

#include "../filter/protocol.h"
#include "pid.h"

SG_STACK(0x4000);
SG_HEAP(0x2000);

enum { PERIOD_US = 10000 };
enum { PLANT_STEP = 1 }; /* request: a setting in hundredths; answer: the level in hundredths */

static const double wanted = 60.0;

/* The disturbance of this job, as the filter sees it; the last one if it does not answer in time. */
static double disturbance(sg_cap filter, uint64_t job)
{
    static struct progress last;
    struct progress from = {.next = 50 * job, .value = last.value};
    sg_message answer = sg_call(filter, filter_request(job, from, 50 * (job + 1)));
    if (answer.label == FILTER_DONE && sg_word(&answer, 0) == job)
        last.value = (int64_t)sg_word(&answer, 2);
    return (double)last.value / 65536.0;
}

/* Marks the release for the trace: the HPET's time in ticks of the time-stamp counter. */
static void mark_release(sg_release release)
{
    uint64_t late_us = sg_hpet_ticks_to_us(sg_hpet_ticks() - release.at);
    sg_mark_release(release.number, sg_ticks() - sg_us_to_ticks(late_us));
}

int main(void)
{
    sg_cap plant = sg_capability("plant"), filter = sg_capability("filter");
    uint64_t jobs = sg_parameter("jobs"), late = 0;
    struct controller controller = {.proportional = 0.8, .integral = 0.12, .sum = 0.0};
    double setting = 0.0, level = 0.0;

    sg_error error = sg_hpet_open("hpet", "timer", "pit");
    if (error != SG_OK)
        sg_panic("the HPET: %s", sg_error_text(error));
    uint64_t period = sg_hpet_us_to_ticks(PERIOD_US);
    sg_releases releases = {.at = sg_hpet_ticks() + period, .period = period, .skip_missed = true};

    for (uint64_t done = 0; done < jobs; done++) {
        sg_release release = sg_next_release(&releases, sg_hpet_ticks());
        error = sg_hpet_wait_until(release.at);
        sg_assert(error == SG_OK);
        mark_release(release);

        sg_message step = {.label = PLANT_STEP, .length = 1, .words = {(uint64_t)(setting * 100.0)}};
        sg_message answer = sg_call(plant, step);
        level = (double)sg_word(&answer, 0) / 100.0;
        setting = controller_step(&controller, wanted - level + disturbance(filter, release.number));

        if (sg_hpet_ticks() - release.at > sg_hpet_us_to_ticks(5000))
            late++;
        sg_mark_end(release.number);
    }
    sg_wait(sg_capability("done"));
    sg_printf("control: %lu jobs, %lu of them late; the level is %.1f\n", jobs, late, level);
    return late == 0 ? 0 : 1;
}
