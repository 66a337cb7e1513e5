/*
 * The stub of system calls (ABI 01, section 4.3).
 *
 * The kernel takes the call's number in X7, the capability in X0, the message info in X1, the first four message words in X2
 * to X5, the reply object in X6, and the destination of NBSendRecv in X8. All other registers stay as they are.
 */
#ifndef STUB_H
#define STUB_H

static inline struct message system_call(long number, cptr_t cap, struct message message,
                                         cptr_t reply, cptr_t destination)
{
    register word_t badge __asm__("x0") = cap;
    register word_t info __asm__("x1") = message.info;
    register word_t mr0 __asm__("x2") = message.mr[0];
    register word_t mr1 __asm__("x3") = message.mr[1];
    register word_t mr2 __asm__("x4") = message.mr[2];
    register word_t mr3 __asm__("x5") = message.mr[3];
    register word_t in_x6 __asm__("x6") = reply;
    register long in_x7 __asm__("x7") = number;
    register word_t in_x8 __asm__("x8") = destination;

    __asm__ volatile("svc #0"
                     : "+r"(badge), "+r"(info), "+r"(mr0), "+r"(mr1), "+r"(mr2), "+r"(mr3)
                     : "r"(in_x6), "r"(in_x7), "r"(in_x8)
                     : "memory");
    return (struct message){.badge = badge, .info = info, .mr = {mr0, mr1, mr2, mr3}};
}

/* Sets the caller's thread pointer. */
static inline void set_thread_pointer(word_t base)
{
    __asm__ volatile("msr tpidr_el0, %0" : : "r"(base) : "memory");
}

/* Lets the bytes at `code` be executed as they are now: instructions are fetched past the caches of data. */
static inline void make_executable(const void *code, size_t bytes)
{
    /* No line of a cache is shorter. */
    enum { LINE = 16 };
    word_t start = (word_t)code & -(word_t)LINE, end = (word_t)code + bytes;
    for (word_t at = start; at < end; at += LINE)
        __asm__ volatile("dc cvau, %0" : : "r"(at) : "memory");
    __asm__ volatile("dsb ish" : : : "memory");
    for (word_t at = start; at < end; at += LINE)
        __asm__ volatile("ic ivau, %0" : : "r"(at) : "memory");
    __asm__ volatile("dsb ish\n\tisb" : : : "memory");
}

/* The counter: a fault, unless the kernel lets programs read it. */
static inline word_t timestamp(void)
{
    word_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
    return ticks;
}

#endif
