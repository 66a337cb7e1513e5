/*
 * The tests of this root task, by what they are about.
 */
#ifndef TOUR_H
#define TOUR_H

#include "root.h"

void test_messages(void);
void test_signals(void);
void test_faults(void);
void test_time(void);
void test_memory(void);
void test_spaces(void);
void test_devices(void);

/* Of the counter, rounded down: the architecture's. */
word_t ticks_per_us(void);

/* Addresses that nothing else of this program uses; each test has a gigabyte of its own. */
#define FAULTS_AREA 0x1000000000ul
#define MESSAGES_AREA 0x2000000000ul
#define MEMORY_AREA 0x3000000000ul
#define DEVICES_AREA 0x4000000000ul

/* The program's thread has the highest priority; what it waits for runs below. */
#define HELPER_PRIORITY 254

#endif
