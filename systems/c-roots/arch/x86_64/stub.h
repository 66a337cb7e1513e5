/*
 * The stub of system calls (ABI 01, section 4.1).
 *
 * The kernel takes the call's number in RDX, the capability in RDI, the message info in RSI, the
 * first four message words in R10, R8, R9, R15, the reply object in R12, and the destination of
 * NBSendRecv in R13. SYSCALL takes RCX and R11, and the return by SYSRET leaves RSP zero: RBX
 * keeps it.
 */
#ifndef STUB_H
#define STUB_H

static inline struct message system_call(long number, cptr_t cap, struct message message,
                                         cptr_t reply, cptr_t destination)
{
    register word_t mr0 __asm__("r10") = message.mr[0];
    register word_t mr1 __asm__("r8") = message.mr[1];
    register word_t mr2 __asm__("r9") = message.mr[2];
    register word_t mr3 __asm__("r15") = message.mr[3];
    register word_t in_r12 __asm__("r12") = reply;
    register word_t in_r13 __asm__("r13") = destination;
    word_t badge = cap;
    word_t info = message.info;

    __asm__ volatile("movq %%rsp, %%rbx\n\t"
                     "syscall\n\t"
                     "movq %%rbx, %%rsp"
                     : "+D"(badge), "+S"(info), "+r"(mr0), "+r"(mr1), "+r"(mr2), "+r"(mr3)
                     : "d"(number), "r"(in_r12), "r"(in_r13)
                     : "rbx", "rcx", "r11", "cc", "memory");
    return (struct message){.badge = badge, .info = info, .mr = {mr0, mr1, mr2, mr3}};
}

/* Sets the caller's thread pointer: in other profiles without a system call for it (ABI 09, section 1), by an invocation. */
static inline void set_thread_pointer(word_t base)
{
#ifdef PROFILE_LABELS
    struct message message = {.info = message_info(TCB_SET_TLS_BASE, 0, 1), .mr = {base}};
    system_call(SYS_CALL, INIT_TCB, message, 0, 0);
#else
    system_call(SYS_SET_TLS_BASE, base, (struct message){.info = message_info(0, 0, 0)}, 0, 0);
#endif
}

/* Lets the bytes at `code` be executed as they are now: the processor sees to that by itself. */
static inline void make_executable(const void *code, size_t bytes)
{
    (void)code, (void)bytes;
    /* The stores must be made before, which the compiler cannot know. */
    __asm__ volatile("" : : : "memory");
}

/* The counter. */
static inline word_t timestamp(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (word_t)high << 32 | low;
}

#endif
