/* Controls an oven: a job at each release of a timer. It ends the system after `jobs` jobs, with status 0 if none ended
 * after its deadline. */

#include <sandglass.h>

#include "law.h"

SG_STACK(0x4000);
SG_HEAP(0x1000);

static const int64_t wanted = 180000; /* thousandths of a degree */

int main(void)
{
    sg_cap oven = sg_capability("oven");
    uint64_t jobs = sg_parameter("jobs"), late = 0;
    struct controller controller = {0};
    int64_t watts = 0, temperature = 0;

    sg_timer clock = sg_timer_named("clock");
    uint64_t deadline = sg_us_to_ticks(sg_parameter("deadline"));
    sg_releases releases;
    sg_error error = sg_start_releases(&releases, clock, sg_parameter("period"), true);
    if (error != SG_OK)
        sg_panic("the clock: %s", sg_error_text(error));

    for (uint64_t job = 0; job < jobs; job++) {
        sg_release release = sg_wait_for_release(&releases, clock);
        sg_mark_release(release.number, release.at);
        sg_message answer = sg_call(oven, (sg_message){.length = 1, .words = {(uint64_t)watts}});
        temperature = (int64_t)sg_word(&answer, 0);
        watts = controller_step(&controller, temperature, wanted);
        sg_mark_end(release.number);
        if (sg_ticks() - release.at > deadline)
            late++;
    }
    sg_printf("control: %lu jobs, %lu late; the oven has %.0f degrees\n", jobs, late, (double)temperature / 1000.0);
    return late == 0 ? 0 : 1;
}
