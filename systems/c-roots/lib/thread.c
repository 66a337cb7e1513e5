/*
 * Threads: objects from the kernel; stacks, IPC buffers and TLS in the program's own image, whose
 * frames the boot information names.
 */
#include "root.h"

#define MAX_THREADS 8u
#define STACK_BYTES 16384u

static struct {
    struct thread thread;
    bool used;
} threads[MAX_THREADS];
static uint8_t stacks[MAX_THREADS][STACK_BYTES] __attribute__((aligned(16)));
static uint8_t tls_areas[MAX_THREADS][TLS_BYTES] __attribute__((aligned(TLS_ALIGN)));
static struct ipc_buffer buffers[MAX_THREADS];

static _Noreturn void thread_main(struct thread *thread)
{
    ipc_buffer = thread->buffer;
    thread->run(thread->argument);
    for (;;)
        tcb_suspend(thread->tcb);
}

struct thread *thread_new(struct thread_params params, void (*run)(void *), void *argument)
{
    unsigned i = 0;
    while (i < MAX_THREADS && threads[i].used)
        i++;
    if (i == MAX_THREADS) {
        say("too many threads\n");
        leave(2);
    }
    threads[i].used = true;
    struct thread *thread = &threads[i].thread;
    *thread = (struct thread){
        .tcb = object_new(OBJECT_TCB, 0),
        .buffer = &buffers[i],
        .stack_top = (word_t)stacks[i] + STACK_BYTES,
        .tls_base = tls_make(tls_areas[i]),
        .run = run,
        .argument = argument,
    };
    if (params.period != 0) {
        thread->context = object_new(OBJECT_SCHED_CONTEXT, SCHED_CONTEXT_BITS);
        must(sched_control_configure(boot_info->sched_control.start, thread->context,
                                     params.budget, params.period, params.badge),
             "a scheduling context");
    }
    must(tcb_configure(thread->tcb, INIT_CNODE, 0, INIT_VSPACE, (word_t)thread->buffer,
                       image_frame(thread->buffer)),
         "a thread's spaces");
    must(tcb_set_sched_params(thread->tcb, params.priority, params.priority, thread->context,
                              params.fault_handler),
         "a thread's parameters");
    return thread;
}

void thread_registers(const struct thread *thread, word_t registers[USER_REGISTERS])
{
    for (size_t i = 0; i < USER_REGISTERS; i++)
        registers[i] = 0;
    registers[REG_IP] = (word_t)thread_main;
    /* As after a call. */
    registers[REG_SP] = thread->stack_top - CALLED;
    registers[REG_FLAGS] = FIRST_FLAGS;
    registers[REG_ARGUMENT] = (word_t)thread;
    registers[REG_TLS] = thread->tls_base;
}

void thread_start(const struct thread *thread)
{
    word_t registers[USER_REGISTERS];
    thread_registers(thread, registers);
    must(tcb_write_registers(thread->tcb, true, registers), "a thread's registers");
}

struct thread *thread_spawn(struct thread_params params, void (*run)(void *), void *argument)
{
    struct thread *thread = thread_new(params, run, argument);
    thread_start(thread);
    return thread;
}

void thread_end(struct thread *thread)
{
    must(cnode_delete(thread->tcb), "the end of a thread");
    if (thread->context != 0)
        must(cnode_delete(thread->context), "the end of a scheduling context");
    for (unsigned i = 0; i < MAX_THREADS; i++) {
        if (&threads[i].thread == thread)
            threads[i].used = false;
    }
}
