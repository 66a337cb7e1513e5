/*
 * A root task for kernels of the profile `avx`: the registers of AVX are a thread's own, as those of x87 and SSE are.
 *
 * The compiler has no AVX here: what is in these registers, assembly puts there.
 */
#include "root.h"

#define REGISTERS 16
#define REGISTER_BYTES 32
/* Of each of the threads that alternate. */
#define YIELDS 10000ul
#define PRIORITY 254
#define EXCEPTION_WITHOUT_FPU 7

/* One behind the other, as `STORE` and `LOAD` have them: YMM0 to YMM15. */
struct image {
    uint8_t bytes[REGISTERS * REGISTER_BYTES];
};

#define EACH(op)                                                                                   \
    op("0") op("1") op("2") op("3") op("4") op("5") op("6") op("7") op("8") op("9") op("10")       \
        op("11") op("12") op("13") op("14") op("15")
/* From and to where R12 and R13 point. */
#define LOAD(number) "vmovdqu 32*" number "(%%r12), %%ymm" number "\n\t"
#define STORE(number) "vmovdqu %%ymm" number ", 32*" number "(%%r13)\n\t"
#define ALL_XMM                                                                                    \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",       \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

/* Every byte of every register tells whose it is, which register's, and where it is in that. */
static void fill(struct image *image, uint8_t owner)
{
    for (unsigned i = 0; i < sizeof(image->bytes); i++)
        image->bytes[i] = (uint8_t)(owner + 7 * i + i / REGISTER_BYTES);
}

static bool same(const struct image *a, const struct image *b)
{
    for (unsigned i = 0; i < sizeof(a->bytes); i++) {
        if (a->bytes[i] != b->bytes[i])
            return false;
    }
    return true;
}

