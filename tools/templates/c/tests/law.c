/* Tests of the control law, on the host. */

#include <assert.h>
#include <stdint.h>

#include "../control/law.h"

int main(void)
{
    struct controller controller = {0};
    int64_t temperature = 20000, wanted = 180000, hottest = 0;
    for (int period = 0; period < 200; period++) {
        int64_t watts = controller_step(&controller, temperature, wanted);
        assert(watts >= 0 && watts <= MOST_WATTS);
        temperature += watts * 10 - (temperature - 20000) / 50;
        hottest = temperature > hottest ? temperature : hottest;
    }
    /* It gets hot and stays so, and never gets much too hot. */
    assert(temperature > wanted - 2000 && temperature < wanted + 2000);
    assert(hottest < wanted + wanted / 10);
    return 0;
}
