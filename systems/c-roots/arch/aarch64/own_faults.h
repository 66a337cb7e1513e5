/*
 * What the tests of faults know of aarch64.
 */
#ifndef OWN_FAULTS_H
#define OWN_FAULTS_H

#include "abi.h"

/* The status of a fault of memory is a syndrome: class, whether it was a write, and what is wrong without the level. */
#define SYNDROME_CLASS(status) ((status) >> 26)
#define SYNDROME_WRITE(status) ((status) >> 6 & 1)
#define SYNDROME_FAULT(status) ((status) & 0x3c)
enum { DATA_ABORT = 0x24, NO_TRANSLATION = 0x04, NO_PERMISSION = 0x0c };

static inline bool is_read_of_nothing(word_t status)
{
    return SYNDROME_CLASS(status) == DATA_ABORT && !SYNDROME_WRITE(status) &&
           SYNDROME_FAULT(status) == NO_TRANSLATION;
}

static inline bool is_write_to_page(word_t status)
{
    return SYNDROME_CLASS(status) == DATA_ABORT && SYNDROME_WRITE(status) &&
           SYNDROME_FAULT(status) == NO_PERMISSION;
}

/* A system call `number` with a word in a register, which it returns. */
static inline word_t other_systems_call(word_t first, word_t number)
{
    register word_t result __asm__("x0") = first;
    register word_t in_x7 __asm__("x7") = number;
    __asm__ volatile("svc #0" : "+r"(result) : "r"(in_x7) : "memory");
    return result;
}

/* UDF, and the syndrome of what there is not. */
#define UNDEFINED "\0\0\0\0"
#define UNDEFINED_BYTES 4
#define UNDEFINED_NUMBER 0x2000000

static inline void execute_undefined(void)
{
    __asm__ volatile("udf #0");
}

/* There is no authority over I/O ports. */
#define KIND_OF_SLOT_7 0

#endif
