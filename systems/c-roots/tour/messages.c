/*
 * Messages: calls and replies, with as many words as there are, and with capabilities.
 */
#include "tour.h"

#define BADGE 0xb4d6e
#define REQUEST_LABEL 0x1234567
#define REQUEST_KEY 0x5a5a5a5a5a5a5a5aul
#define REPLY_KEY 0xa5a5a5a5a5a5a5a5ul

/* Fills a message with words that tell their place, from the third register on in the buffer. */
static struct message full_message(word_t label, word_t caps, word_t key)
{
    struct message message = {.info = message_info(label, caps, MESSAGE_WORDS)};
    for (unsigned i = 0; i < MESSAGE_WORDS; i++) {
        if (i < REGISTER_WORDS)
            message.mr[i] = key + i;
        else
            ipc_buffer->mr[i] = key + i;
    }
    return message;
}

static bool is_full(const struct message *message, word_t key)
{
    if (info_length(message->info) != MESSAGE_WORDS)
        return false;
    for (unsigned i = 0; i < MESSAGE_WORDS; i++) {
        word_t word = i < REGISTER_WORDS ? message->mr[i] : ipc_buffer->mr[i];
        if (word != key + i)
            return false;
    }
    return true;
}

/* Names the slot that takes a capability from the next message. */
static void receive_into(cptr_t slot)
{
    ipc_buffer->receive_cnode = INIT_CNODE;
    ipc_buffer->receive_index = slot;
    ipc_buffer->receive_depth = CSPACE_DEPTH;
}

struct server {
    cptr_t endpoint;
    cptr_t reply;
    cptr_t ready;    /* signalled before the first wait, unless 0 */
    cptr_t received; /* slot for a capability of a request */
    cptr_t gift;     /* capability for the reply, or 0 */
    struct message request;
    word_t cap_or_badge; /* what the buffer said about the request's first capability */
    bool right;
    unsigned served;
};

static struct server new_server(void)
{
    return (struct server){
        .endpoint = object_new(OBJECT_ENDPOINT, 0),
        .reply = object_new(OBJECT_REPLY, 0),
    };
}

static const struct thread_params helper = {.priority = HELPER_PRIORITY, ROUND_ROBIN};

/* Takes one full request and answers it in full. */
static void serve_one(void *argument)
{
    struct server *server = argument;
    receive_into(server->received);
    server->request = sys_recv(server->endpoint, server->reply);
    server->cap_or_badge = ipc_buffer->caps_or_badges[0];
    server->right = is_full(&server->request, REQUEST_KEY);
    ipc_buffer->caps_or_badges[0] = server->gift;
    sys_send(server->reply, full_message(1, server->gift != 0, REPLY_KEY));
}

/* Whether a call with all words and a capability arrives, and is answered likewise. */
static bool exchange(struct server *server)
{
    cptr_t sent = object_new(OBJECT_NOTIFICATION, 0);
    cptr_t badged = slot_new();
    must(cnode_mint(badged, server->endpoint, ALL_RIGHTS, BADGE), "a badge");
    cptr_t answered = slot_new();
    receive_into(answered);

    ipc_buffer->caps_or_badges[0] = sent;
    struct message reply = sys_call(badged, full_message(REQUEST_LABEL, 1, REQUEST_KEY));
    bool right = is_full(&reply, REPLY_KEY) && server->right &&
                 info_label(server->request.info) == REQUEST_LABEL &&
                 server->request.badge == BADGE && info_caps(server->request.info) == 1 &&
                 info_unwrapped(server->request.info) == 0 && reply.badge == 0 &&
                 info_caps(reply.info) == 1;
    /* What the server got is the notification, what we got its gift. */
    sys_signal(server->received);
    right &= sys_nb_wait(sent).badge == 0;
    must(cnode_mint(slot_new(), answered, ALL_RIGHTS, 7), "a badge on the gift");
    return right;
}

static void call_with_120_words_and_a_capability(void)
{
    struct server server = new_server();
    server.received = slot_new();
    server.gift = object_new(OBJECT_NOTIFICATION, 0);
    struct thread *thread = thread_spawn(helper, serve_one, &server);
    EXPECT(exchange(&server));
    thread_end(thread);
}

