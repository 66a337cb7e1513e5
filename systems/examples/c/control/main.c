/* The control loop: keeps the plant's level at 60. */

#include <sandglass.h>

#include "../filter/protocol.h"
#include "pid.h"

SG_STACK(0x4000);
SG_HEAP(0x2000);

enum { PERIOD_US = 10000, DEADLINE_US = 5000 };
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

int main(void)
{
    sg_cap plant = sg_capability("plant"), filter = sg_capability("filter");
    uint64_t jobs = sg_parameter("jobs"), late = 0;
    struct controller controller = {.proportional = 0.8, .integral = 0.12, .sum = 0.0};
    double setting = 0.0, level = 0.0;

    sg_timer clock = sg_timer_named("clock");
    sg_releases releases;
    sg_error error = sg_start_releases(&releases, clock, PERIOD_US, true);
    if (error != SG_OK)
        sg_panic("the clock: %s", sg_error_text(error));

    for (uint64_t done = 0; done < jobs; done++) {
        sg_release release = sg_wait_for_release(&releases, clock);
        sg_mark_release(release.number, release.at);

        sg_message step = {.label = PLANT_STEP, .length = 1, .words = {(uint64_t)(setting * 100.0)}};
        sg_message answer = sg_call(plant, step);
        level = (double)sg_word(&answer, 0) / 100.0;
        setting = controller_step(&controller, wanted - level + disturbance(filter, release.number));

        sg_mark_end(release.number);
        if (sg_ticks() - release.at > sg_us_to_ticks(DEADLINE_US))
            late++;
    }
    sg_wait(sg_capability("done"));
    sg_printf("control: %lu jobs, %lu of them late; the level is %.1f\n", jobs, late, level);
    return late == 0 ? 0 : 1;
}
