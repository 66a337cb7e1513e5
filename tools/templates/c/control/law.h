/* The control law: pure logic, without a machine. Temperatures are in thousandths of a degree. */
#ifndef LAW_H
#define LAW_H

#include <stdint.h>

/* A proportional-integral controller. */
struct controller {
    int64_t sum; /* of the errors */
};

/* Most that a heater gives, in watts. */
enum { MOST_WATTS = 1000 };

/* The power, in watts, that leads from the temperature `is` to `wanted`. To be called once in a period. */
int64_t controller_step(struct controller *controller, int64_t is, int64_t wanted);

#endif