/* The buffer may be any frame: here, one of its own, mapped far away. */
static void buffer_in_a_frame_of_its_own(void)
{
    struct server server = new_server();
    server.received = slot_new();
    server.gift = object_new(OBJECT_NOTIFICATION, 0);
    struct thread *thread = thread_new(helper, serve_one, &server);
    word_t vaddr = MESSAGES_AREA + 3 * sizeof(struct ipc_buffer);
    cptr_t frame = page_at(MESSAGES_AREA);
    EXPECT_DONE(invoke(thread->tcb, TCB_SET_IPC_BUFFER, WORDS(vaddr), WORDS(frame)));
    thread->buffer = (struct ipc_buffer *)vaddr;
    thread_start(thread);
    EXPECT(exchange(&server));
    thread_end(thread);
}

/* Doubles numbers until it is asked to end. */
static void serve_doubles(void *argument)
{
    struct server *server = argument;
    struct message message = server->ready == 0
        ? sys_recv(server->endpoint, server->reply)
        : sys_nb_send_recv(server->ready, word_message(0, 0), server->endpoint, server->reply);
    while (info_label(message.info) == REQUEST_LABEL) {
        server->served++;
        message = sys_reply_recv(server->endpoint, word_message(0, 2 * message.mr[0]),
                                 server->reply);
    }
    sys_send(server->reply, empty_message());
}

static bool doubles(cptr_t endpoint, unsigned times)
{
    for (unsigned i = 1; i <= times; i++) {
        struct message reply = sys_call(endpoint, word_message(REQUEST_LABEL, i));
        if (reply.mr[0] != 2 * i || info_length(reply.info) != 1)
            return false;
    }
    return true;
}

static void reply_and_wait(void)
{
    struct server server = new_server();
    struct thread *thread = thread_spawn(helper, serve_doubles, &server);
    EXPECT(doubles(server.endpoint, 100));
    EXPECT_EQ(server.served, 100);
    sys_call(server.endpoint, empty_message());
    thread_end(thread);
}

/* A server without scheduling context runs on that of whoever calls. */
static void passive_server(void)
{
    struct server server = new_server();
    server.ready = object_new(OBJECT_NOTIFICATION, 0);
    struct thread *thread = thread_spawn(helper, serve_doubles, &server);
    sys_wait(server.ready);
    EXPECT_DONE(sched_context_unbind_object(thread->context, thread->tcb));
    sched_context_consumed(thread->context);
    EXPECT(doubles(server.endpoint, 10));
    EXPECT_EQ(sched_context_consumed(thread->context).mr[0], 0);
    thread_end(thread);
}

/* A capability to the endpoint that the message goes through arrives as its badge. */
static void capability_to_the_same_endpoint(void)
{
    struct server server = new_server();
    server.received = slot_new();
    struct thread *thread = thread_spawn(helper, serve_one, &server);
    cptr_t badged = slot_new();
    EXPECT_DONE(cnode_mint(badged, server.endpoint, RIGHT_WRITE, 99));
    ipc_buffer->caps_or_badges[0] = badged;
    sys_call(server.endpoint, full_message(REQUEST_LABEL, 1, REQUEST_KEY));
    EXPECT(server.right);
    EXPECT_EQ(info_unwrapped(server.request.info), 1);
    EXPECT_EQ(server.cap_or_badge, 99);
    thread_end(thread);
}

static void nobody_is_there(void)
{
    cptr_t endpoint = object_new(OBJECT_ENDPOINT, 0);
    cptr_t reply = object_new(OBJECT_REPLY, 0);
    sys_nb_send(endpoint, word_message(1, 2));
    EXPECT_EQ(sys_nb_recv(endpoint, reply).badge, 0);
    /* A reply to nobody is no error. */
    sys_send(reply, empty_message());
}

void test_messages(void)
{
    test("call_with_120_words_and_a_capability", call_with_120_words_and_a_capability);
    test("buffer_in_a_frame_of_its_own", buffer_in_a_frame_of_its_own);
    test("reply_and_wait", reply_and_wait);
    test("passive_server", passive_server);
    test("capability_to_the_same_endpoint", capability_to_the_same_endpoint);
    test("nobody_is_there", nobody_is_there);
}
