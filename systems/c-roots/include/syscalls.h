/*
 * System-call stubs (ABI 01, section 4.1).
 *
 * The kernel takes the call's number in RDX, the capability in RDI, the message info in RSI, the
 * first four message words in R10, R8, R9, R15, the reply object in R12, and the destination of
 * NBSendRecv in R13. SYSCALL takes RCX and R11, and the return by SYSRET leaves RSP zero: RBX
 * keeps it.
 */
#ifndef SYSCALLS_H
#define SYSCALLS_H

#include "abi.h"

/* What a system call takes and gives back: the badge is the capability on the way in. */
struct message {
    word_t badge;
    word_t info;
    word_t mr[REGISTER_WORDS];
};

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

static inline struct message empty_message(void)
{
    return (struct message){.info = message_info(0, 0, 0)};
}

/* A message of one word. */
static inline struct message word_message(word_t label, word_t word)
{
    return (struct message){.info = message_info(label, 0, 1), .mr = {word}};
}

static inline void sys_send(cptr_t cap, struct message message)
{
    system_call(SYS_SEND, cap, message, 0, 0);
}

static inline void sys_nb_send(cptr_t cap, struct message message)
{
    system_call(SYS_NB_SEND, cap, message, 0, 0);
}

static inline struct message sys_call(cptr_t cap, struct message message)
{
    return system_call(SYS_CALL, cap, message, 0, 0);
}

static inline struct message sys_recv(cptr_t cap, cptr_t reply)
{
    return system_call(SYS_RECV, cap, empty_message(), reply, 0);
}

static inline struct message sys_nb_recv(cptr_t cap, cptr_t reply)
{
    return system_call(SYS_NB_RECV, cap, empty_message(), reply, 0);
}

static inline struct message sys_reply_recv(cptr_t cap, struct message message, cptr_t reply)
{
    return system_call(SYS_REPLY_RECV, cap, message, reply, 0);
}

static inline struct message sys_nb_send_recv(cptr_t destination, struct message message,
                                              cptr_t cap, cptr_t reply)
{
    return system_call(SYS_NB_SEND_RECV, cap, message, reply, destination);
}

/* The capability that is sent to is in the register of the reply object. */
static inline struct message sys_nb_send_wait(cptr_t destination, struct message message,
                                              cptr_t cap)
{
    return system_call(SYS_NB_SEND_WAIT, cap, message, destination, 0);
}

/* The badge is what a wait is for; the rest of the message stays what it was. */
static inline struct message sys_wait(cptr_t cap)
{
    return system_call(SYS_WAIT, cap, empty_message(), 0, 0);
}

static inline struct message sys_nb_wait(cptr_t cap)
{
    return system_call(SYS_NB_WAIT, cap, empty_message(), 0, 0);
}

static inline void sys_signal(cptr_t notification)
{
    sys_send(notification, word_message(0, 0));
}

static inline void sys_yield(void)
{
    system_call(SYS_YIELD, 0, empty_message(), 0, 0);
}

static inline void sys_set_tls_base(word_t base)
{
    system_call(SYS_SET_TLS_BASE, base, empty_message(), 0, 0);
}

/* The debug kernel's; a fault on others. */
static inline void sys_debug_put_char(char c)
{
    system_call(SYS_DEBUG_PUT_CHAR, (unsigned char)c, empty_message(), 0, 0);
}

/* The debug kernel's; a fault on others. */
static inline word_t sys_debug_cap_identify(cptr_t cap)
{
    return system_call(SYS_DEBUG_CAP_IDENTIFY, cap, empty_message(), 0, 0).badge;
}

#endif
