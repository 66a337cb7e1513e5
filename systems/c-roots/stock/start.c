/*
 * What the root task is given, and what the processor lets it do (ABI 09, sections 2.4 and 2.5).
 */
#include "stock.h"

static void boot_information(void)
{
    EXPECT_EQ(boot_info->init_thread_cnode_size_bits, ROOT_CNODE_BITS);
    EXPECT_EQ(boot_info->empty.end, 1ul << ROOT_CNODE_BITS);
    EXPECT_EQ(boot_info->num_io_pt_levels, 0);
    EXPECT_EQ(boot_info->io_space_caps.start, 0);
    EXPECT_EQ(boot_info->io_space_caps.end, 0);
    /* An authority for each core that the kernel is for, in slots that nothing else is in, however many there are. */
    EXPECT(boot_info->num_nodes >= 1 && boot_info->num_nodes <= NODES);
    EXPECT_EQ(boot_info->sched_control.end - boot_info->sched_control.start, NODES);
    if (NODES > 1)
        EXPECT_EQ(boot_info->sched_control.start, 16);
    /* The last slot, where nothing is. */
    cptr_t last = boot_info->empty.end - 1;
    EXPECT_DONE(cnode_copy(last, INIT_TCB, ALL_RIGHTS));
    EXPECT_DONE(cnode_delete(last));
}

static void no_call_for_the_thread_pointer(void)
{
    cptr_t endpoint = object_new(OBJECT_ENDPOINT, 0);
    cptr_t reply = object_new(OBJECT_REPLY, 0);
    struct thread *thread = thread_new(
        (struct thread_params){.priority = 100, ROUND_ROBIN, .fault_handler = endpoint}, NULL, NULL);
    static const uint8_t code[] = {0x0f, 0x05, 0x0f, 0x0b};
    word_t registers[USER_REGISTERS];
    thread_registers(thread, registers);
    registers[REG_RIP] = (word_t)code;
    registers[REG_RDX] = (word_t)SYS_SET_TLS_BASE;
    EXPECT_DONE(tcb_write_registers(thread->tcb, true, registers));
    struct message fault = sys_recv(endpoint, reply);
    EXPECT_EQ(info_label(fault.info), FAULT_UNKNOWN_SYSCALL);
    thread_end(thread);
}

static cptr_t progress;

/* Writes both bases, again and again, by a number of its own, and looks whether they stay. */
static void keep_bases(void *argument)
{
    word_t own = (word_t)argument << 32, fs;
    __asm__ volatile("rdfsbase %0" : "=r"(fs));
    for (unsigned i = 0; i < 1000; i++) {
        word_t gs = own + i, seen_fs, seen_gs;
        __asm__ volatile("wrfsbase %0\n\twrgsbase %1" : : "r"(fs), "r"(gs));
        sys_nb_send(progress, empty_message());
        system_call(SYS_YIELD, 0, empty_message(), 0, 0);
        __asm__ volatile("rdfsbase %0\n\trdgsbase %1" : "=r"(seen_fs), "=r"(seen_gs));
        if (seen_fs != fs || seen_gs != gs)
            __builtin_trap();
    }
}

static void bases_are_per_thread(void)
{
    progress = object_new(OBJECT_NOTIFICATION, 0);
    struct thread *threads[2];
    for (word_t i = 0; i < 2; i++)
        threads[i] = thread_spawn((struct thread_params){.priority = 254, ROUND_ROBIN}, keep_bases,
                                  (void *)(i + 1));
    word_t registers[USER_REGISTERS];
    /* They yield to each other until both have ended; this thread is above them, and lets them. */
    EXPECT_DONE(tcb_set_priority(INIT_TCB, 1));
    for (word_t i = 0; i < 2; i++) {
        EXPECT_DONE(tcb_read_registers(threads[i]->tcb, false, registers));
        EXPECT_EQ(registers[REG_GS_BASE], ((i + 1) << 32) + 999);
        EXPECT_EQ(registers[REG_FS_BASE], threads[i]->tls_base);
        thread_end(threads[i]);
    }
    EXPECT_DONE(tcb_set_priority(INIT_TCB, 255));
}

static void xsave_is_enabled(void)
{
    uint32_t low, high, a = 1, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    EXPECT(c >> 27 & 1);
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    EXPECT_EQ(low, 3);
    EXPECT_EQ(high, 0);
}

/* The calls of the other configuration are unknown, or known, as printing is. */
void test_start(void)
{
    test("the boot information is the profile's", boot_information);
    test("there is no call for the thread pointer", no_call_for_the_thread_pointer);
    test("bases that a thread sets are its own", bases_are_per_thread);
    test("XSAVE has x87 and SSE", xsave_is_enabled);
}
