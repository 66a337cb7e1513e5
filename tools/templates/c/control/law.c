#include "law.h"

int64_t controller_step(struct controller *controller, int64_t is, int64_t wanted)
{
    int64_t error = wanted - is;
    int64_t watts = (error * 20 + controller->sum) / 1000;
    if (watts < 0)
        return 0;
    if (watts > MOST_WATTS)
        return MOST_WATTS;
    /* At its limit, a heater does not get stronger: what it cannot give is not summed up. */
    controller->sum += error;
    return watts;
}
