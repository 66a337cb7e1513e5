/*
 * Components in C: the runtime, and what the policies of a described system mean to a component.
 *
 * A component is a program without an operating system below it. It has `int main(void)`, this header, and what
 * its system's description gives it, which it finds here by name:
 *
 *     #include <sandglass.h>
 *
 *     int main(void)
 *     {
 *         sg_cap adder = sg_capability("adder");
 *         sg_message answer = sg_call(adder, (sg_message){.length = 2, .words = {20, 22}});
 *         sg_printf("the answer is %lu\n", sg_word(&answer, 0));
 *         return 0;
 *     }
 *
 * Names begin with `sg_` or `SG_`. Times are µs, or ticks of the time-stamp counter; sizes are bytes. Functions that can
 * fail return an `sg_error`, and everything else says what it does instead. Where a function "panics", the component ends
 * with status 101 and a message: the program and the description of its system disagree.
 *
 * C11 or later; x86_64; gcc or clang. The compiler's own headers are there (<stdint.h>, <stdbool.h>, <stdarg.h>, ...); a C
 * library is not. memcpy, memmove, memset, memcmp, strlen, malloc, calloc, realloc, aligned_alloc and free are defined.
 */
#ifndef SANDGLASS_H
#define SANDGLASS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SG_NORETURN __attribute__((noreturn))
#define SG_PRINTF(format_at, arguments_at) __attribute__((__format__(__printf__, format_at, arguments_at)))
#define SG_MUST_USE __attribute__((warn_unused_result))

/* ---------------------------------------------------------------- start and end */

/* The stack of the first thread, bytes: a multiple of 16. At file scope, in one source of the program; without it,
 * 64 KiB. The page below the stack is not mapped, so that an overflow is a fault. */
#define SG_STACK(bytes)                                                                                         \
    _Static_assert((bytes) % 16 == 0, "a stack's size is a multiple of 16");                                    \
    __attribute__((aligned(4096), used)) char sg_program_stack[4096 + (bytes)] __asm__("__sandglass_stack_guard"); \
    const size_t sg_program_stack_bytes = (bytes)

/* The heap of malloc and of this library, bytes. At file scope, in one source of the program; without it, 256 KiB. A
 * program that allocates nothing still needs some for names and threads: 4 KiB are enough for most. */
#define SG_HEAP(bytes)                                                   \
    __attribute__((aligned(16), used)) char sg_program_heap[(bytes)];    \
    const size_t sg_program_heap_bytes = (bytes)

/* Ends the component with this status, of which eight bits count; as returning from main does. The system goes on,
 * unless the description says `exit = true`. */
SG_NORETURN void sg_exit(int status);

/* Ends the component with a message and status 101. */
#define sg_panic(...) sg_panic_at(__FILE__, __LINE__, __VA_ARGS__)

