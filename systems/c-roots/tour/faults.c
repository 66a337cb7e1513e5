/*
 * Faults: each is a message to the thread's handler, which is here the first thread.
 */
#include "tour.h"

#include "memory.h"
#include "own_faults.h"

#define HANDLER_BADGE 0xfa17

static cptr_t endpoint, badged, reply;

static struct thread *spawn(void (*run)(void *), void *argument)
{
    return thread_spawn((struct thread_params){.priority = HELPER_PRIORITY, ROUND_ROBIN,
                                               .fault_handler = badged},
                        run, argument);
}

static void handler(void)
{
    endpoint = object_new(OBJECT_ENDPOINT, 0);
    reply = object_new(OBJECT_REPLY, 0);
    badged = slot_new();
    EXPECT_DONE(cnode_mint(badged, endpoint, ALL_RIGHTS, HANDLER_BADGE));
}

/* The word of a fault message that was just received. */
static word_t fault_word(const struct message *fault, unsigned i)
{
    return i < REGISTER_WORDS ? fault->mr[i] : ipc_buffer->mr[i];
}

/* What a thread says when it is through, at the endpoint of its faults. */
#define DONE_LABEL 0xd03e

static void say_done(word_t result)
{
    sys_send(endpoint, word_message(DONE_LABEL, result));
}

static void read_word(void *argument)
{
    say_done(*(volatile word_t *)argument);
}

static void write_word(void *argument)
{
    *(volatile word_t *)argument = 0x600d;
    say_done(*(volatile word_t *)argument);
}

/* Paging: the handler maps the page that was missing, and the thread never knows. */
static void page_on_demand(void)
{
    word_t vaddr = FAULTS_AREA + 8 * sizeof(word_t);
    struct thread *thread = spawn(read_word, (void *)vaddr);
    struct message fault = sys_recv(endpoint, reply);
    EXPECT_EQ(info_label(fault.info), FAULT_VM);
    EXPECT_EQ(info_length(fault.info), 4);
    EXPECT_EQ(fault.badge, HANDLER_BADGE);
    EXPECT_EQ(fault_word(&fault, 1), vaddr);
    EXPECT_EQ(fault_word(&fault, 2), 0);
    EXPECT(is_read_of_nothing(fault_word(&fault, 3)));

    page_at(FAULTS_AREA);
    *(volatile word_t *)vaddr = 0xabcdef;
    struct message done = sys_reply_recv(endpoint, empty_message(), reply);
    EXPECT_EQ(info_label(done.info), DONE_LABEL);
    EXPECT_EQ(done.mr[0], 0xabcdef);
    thread_end(thread);
}

/* A page that may only be read, until its handler thinks otherwise. */
static void write_to_a_read_only_page(void)
{
    word_t vaddr = FAULTS_AREA + PAGE_BYTES;
    cptr_t page = object_new(OBJECT_PAGE, 0);
    map_with_tables(page, INIT_VSPACE, vaddr, RIGHT_READ);
    struct thread *thread = spawn(write_word, (void *)vaddr);
    struct message fault = sys_recv(endpoint, reply);
    EXPECT_EQ(info_label(fault.info), FAULT_VM);
    EXPECT_EQ(fault_word(&fault, 1), vaddr);
    EXPECT(is_write_to_page(fault_word(&fault, 3)));
    EXPECT_DONE(page_map(page, INIT_VSPACE, vaddr, RIGHT_READ | RIGHT_WRITE));
    struct message done = sys_reply_recv(endpoint, empty_message(), reply);
    EXPECT_EQ(done.mr[0], 0x600d);
    thread_end(thread);
}

static void foreign_system_call(void *argument)
{
    (void)argument;
    say_done(other_systems_call(39, 0x1234));
}

/* Another system's calls can be emulated: the handler sets a register and goes on behind the call. */
static void emulated_system_call(void)
{
    struct thread *thread = spawn(foreign_system_call, NULL);
    struct message fault = sys_recv(endpoint, reply);
    EXPECT_EQ(info_label(fault.info), FAULT_UNKNOWN_SYSCALL);
    EXPECT_EQ(info_length(fault.info), UNKNOWN_LENGTH);
    EXPECT_EQ(fault_word(&fault, UNKNOWN_RESULT), 39);
    EXPECT_EQ(fault_word(&fault, UNKNOWN_NUMBER), 0x1234);

    /* The words beyond the registers are in the buffer already. */
    ipc_buffer->mr[UNKNOWN_IP] += SYSTEM_CALL_BYTES;
    fault.mr[UNKNOWN_RESULT] = 4711;
    fault.info = message_info(0, 0, UNKNOWN_SETTABLE);
    struct message done = sys_reply_recv(endpoint, fault, reply);
    EXPECT_EQ(info_label(done.info), DONE_LABEL);
    EXPECT_EQ(done.mr[0], 4711);
    thread_end(thread);
}

