/*
 * Tests: one line each, and a closing line, as `sandglass test` reads them.
 */
#include "root.h"

static word_t passed, failed;
static char reason[256];
static bool has_reason;

void test_failed(const char *file, int line, const char *what, word_t found, word_t wanted)
{
    if (has_reason)
        return;
    has_reason = true;
    say_into(reason, sizeof(reason), "%s:%d: %s is 0x%lx, not 0x%lx", file, line, what, found,
             wanted);
}

void test(const char *name, void (*body)(void))
{
    has_reason = false;
    body();
    if (has_reason) {
        failed++;
        say("test %s ... FAILED: %s\n", name, reason);
    } else {
        passed++;
        say("test %s ... ok\n", name);
    }
}

unsigned tests_close(void)
{
    say("%lu passed, %lu failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
