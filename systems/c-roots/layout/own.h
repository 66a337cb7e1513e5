/*
 * What the architecture knows.
 */
#ifndef OWN_H
#define OWN_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/* A test: the state at the first instruction is that of the ABI. */
void registers_at_start(void);

/* A function that returns 42. */
#define ANSWER_42_BYTES 8
extern const uint8_t answer_42[ANSWER_42_BYTES];

/* Sets the thread pointer to what it cannot be. */
void odd_thread_pointers(void);

#pragma GCC visibility pop

#endif
