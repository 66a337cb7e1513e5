/* The servers: one for each way to serve. */

#include "roles.h"

static sg_message next(const sg_request *request, void *context)
{
    (void)context;
    uint64_t word = sg_word(&request->message, 0);
    return (sg_message){.label = DONE, .length = 2, .words = {request->badge, word + 1}};
}

static sg_message answer(const sg_request *request, void *context)
{
    const sg_message *message = &request->message;
    sg_message gift = {.label = DONE};
    uint64_t badge = 0, words[SG_MESSAGE_WORDS], sum = 0;
    bool is_badge;
    size_t count;
    switch (message->label) {
    case SUM:
        count = sg_copy_words(message, words, SG_MESSAGE_WORDS);
        for (size_t i = 0; i < count; i++)
            sum += words[i];
        return (sg_message){.label = DONE, .length = 2, .words = {count, sum}};
    case BADGE:
        is_badge = sg_unwrapped_badge(message, 0, &badge);
        return (sg_message){.label = DONE, .length = 2, .words = {is_badge, badge}};
    case GIFT:
        sg_add_capability(&gift, sg_capability("given"));
        return gift;
    case SPIN:
        for (;;)
            sg_spin_us(10);
    default:
        return next(request, context);
    }
}

static sg_message rolled_back(bool is_known, uint64_t caller, void *context)
{
    (void)context;
    return (sg_message){.label = ROLLED_BACK, .length = 1, .words = {is_known ? caller : 0}};
}

static void observe(const sg_timeout_event *event, void *context)
{
    sg_cap *news = context;
    if (event->what == SG_TIMEOUT_ROLLED_BACK && event->consumed_us > 0)
        sg_signal(*news);
}

void server(void)
{
    static sg_cap news;
    news = sg_capability("news");
    static const sg_timeout_functions functions = {.rolled_back = rolled_back, .observe = observe, .context = &news};
    sg_prepare_timeout_handler("server", "handler", &functions);
    sg_serve("work", answer, NULL);
}

void pool(void)
{
    static const char *const others[] = {"second"};
    sg_serve_workers("pool", others, 1, next, NULL);
}

/* The slots with which it would make its second thread: it makes one at most. */
static sg_slot spare(uint64_t number)
{
    uint64_t slots_of_thread = 8192 / 4096 + 3;
    uint64_t first = sg_parameter("spawning.slot") + slots_of_thread;
    return (sg_slot){.root = sg_capability("spawning.cspace"), .index = first + number, .depth = 64};
}

/* Moves capabilities about; whether all went as it should. */
static bool slots_work(void)
{
    sg_slot own = spare(0);
    own.index = sg_capability("spawning.cspace");
    sg_slot a = spare(1), b = spare(2);
    return sg_copy_capability(a, own, SG_ALL_RIGHTS) == SG_OK &&
           sg_copy_capability(a, own, SG_ALL_RIGHTS) == SG_DELETE_FIRST &&
           sg_move_capability(b, a) == SG_OK &&
           sg_mint_capability(a, b, SG_ALL_RIGHTS, 0) == SG_OK &&
           sg_revoke_capability(a) == SG_OK &&
           sg_delete_capability(a) == SG_OK && sg_delete_capability(b) == SG_OK &&
           sg_move_capability(b, a) == SG_FAILED_LOOKUP;
}

static sg_message in_hall(const sg_request *request, void *context)
{
    bool *slots_worked = context;
    if (request->message.label == SLOTS)
        return (sg_message){.label = DONE, .length = 1, .words = {*slots_worked}};
    return next(request, NULL);
}

void spawner(void)
{
    static bool slots_worked;
    slots_worked = slots_work();
    sg_slot received = spare(1);
    sg_receive_capability_to(received.root, received.index, received.depth);
    sg_message gift = sg_call(sg_capability("work"), (sg_message){.label = GIFT});
    slots_worked = slots_worked && gift.capabilities == 1;
    sg_signal(received.index);
    sg_serve_spawning("hall", in_hall, &slots_worked);
}

/* The requests that wait for a tick. */
struct waiting {
    uint64_t tickets[4];
    size_t count;
};

static bool take(const sg_request *request, uint64_t ticket, sg_message *answer, void *context)
{
    struct waiting *waiting = context;
    if (request->message.label != LATER || waiting->count == 4) {
        *answer = next(request, NULL);
        return true;
    }
    waiting->tickets[waiting->count++] = ticket;
    return false;
}

static void ticked(sg_completions *completions, void *context)
{
    struct waiting *waiting = context;
    sg_message answer = {.label = LATER, .length = 1, .words = {waiting->count}};
    while (waiting->count > 0)
        sg_complete(completions, waiting->tickets[--waiting->count], answer);
    if (sg_complete(completions, 1000, answer))
        sg_panic("nobody has that ticket");
}

void device(void)
{
    static struct waiting waiting;
    static const sg_device functions = {.request = take, .interrupt = ticked, .context = &waiting};
    sg_error error = sg_acknowledge_interrupt(sg_capability("clock"));
    sg_assert(error == SG_OK);
    sg_serve_device("disk", sg_capability("tick"), &functions);
}

/* Receives in every way that there is. */
int raw(void)
{
    sg_cap endpoint = sg_capability("raw"), reply = sg_capability("raw.reply"), news = sg_capability("news");
    sg_assert(sg_try_receive(endpoint, reply).badge == 0);
    sg_assert(sg_try_receive_sent(endpoint).badge == 0);

    sg_request request = sg_receive(endpoint, reply);
    sg_assert(request.badge == 5);
    request = sg_reply_receive(reply, next(&request, NULL), endpoint);
    sg_assert(request.badge == 5);
    sg_reply(reply, next(&request, NULL));
    request = sg_receive_sent(endpoint);
    sg_assert(request.badge == 6 && request.message.label == 0x71);
    request = sg_send_receive(news, (sg_message){0}, endpoint, reply);
    sg_assert(request.badge == 6 && request.message.label == 0x72);
    sg_signal(news);
    return 0;
}
