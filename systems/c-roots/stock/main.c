/*
 * A root task for kernels of the profiles of stock Microkit boards: every invocation by its number there, and what these
 * profiles have that others have not (ABI page 09).
 */
#include "stock.h"

void root_main(void)
{
    say("C root task: stock\n");
    test_start();
    test_invocations();
    test_iommu();
    test_debugger();
    test_domains();
}
