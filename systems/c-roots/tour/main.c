/*
 * A root task that does what root tasks do: it makes threads, address spaces and drivers out of
 * its memory, and has them talk, fault, and run out of time.
 */
#include "tour.h"

void root_main(void)
{
    say("C root task: tour\n");
    test_messages();
    test_signals();
    test_faults();
    test_time();
    test_memory();
    test_spaces();
    test_devices();
}
