/*
 * System calls (page 01), by the stub of the architecture.
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

#include "stub.h"

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