static void undefined_instruction(void *argument)
{
    (void)argument;
    execute_undefined();
    say_done(1);
}

static void skipped_instruction(void)
{
    struct thread *thread = spawn(undefined_instruction, NULL);
    struct message fault = sys_recv(endpoint, reply);
    EXPECT_EQ(info_label(fault.info), FAULT_USER_EXCEPTION);
    EXPECT_EQ(info_length(fault.info), 5);
    EXPECT_EQ(fault_word(&fault, 3), UNDEFINED_NUMBER);
    EXPECT_EQ(memcmp((const void *)fault_word(&fault, 0), UNDEFINED, UNDEFINED_BYTES), 0);
    struct message done =
        sys_reply_recv(endpoint, word_message(0, fault_word(&fault, 0) + UNDEFINED_BYTES), reply);
    EXPECT_EQ(info_label(done.info), DONE_LABEL);
    thread_end(thread);
}

static void wait_on_nothing(void *argument)
{
    sys_wait((cptr_t)argument);
    say_done(1);
}

/* A capability that is missing can be provided by the handler. */
static void capability_on_demand(void)
{
    cptr_t missing = slot_new();
    struct thread *thread = spawn(wait_on_nothing, (void *)missing);
    struct message fault = sys_recv(endpoint, reply);
    EXPECT_EQ(info_label(fault.info), FAULT_CAP);
    EXPECT_EQ(fault_word(&fault, 1), missing);
    EXPECT_EQ(fault_word(&fault, 2), 1);
    EXPECT_EQ(fault_word(&fault, 3), MISSING_CAPABILITY);
    cptr_t notification = object_new(OBJECT_NOTIFICATION, 0);
    sys_signal(notification);
    EXPECT_DONE(cnode_move(missing, notification));
    struct message done = sys_reply_recv(endpoint, empty_message(), reply);
    EXPECT_EQ(info_label(done.info), DONE_LABEL);
    thread_end(thread);
}

static void use_debug_calls(void *argument)
{
    word_t *kinds = argument;
    for (const char *text = "  this line is the debug kernel's\n"; *text != '\0'; text++)
        sys_debug_put_char(*text);
    for (cptr_t slot = 0; slot < INIT_FIRST_DYNAMIC; slot++)
        kinds[slot] = sys_debug_cap_identify(slot);
    say_done(0);
}

/* The debug kernel prints, and names the kinds of capabilities; the other has no such calls. */
static void debug_calls(void)
{
    static const word_t expected[INIT_FIRST_DYNAMIC] = {0, 12, 10, 9,  14, 11, 13, KIND_OF_SLOT_7,
                                                        0, 1,  1,  20, 0,  0,  22, 0};
    word_t kinds[INIT_FIRST_DYNAMIC];
    struct thread *thread = spawn(use_debug_calls, kinds);
    struct message message = sys_recv(endpoint, reply);
    if (info_label(message.info) == FAULT_UNKNOWN_SYSCALL) {
        EXPECT_EQ(fault_word(&message, UNKNOWN_NUMBER), (word_t)SYS_DEBUG_PUT_CHAR);
        say("  this kernel has no debug calls\n");
    } else {
        EXPECT_EQ(info_label(message.info), DONE_LABEL);
        for (cptr_t slot = 0; slot < INIT_FIRST_DYNAMIC; slot++)
            EXPECT_EQ(kinds[slot], expected[slot]);
    }
    thread_end(thread);
}

void test_faults(void)
{
    test("fault_handler", handler);
    test("page_on_demand", page_on_demand);
    test("write_to_a_read_only_page", write_to_a_read_only_page);
    test("emulated_system_call", emulated_system_call);
    test("skipped_instruction", skipped_instruction);
    test("capability_on_demand", capability_on_demand);
    test("debug_calls", debug_calls);
}
