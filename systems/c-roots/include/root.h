/*
 * What the root tasks share: their start, console, checks, objects and threads.
 */
#ifndef ROOT_H
#define ROOT_H

#include "elf.h"
#include "invoke.h"

/* The program: returns once all its tests have run. */
void root_main(void);

extern struct boot_info *boot_info;

extern struct entry_state entry_state;
/* Number of words of the IPC buffer's page that were not zero at the start. */
extern word_t entry_dirty_ipc_words;

/* The image in memory: whole pages, as the program headers of this file say. */
struct range {
    word_t start;
    word_t end;
};
struct range image_range(void);
/* Capability of the image's frame that holds `address`. */
cptr_t image_frame(const void *address);

/* memory.c */
bool all_zero(const void *start, size_t bytes);

/* The architecture's console.c: the first serial port, and the end of the machine. */
void console_open(void);
void console_put(char c);
/* console.c */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes what would be said into `text`, cut to its size. */
void say_into(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Ends the machine with `status`, as QEMU lets a program; elsewhere, this thread alone. */
_Noreturn void leave(unsigned status);

/* check.c: tests, one line each. */
void test(const char *name, void (*body)(void));
/* Prints the closing line; the status to leave with. */
unsigned tests_close(void);
/* Records why the running test has failed; the first reason counts. */
void test_failed(const char *file, int line, const char *what, word_t found, word_t wanted);

/* Ends the function, and with it the test, unless `condition` holds. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            test_failed(__FILE__, __LINE__, #condition, 0, 1);                                     \
            return;                                                                                \
        }                                                                                          \
    } while (0)

#define EXPECT_EQ(found, wanted)                                                                   \
    do {                                                                                           \
        word_t found_ = (word_t)(found), wanted_ = (word_t)(wanted);                               \
        if (found_ != wanted_) {                                                                   \
            test_failed(__FILE__, __LINE__, #found, found_, wanted_);                              \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/* The invocation succeeds. */
#define EXPECT_DONE(invocation) EXPECT_EQ((invocation).error, NO_ERROR)

/* objects.c: slots and objects, from the boot information. */
cptr_t slot_new(void);
/* An object of RAM in a new slot; ends the program if there is none left. */
cptr_t object_new(enum object_type type, word_t size_bits);
/* Whether something was made of untyped memory number `number`, by these functions. */
bool untyped_is_used(word_t number);
/* `count` objects in slots one behind the other; the first. */
cptr_t objects_new(enum object_type type, word_t size_bits, word_t count);
/* Ends the program unless `result` is a success. */
void must(struct result result, const char *what);
/* Maps `page` at `vaddr` and makes the tables that are missing on the way. */
void map_with_tables(cptr_t page, cptr_t vspace, word_t vaddr, word_t rights);
/* The page at `paddr`, cut out of the untyped that holds it, half by half; 0 if none does. */
cptr_t device_page(word_t paddr);
/* Maps a page of a device. */
void map_device(cptr_t page, word_t vaddr);
/* A new 4 KiB frame at `vaddr` of this program, readable and writable. */
cptr_t page_at(word_t vaddr);

/* The architecture's tls.c: thread-local storage from the program's PT_TLS. */
#define TLS_BYTES 8192u
#define TLS_ALIGN 4096u
/* Lays a thread's block out in `area` (TLS_BYTES, aligned to TLS_ALIGN); its thread pointer. */
word_t tls_make(void *area);
/* Whether a variable of the block whose pointer is `base` can be at `address`. */
bool tls_holds(word_t base, word_t address);

/* thread.c: threads of this program, with stack, IPC buffer and TLS in its image. */
struct thread {
    cptr_t tcb;
    cptr_t context;
    struct ipc_buffer *buffer;
    word_t stack_top;
    word_t tls_base;
    void (*run)(void *argument);
    void *argument;
};
struct thread_params {
    word_t priority;
    /* Time in µs; a period of 0 makes a thread without scheduling context. */
    word_t budget;
    word_t period;
    word_t badge;
    cptr_t fault_handler;
};
#define ROUND_ROBIN .budget = 5000, .period = 5000
/* A thread that is ready to be started. */
struct thread *thread_new(struct thread_params params, void (*run)(void *), void *argument);
/* Its first registers. */
void thread_registers(const struct thread *thread, word_t registers[USER_REGISTERS]);
void thread_start(const struct thread *thread);
/* A thread that runs. */
struct thread *thread_spawn(struct thread_params params, void (*run)(void *), void *argument);
/* Stops it for good and gives back stack, buffer, TLS and objects. */
void thread_end(struct thread *thread);

#endif
