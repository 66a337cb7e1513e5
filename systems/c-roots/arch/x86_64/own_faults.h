/*
 * What the tests of faults know of x86_64.
 */
#ifndef OWN_FAULTS_H
#define OWN_FAULTS_H

#include "abi.h"

/* The status of a fault of memory: a read, by the user; a write to a page that is there. */
static inline bool is_read_of_nothing(word_t status) { return status == 4; }
static inline bool is_write_to_page(word_t status) { return status == 7; }

/* A system call `number` with a word in a register, which it returns. */
static inline word_t other_systems_call(word_t first, word_t number)
{
    word_t result = first;
    __asm__ volatile("movq %%rsp, %%rbx\n\t"
                     "syscall\n\t"
                     "movq %%rbx, %%rsp"
                     : "+a"(result)
                     : "d"(number)
                     : "rbx", "rcx", "r11", "cc", "memory");
    return result;
}

/* UD2, and its exception. */
#define UNDEFINED "\x0f\x0b"
#define UNDEFINED_BYTES 2
#define UNDEFINED_NUMBER 6

static inline void execute_undefined(void)
{
    __asm__ volatile("ud2");
}

/* What DebugCapIdentify says of the authority over I/O ports. */
#define KIND_OF_SLOT_7 31

#endif
