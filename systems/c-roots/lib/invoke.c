#include "invoke.h"

struct result invoke(cptr_t cap, enum label label, size_t arg_count, const word_t *args,
                     size_t cap_count, const cptr_t *caps)
{
    struct message message = {.info = message_info(label, cap_count, arg_count)};
    for (size_t i = 0; i < arg_count; i++) {
        if (i < REGISTER_WORDS)
            message.mr[i] = args[i];
        else
            ipc_buffer->mr[i] = args[i];
    }
    for (size_t i = 0; i < cap_count; i++)
        ipc_buffer->caps_or_badges[i] = caps[i];

    message = sys_call(cap, message);

    struct result result = {.error = (enum error)info_label(message.info),
                            .length = info_length(message.info)};
    for (size_t i = 0; i < REGISTER_WORDS; i++)
        result.mr[i] = message.mr[i];
    return result;
}

struct result tcb_write_registers(cptr_t tcb, bool resume, const word_t registers[USER_REGISTERS])
{
    word_t args[2 + USER_REGISTERS] = {resume, USER_REGISTERS};
    for (size_t i = 0; i < USER_REGISTERS; i++)
        args[2 + i] = registers[i];
    return invoke(tcb, TCB_WRITE_REGISTERS, 2 + USER_REGISTERS, args, NO_WORDS);
}

struct result tcb_read_registers(cptr_t tcb, bool suspend, word_t registers[USER_REGISTERS])
{
    struct result result =
        invoke(tcb, TCB_READ_REGISTERS, WORDS(suspend, USER_REGISTERS), NO_WORDS);
    for (size_t i = 0; i < USER_REGISTERS && i < result.length; i++)
        registers[i] = i < REGISTER_WORDS ? result.mr[i] : ipc_buffer->mr[i];
    return result;
}