/* Loads `from`, yields so many times, and stores what the registers hold then. */
static void load_yield_store(const struct image *from, struct image *to, word_t yields)
{
    register const struct image *in_r12 __asm__("r12") = from;
    register struct image *in_r13 __asm__("r13") = to;
    register word_t in_r14 __asm__("r14") = yields;
    __asm__ volatile(EACH(LOAD)
                     "movq %%rsp, %%rbx\n\t"
                     "1: testq %%r14, %%r14\n\t"
                     "jz 2f\n\t"
                     "movq %[yield], %%rdx\n\t"
                     "syscall\n\t"
                     "decq %%r14\n\t"
                     "jmp 1b\n\t"
                     "2: movq %%rbx, %%rsp\n\t"
                     EACH(STORE)
                     : "+r"(in_r14)
                     : "r"(in_r12), "r"(in_r13), [yield] "i"((long)SYS_YIELD)
                     : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r15", "cc", "memory", ALL_XMM);
}

static void avx_is_there(void)
{
    uint32_t low, high, a = 1, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    EXPECT((c >> 26 & 7) == 7);
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    EXPECT_EQ(low, 7);
    EXPECT_EQ(high, 0);
}

/* Stores the registers with its first instructions, to where the argument points, and faults. */
void store_at_once(void);
__asm__(".text\n"
        "store_at_once:\n\t"
        "vmovdqu %ymm0, (%rdi)\n\t"
        "vmovdqu %ymm1, 32(%rdi)\n\t"
        "vmovdqu %ymm7, 64(%rdi)\n\t"
        "vmovdqu %ymm15, 96(%rdi)\n\t"
        "ud2\n");

static uint8_t stored[4 * REGISTER_BYTES];

/* A thread whose first instructions are those; the number of its exception. */
static word_t exception_of_storing(word_t flags)
{
    cptr_t endpoint = object_new(OBJECT_ENDPOINT, 0), reply = object_new(OBJECT_REPLY, 0);
    struct thread *thread = thread_new(
        (struct thread_params){.priority = 100, ROUND_ROBIN, .fault_handler = endpoint}, NULL, NULL);
    must(tcb_set_flags(thread->tcb, 0, flags), "flags");
    word_t registers[USER_REGISTERS];
    thread_registers(thread, registers);
    registers[REG_IP] = (word_t)store_at_once;
    registers[REG_ARGUMENT] = (word_t)stored;
    must(tcb_write_registers(thread->tcb, true, registers), "registers");
    struct message fault = sys_recv(endpoint, reply);
    thread_end(thread);
    return info_label(fault.info) == FAULT_USER_EXCEPTION ? fault.mr[3] : ~0ul;
}

/* Whatever its creator had in them. */
static void new_threads_have_zeroes(void)
{
    static struct image own, after;
    fill(&own, 11);
    load_yield_store(&own, &after, 0);
    EXPECT(same(&own, &after));
    for (unsigned i = 0; i < sizeof(stored); i++)
        stored[i] = 1;
    /* UD2. */
    EXPECT_EQ(exception_of_storing(0), 6);
    for (unsigned i = 0; i < sizeof(stored); i++)
        EXPECT_EQ(stored[i], 0);
}

static void without_the_fpu(void)
{
    EXPECT_EQ(exception_of_storing(1), EXCEPTION_WITHOUT_FPU);
}

static struct holder {
    struct image own, after;
    volatile bool has_ended;
} holders[2];

static void hold(void *argument)
{
    struct holder *holder = argument;
    load_yield_store(&holder->own, &holder->after, YIELDS);
    holder->has_ended = true;
}

/* Yields as often, and looks each time: it has what it had. */
static struct {
    struct image zeroes, after;
    volatile word_t looks, seen;
} third;

static void look(void *argument)
{
    (void)argument;
    for (word_t i = 0; i < YIELDS; i++) {
        load_yield_store(&third.zeroes, &third.after, 1);
        third.seen = third.seen + !same(&third.zeroes, &third.after);
        third.looks = i + 1;
    }
}

static void three_threads(void)
{
    struct thread *threads[3];
    struct thread_params params = {.priority = PRIORITY, ROUND_ROBIN};
    for (unsigned i = 0; i < 2; i++) {
        fill(&holders[i].own, (uint8_t)(50 + 100 * i));
        threads[i] = thread_spawn(params, hold, &holders[i]);
    }
    threads[2] = thread_spawn(params, look, NULL);
    /* They yield to each other until all have ended; this thread is above them, and lets them. */
    EXPECT_DONE(tcb_set_priority(INIT_TCB, 1));
    for (unsigned i = 0; i < 2; i++) {
        EXPECT(holders[i].has_ended);
        EXPECT(same(&holders[i].own, &holders[i].after));
    }
    EXPECT_EQ(third.looks, YIELDS);
    EXPECT_EQ(third.seen, 0);
    EXPECT_DONE(tcb_set_priority(INIT_TCB, 255));
    for (unsigned i = 0; i < 3; i++)
        thread_end(threads[i]);
}

static struct image moved, arrived;
static volatile bool has_arrived;

/* Yields until it is told that it has done so often enough. */
static void travel(void *argument)
{
    (void)argument;
    load_yield_store(&moved, &arrived, ~0ul);
    has_arrived = true;
}

/* A thread goes from core to core, and its registers with it. */
static void from_core_to_core(void)
{
    struct thread *thread = thread_new((struct thread_params){.priority = PRIORITY, ROUND_ROBIN}, travel, NULL);
    fill(&moved, 99);
    thread_start(thread);
    static struct image own, after;
    fill(&own, 17);
    for (word_t i = 0; i < 64; i++) {
        word_t core = (i + 1) % boot_info->num_nodes;
        EXPECT_DONE(sched_control_configure(boot_info->sched_control.start + core, thread->context, 5000, 5000, 0));
        EXPECT_DONE(tcb_set_priority(INIT_TCB, PRIORITY));
        load_yield_store(&own, &after, 20);
        EXPECT_DONE(tcb_set_priority(INIT_TCB, 255));
        EXPECT(same(&own, &after));
    }
    word_t registers[USER_REGISTERS];
    EXPECT_DONE(tcb_read_registers(thread->tcb, true, registers));
    EXPECT(~registers[REG_R14] >= 64);
    registers[REG_R14] = 1;
    EXPECT_DONE(tcb_write_registers(thread->tcb, true, registers));
    EXPECT_DONE(tcb_set_priority(INIT_TCB, 1));
    while (!has_arrived) {
    }
    EXPECT_DONE(tcb_set_priority(INIT_TCB, 255));
    EXPECT(same(&moved, &arrived));
    thread_end(thread);
}

void root_main(void)
{
    say("C root task: avx\n");
    test("user code has AVX", avx_is_there);
    test("a new thread has zeroes", new_threads_have_zeroes);
    test("a thread without the FPU has none", without_the_fpu);
    test("two threads keep theirs through ten thousand switches, and a third sees none of it", three_threads);
    test("a thread takes them from core to core", from_core_to_core);
}