/* Panics unless the condition holds. It is evaluated in every build. */
#define sg_assert(condition) \
    ((condition) ? (void)0 : sg_panic_at(__FILE__, __LINE__, "assertion `%s` failed", #condition))

/* What sg_panic calls. */
SG_NORETURN void sg_vpanic(const char *file, int line, const char *format, va_list arguments);

SG_NORETURN SG_PRINTF(3, 4) static inline void sg_panic_at(const char *file, int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    sg_vpanic(file, line, format, arguments);
}

/* ---------------------------------------------------------------- errors */

/* SG_OK, or why the kernel refused something. */
typedef int sg_error;

enum {
    SG_OK = 0,
    SG_INVALID_ARGUMENT = 1,
    SG_INVALID_CAPABILITY = 2, /* there is none, or it is of another kind */
    SG_ILLEGAL_OPERATION = 3,
    SG_OUT_OF_RANGE = 4,
    SG_NOT_ALIGNED = 5,
    SG_FAILED_LOOKUP = 6, /* no such slot */
    SG_TRUNCATED_MESSAGE = 7,
    SG_DELETE_FIRST = 8, /* the slot is not empty */
    SG_REVOKE_FIRST = 9, /* the object is in use */
    SG_NOT_ENOUGH_MEMORY = 10,
    /* Not the kernel's: */
    SG_NO_DEVICE = 32,     /* a device is not what it should be */
    SG_NO_SUCH_TIMER = 33, /* see the `count` of the [[timer]] */
    SG_TOO_FREQUENT = 34   /* see the `every` of the [[timer]] */
};

/* The error in words. */
const char *sg_error_text(sg_error error);

/* ---------------------------------------------------------------- environment */

/* A capability: the number of a slot, which means nothing to other components. SG_NO_CAP is none: to use it is a fault,
 * which ends the component. What a capability is for, the description says; the kernel refuses everything else. */
typedef uint64_t sg_cap;
#define SG_NO_CAP ((sg_cap)0)

/* Memory that the description maps. */
typedef struct sg_region {
    void *address;
    size_t length; /* bytes */
} sg_region;

/* The component's name. */
const char *sg_name(void);

/* The capability of that name. Panics if there is none. */
sg_cap sg_capability(const char *name);

/* As above, but SG_NO_CAP if there is none. */
sg_cap sg_find_capability(const char *name);

/* The memory of that name. Panics if there is none. What others can write in it may change at any time: read it once,
 * by an atomic or volatile access, and check what you read. */
sg_region sg_memory(const char *name);

/* As above, but a null address if there is none. */
sg_region sg_find_memory(const char *name);

/* The number of that name. Panics if there is none. */
uint64_t sg_parameter(const char *name);

/* As above, but `otherwise` if there is none. */
uint64_t sg_parameter_or(const char *name, uint64_t otherwise);

/* ---------------------------------------------------------------- messages */

#define SG_MESSAGE_WORDS 120 /* at most */
#define SG_MESSAGE_CAPS 3    /* at most */

/* A message: to send, or received. The first four words are here; the others are in the thread's IPC buffer, where the
 * next message of the same thread overwrites them. So fill or read a long message right before or after it is sent. */
typedef struct sg_message {
    uint64_t label;        /* 52 bits */
    uint32_t length;       /* words, at most SG_MESSAGE_WORDS */
    uint16_t capabilities; /* that come along, at most SG_MESSAGE_CAPS */
    uint16_t unwrapped;    /* received: bit i is set if capability i came as a badge */
    uint64_t words[4];     /* words 0 to 3: beyond the length, received ones are anything */
} sg_message;

/* A received message or signal. */
typedef struct sg_request {
    uint64_t badge; /* of the capability that the sender used; of a signal, all flags; 0 if nothing came */
    sg_message message;
} sg_request;

/* Word `index` of a message; 0 beyond its end. */
uint64_t sg_word(const sg_message *message, size_t index);

/* Adds a word to a message. False, and nothing is done, if it has SG_MESSAGE_WORDS. */
bool sg_add_word(sg_message *message, uint64_t word);

/* A message of these words; those beyond SG_MESSAGE_WORDS are left out. */
sg_message sg_long_message(uint64_t label, const uint64_t *words, size_t count);

/* Copies words of a message, at most `count`; returns how many. */
size_t sg_copy_words(const sg_message *message, uint64_t *words, size_t count);

/* Sends a copy of a capability along; the client's right must be `grant`. False if the message has SG_MESSAGE_CAPS. */
bool sg_add_capability(sg_message *message, sg_cap capability);

/* Whether capability `index` of a received message was one for the endpoint through which it came; `badge`, if it is not
 * null, is then that capability's. */
bool sg_unwrapped_badge(const sg_message *message, size_t index, uint64_t *badge);

/* Says where a capability goes that this thread receives: a slot that is empty then. One is received for each message.
 * Only a component with `spawns` has slots of its own. */
void sg_receive_capability_to(sg_cap root, uint64_t index, uint8_t depth);

/* ---------------------------------------------------------------- calls */

/* Sends, and waits for the answer. A passive server runs on the caller's time meanwhile. */
sg_message sg_call(sg_cap endpoint, sg_message message);

/* Sends and waits until somebody takes the message. No time is lent. The client's right must be `send`. */
void sg_send(sg_cap endpoint, sg_message message);

/* Sends if somebody waits; the message is lost otherwise. */
void sg_try_send(sg_cap endpoint, sg_message message);

/* Waits for a message, or for a signal of the notification that is bound to the thread. `reply` then stands for the
 * caller. Most servers need none of this: see sg_serve. */
sg_request sg_receive(sg_cap endpoint, sg_cap reply);

/* Takes a message if a sender waits; else badge 0 and an empty message. */
sg_request sg_try_receive(sg_cap endpoint, sg_cap reply);

/* Waits for a message that will not be answered. */
sg_request sg_receive_sent(sg_cap endpoint);

/* As above, if a sender waits. */
sg_request sg_try_receive_sent(sg_cap endpoint);

/* Answers the caller; does nothing if there is none. */
void sg_reply(sg_cap reply, sg_message answer);

/* Answers the caller and waits for the next message, in one system call. */
sg_request sg_reply_receive(sg_cap reply, sg_message answer, sg_cap endpoint);

/* Sends to an endpoint or signals a notification, without waiting, and receives, in one system call. */
sg_request sg_send_receive(sg_cap destination, sg_message message, sg_cap endpoint, sg_cap reply);

/* ---------------------------------------------------------------- notifications */

/* Sets the flags of this capability's badge. Never waits. */
void sg_signal(sg_cap notification);

/* Waits until a flag is set; returns all that are set, and clears them. */
uint64_t sg_wait(sg_cap notification);

/* The flags that are set, 0 if none is; clears them. */
uint64_t sg_poll(sg_cap notification);

/* ---------------------------------------------------------------- servers */

/* Answers a request. `context` is what sg_serve was given. Clients need not be trusted: check every word. */
typedef sg_message (*sg_handler)(const sg_request *request, void *context);

/* Serves the [[endpoint]] or [[resource]] of that name for good, under whatever protocol the description says: signals
 * that the server is ready, and has `handler` answer each request. Under a timeout policy a request can end between any
 * two instructions: what the handler changes must be right at any moment. Panics if the component does not serve it. */
SG_NORETURN void sg_serve(const char *name, sg_handler handler, void *context);

/* As sg_serve of an [[endpoint]], with signs of life for the component's `watchdog`: a request is to be answered within its
 * time, or to give a sign meanwhile. Panics as sg_serve, and without `watchdog`. */
SG_NORETURN void sg_serve_watched(const char *name, sg_handler handler, void *context);

/* Label of the answer to a request whose server failed and is restarted; nobody knows how far the request came. */
#define SG_FAILED 0x6661696c

/* Serves a [[resource]] of protocol `workers`, with this thread and `count` others of the component, by their names.
 * All call `handler`. Panics as sg_serve. */
SG_NORETURN void sg_serve_workers(const char *name, const char *const *threads, size_t count, sg_handler handler,
                                  void *context);

/* Serves a [[resource]] of protocol `stack-spawning`; all threads call `handler`. Panics as sg_serve, and if the component
 * has no `spawns`. */
SG_NORETURN void sg_serve_spawning(const char *name, sg_handler handler, void *context);

/* Requests that an interrupt may complete. */
typedef struct sg_completions sg_completions;

/* What a server of a device does. */
typedef struct sg_device {
    /* A request came. True: `answer` is the answer. False: it is answered later, by its ticket. */
    bool (*request)(const sg_request *request, uint64_t ticket, sg_message *answer, void *context);
    /* The interrupt came: acknowledge it, and complete what is done, with sg_complete. */
    void (*interrupt)(sg_completions *completions, void *context);
    void *context;
} sg_device;

/* Serves a [[resource]] of protocol `blocking`; `interrupt` is the capability NAME.signal of the [[interrupt]] NAME.
 * Panics as sg_serve. */
SG_NORETURN void sg_serve_device(const char *name, sg_cap interrupt, const sg_device *device);

/* Answers a request that waits. False if there never was such a ticket. */
bool sg_complete(sg_completions *completions, uint64_t ticket, sg_message answer);

/* Label of a blocking server's answer to a client that has too many requests waiting. */
#define SG_BUSY 0x50002

/* ---------------------------------------------------------------- time */

/* The time-stamp counter: ticks since the machine began. */
uint64_t sg_ticks(void);

/* Its frequency, ticks per µs. This and the conversions panic if the kernel does not know it, which it does on every
 * machine that it runs on so far. */
uint32_t sg_ticks_per_us(void);

/* Saturates. */
uint64_t sg_us_to_ticks(uint64_t us);

/* Rounds down. */
uint64_t sg_ticks_to_us(uint64_t ticks);

/* Rounds down. */
uint64_t sg_ticks_to_ns(uint64_t ticks);

/* µs since the machine began. */
uint64_t sg_now_us(void);

/* Executes instructions for that long, preemption included: a delay that uses up budget. */
void sg_spin_us(uint64_t us);

/* Gives up what is left of the budget until the next replenishment; of a round-robin reservation, the turn. */
void sg_yield(void);

/* Takes the HPET, whose registers, interrupt and PIT ports the component has by these names. Once. */
SG_MUST_USE sg_error sg_hpet_open(const char *registers, const char *interrupt, const char *pit);

/* The HPET's counter. These panic before sg_hpet_open. */
uint64_t sg_hpet_ticks(void);
uint64_t sg_hpet_us_to_ticks(uint64_t us);
uint64_t sg_hpet_ticks_to_us(uint64_t ticks);

/* Waits until the HPET's counter has reached `at`; not at all if it has. */
SG_MUST_USE sg_error sg_hpet_wait_until(uint64_t at);

/* ---------------------------------------------------------------- threads */

/* Says what the thread of that name does, a [[component.thread]] of the description. The launcher starts it once the main
 * thread is ready. When `body` returns, the thread stops. Panics if there is no such thread. */
void sg_prepare_thread(const char *name, void (*body)(void *context), void *context);

/* Lets several threads use the heap, before the second one starts. It takes a [[notification]] that serves nothing else,
 * whose waiter is this component, and whose only signaller, under another name (`as`), is this component, too. */
void sg_share_heap(sg_cap wait, sg_cap signal);

/* ---------------------------------------------------------------- heap */

/* As malloc and its family: null if there is not enough memory; aligned to 16 bytes at least. Their times are not bounded:
 * allocate before deadlines count. */
void *sg_malloc(size_t size);
void *sg_calloc(size_t count, size_t size);
void *sg_realloc(void *block, size_t size);
void sg_free(void *block);

/* `alignment` is a power of two; else the result is null. */
void *sg_aligned_alloc(size_t alignment, size_t size);

/* ---------------------------------------------------------------- console and log */

/* As printf, without %n, %a and long double. What is not understood is shown as it stands. Silent without `console = true`
 * or `log`; returns the number of bytes either way. */
int sg_vprintf(const char *format, va_list arguments);

SG_PRINTF(1, 2) static inline int sg_printf(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int bytes = sg_vprintf(format, arguments);
    va_end(arguments);
    return bytes;
}

/* As snprintf: writes at most `size` bytes, the last of them a zero, and returns how many there would be, without it. */
int sg_vsnprintf(char *buffer, size_t size, const char *format, va_list arguments);

SG_PRINTF(3, 4) static inline int sg_snprintf(char *buffer, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int bytes = sg_vsnprintf(buffer, size, format, arguments);
    va_end(arguments);
    return bytes;
}

/* Prints a line. */
void sg_puts(const char *text);

/* Prints bytes, which are text in UTF-8. */
void sg_write(const uint8_t *bytes, size_t count);

/* How urgent a line of the log is. */
enum { SG_LOG_ERROR = 1, SG_LOG_WARNING = 2, SG_LOG_INFO = 3, SG_LOG_DEBUG = 4, SG_LOG_TRACE = 5 };

/* A line of the log, without a line feed: of a component with `log`; else it is printed. What sg_printf and sg_puts print in a
 * component with `log` has the level SG_LOG_INFO. Levels that the description leaves out cost a branch. */
void sg_vlog(int level, const char *format, va_list arguments);

SG_PRINTF(2, 3) static inline void sg_log(int level, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    sg_vlog(level, format, arguments);
    va_end(arguments);
}

/* ---------------------------------------------------------------- watchdog */

/* A sign of life, of a component with `watchdog`: the next is due within that time. Panics without it. */
void sg_report_alive(void);

/* Nothing is to be done until somebody asks: no sign of life is due before the next. Panics as above. */
void sg_rest(void);

/* ---------------------------------------------------------------- objects */

/* A slot: `depth` bits of `index` below the CNode `root`. */
typedef struct sg_slot {
    sg_cap root;
    uint64_t index;
    uint8_t depth; /* 64: of the whole address */
} sg_slot;

/* Rights of a capability. */
#define SG_WRITE 1u       /* send, signal, write */
#define SG_READ 2u        /* receive, wait, read */
#define SG_GRANT 4u       /* send capabilities along */
#define SG_GRANT_REPLY 8u /* call */
#define SG_ALL_RIGHTS 15u

/* Copies a capability, with at most those rights. */
SG_MUST_USE sg_error sg_copy_capability(sg_slot to, sg_slot from, uint64_t rights);

/* As above, with a badge: of an endpoint or a notification that has none yet. */
SG_MUST_USE sg_error sg_mint_capability(sg_slot to, sg_slot from, uint64_t rights, uint64_t badge);

/* Moves a capability to an empty slot. */
SG_MUST_USE sg_error sg_move_capability(sg_slot to, sg_slot from);

/* Empties a slot. */
SG_MUST_USE sg_error sg_delete_capability(sg_slot slot);

/* Deletes everything that was made from what is in the slot. */
SG_MUST_USE sg_error sg_revoke_capability(sg_slot slot);

/* Stops a thread until it is resumed; what it waits for is given up. The description's `controls` gives NAME.tcb. */
SG_MUST_USE sg_error sg_suspend(sg_cap thread);
SG_MUST_USE sg_error sg_resume(sg_cap thread);

/* Sets a thread's priority, 0 to 254, at most the maximum controlled priority (`mcp`) of `authority`. */
SG_MUST_USE sg_error sg_set_priority(sg_cap thread, sg_cap authority, uint8_t priority);

/* What a scheduling context has. */
typedef struct sg_reservation {
    uint64_t budget_us;
    uint64_t period_us; /* equal to the budget: round robin, without a limit */
    uint64_t extra_refills;
    uint64_t badge; /* what a timeout of it reports */
    bool sporadic;
} sg_reservation;

/* Fills a scheduling context, by the capability sched-control.CORE of the description's `scheduling-control`.
 * SG_OUT_OF_RANGE: below 20 µs, the budget above the period, or more refills than fit. */
SG_MUST_USE sg_error sg_configure_context(sg_cap control, sg_cap context, const sg_reservation *reservation);

/* Time that was used on a context since this was last asked, µs. */
SG_MUST_USE sg_error sg_consumed_us(sg_cap context, uint64_t *us);

/* Lets the thread of a context run first, if its priority is the caller's; `consumed_us` as above. */
SG_MUST_USE sg_error sg_yield_to(sg_cap context, uint64_t *consumed_us);

/* Lets an interrupt come again: of the [[interrupt]] NAME, the capability NAME. */
SG_MUST_USE sg_error sg_acknowledge_interrupt(sg_cap handler);

/* I/O ports of a [[ports]]. SG_ILLEGAL_OPERATION: not one of its ports. */
SG_MUST_USE sg_error sg_port_read8(sg_cap ports, uint16_t port, uint8_t *value);
SG_MUST_USE sg_error sg_port_read16(sg_cap ports, uint16_t port, uint16_t *value);
SG_MUST_USE sg_error sg_port_read32(sg_cap ports, uint16_t port, uint32_t *value);
SG_MUST_USE sg_error sg_port_write8(sg_cap ports, uint16_t port, uint8_t value);
SG_MUST_USE sg_error sg_port_write16(sg_cap ports, uint16_t port, uint16_t value);
SG_MUST_USE sg_error sg_port_write32(sg_cap ports, uint16_t port, uint32_t value);

/* ---------------------------------------------------------------- timers */

/* A timer of a [[timer]] of the description. All times are ticks of sg_ticks. Setting and cancelling are calls, on the
 * caller's time; an expiry is a signal of `signal`, and several that nobody has waited for are one. */
typedef struct sg_timer {
    sg_cap service, signal;
    uint64_t number; /* below the `count` of the [[timer]] */
} sg_timer;

/* The timer of that name, with the number 0. Panics if there is none. */
sg_timer sg_timer_named(const char *name);

/* Lets it expire once, at the time `at`. If that has passed, it does not, and `is_set`, if it is not null, is false. */
SG_MUST_USE sg_error sg_set_timer(sg_timer timer, uint64_t at, bool *is_set);

/* Lets it expire at first + k * period for all k from 0, without drift. */
SG_MUST_USE sg_error sg_repeat_timer(sg_timer timer, uint64_t first, uint64_t period);

/* Lets it not expire any more; `was_set`, if it is not null, says whether it would have. */
SG_MUST_USE sg_error sg_cancel_timer(sg_timer timer, bool *was_set);

/* How often it has expired since it was set. */
SG_MUST_USE sg_error sg_timer_expiries(sg_timer timer, uint64_t *count);

/* Waits until the time `at`. Nobody else may wait for the signal meanwhile. */
SG_MUST_USE sg_error sg_wait_until(sg_timer timer, uint64_t at);

/* ---------------------------------------------------------------- policies: tasks by deadline */

/* A job of an [[edf]] task. */
typedef struct sg_job {
    uint64_t number; /* from 0; those of skipped jobs are missing */
    uint64_t release;  /* ticks */
    uint64_t deadline; /* ticks */
} sg_job;

/* Says that the task is ready, or its job done, and waits until the next job may run. Panics if the component is no task
 * of an [[edf]]. */
sg_job sg_edf_next(void);

/* ---------------------------------------------------------------- policies: periodic tasks */

/* When jobs begin: each a whole number of periods after the first, without drift. */
typedef struct sg_releases {
    uint64_t number; /* of the next */
    uint64_t at;     /* of the next: ticks of any clock */
    uint64_t period; /* ticks; 0 counts as 1 */
    bool skip_missed; /* releases that a late job has passed do not happen; else they do, at once */
} sg_releases;

typedef struct sg_release {
    uint64_t number;
    uint64_t at; /* ticks */
} sg_release;

/* Begins releases every `period_us` µs by a timer that nobody else uses, the first one a period from now. Fills in
 * `releases`. */
SG_MUST_USE sg_error sg_start_releases(sg_releases *releases, sg_timer timer, uint64_t period_us, bool skip_missed);

/* Waits for the next release, in ticks of sg_ticks. */
sg_release sg_wait_for_release(sg_releases *releases, sg_timer timer);

/* The next release, seen at `now`: for those who wait for it otherwise. */
sg_release sg_next_release(sg_releases *releases, uint64_t now);

/* Does a job in each period, for good, released by the ready-made component `release-timer`. It marks the jobs in the
 * trace. Panics if the component has not what that takes. */
SG_NORETURN void sg_run_released(void (*job)(uint64_t number, void *context), void *context);

/* ---------------------------------------------------------------- policies: timeouts */

/* Label of the answer to a client whose request was given up, unless its server says something else. Such a client may
 * ask again. */
#define SG_TIMED_OUT 0x7130

/* What happened. */
enum {
    SG_TIMEOUT_OTHER = 0, /* what came is no timeout of this server; nothing was done */
    SG_TIMEOUT_ROLLED_BACK = 1,
    SG_TIMEOUT_RESET = 2,
    SG_TIMEOUT_KILLED = 3,
    SG_TIMEOUT_EMERGENCY = 4,
    SG_TIMEOUT_EXTENDED = 5,
    SG_TIMEOUT_FAULT = 6 /* the server has faulted: its request ended, and it waits again */
};

typedef struct sg_timeout_event {
    int what;             /* SG_TIMEOUT_... */
    uint64_t badge;       /* of the scheduling context that ran out */
    uint64_t consumed_us; /* used on it since the last report */
    uint64_t budget_us;   /* of an emergency, or after an extension */
} sg_timeout_event;

/* What clients are told whose request ends early. The server stands still meanwhile. `caller` is the badge under which the
 * server got the request, if it is known. */
typedef struct sg_timeout_functions {
    sg_message (*rolled_back)(bool is_known, uint64_t caller, void *context); /* what was done so far */
    sg_message (*reset)(bool is_known, uint64_t caller, void *context);       /* null: SG_TIMED_OUT */
    sg_message (*killed)(bool is_known, uint64_t caller, void *context);      /* null: SG_TIMED_OUT */
    void (*observe)(const sg_timeout_event *event, void *context);            /* null: nobody looks */
    void *context;
} sg_timeout_functions;

/* Makes the thread `thread` of this component the handler of the [[timeout-policy]] of `server`, a passive thread of this
 * component. Before the server serves. Panics if the description says otherwise. */
void sg_prepare_timeout_handler(const char *server, const char *thread, const sg_timeout_functions *functions);

/* ---------------------------------------------------------------- trace */

/* Marks of the calling thread in the trace, times in ticks. In a system that is not traced they cost a branch. Jobs have
 * different numbers. Without a mark of its deadline, a job has the one that the description says, if any. */
void sg_mark_release(uint64_t job, uint64_t at);
void sg_mark_deadline(uint64_t job, uint64_t at);
void sg_mark_end(uint64_t job);
void sg_mark_note(uint64_t what, uint64_t value);

/* ---------------------------------------------------------------- what compilers call */

void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);
size_t strlen(const char *text);

#endif
