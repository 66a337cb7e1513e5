/* A low-pass filter that its clients share. It works on their time, and can be stopped between any two instructions: after
 * every few samples it notes how far it is, and the timeout handler answers from the last note. */

#include <sandglass.h>
#include <stdatomic.h>

#include "protocol.h"

SG_STACK(0x4000);
SG_HEAP(0x4000);

/* Samples between two notes. */
enum { STEP = 100 };

/* A note: for whom the filter works, on what, and how far it is. */
struct note {
    uint64_t caller, ticket;
    struct progress progress;
};

/* The note that counts, and one that is being written: a store of one word makes it count. */
static struct note notes[2];
static _Atomic unsigned current;

static void write_note(struct note note)
{
    unsigned other = 1 - atomic_load_explicit(&current, memory_order_relaxed);
    notes[other] = note;
    atomic_store_explicit(&current, other, memory_order_release);
}

static sg_message answer(uint64_t label, uint64_t ticket, struct progress progress)
{
    return (sg_message){.label = label, .length = 3, .words = {ticket, progress.next, (uint64_t)progress.value}};
}

/* A triangle with noise, 16 bits behind the point. */
static int64_t sample(uint64_t number)
{
    int64_t phase = (int64_t)(number % 2048) - 1024;
    int64_t triangle = (phase < 0 ? -phase : phase) - 512;
    uint64_t noise = (number * 0x9e3779b97f4a7c15u) >> 52;
    return triangle * 128 + (int64_t)noise;
}

static sg_message filter(const sg_request *request, void *context)
{
    (void)context;
    const sg_message *message = &request->message;
    uint64_t end = sg_word(message, 3);
    struct note note = {
        .caller = request->badge,
        .ticket = sg_word(message, 0),
        /* 32 bits, so that no sum overflows, whoever asks. */
        .progress = {.next = sg_word(message, 1), .value = (int32_t)sg_word(message, 2)},
    };
    while (note.progress.next < end) {
        write_note(note);
        uint64_t left = end - note.progress.next;
        for (uint64_t i = left < STEP ? left : STEP; i > 0; i--) {
            note.progress.value += (sample(note.progress.next) - note.progress.value) / 64;
            note.progress.next++;
        }
    }
    return answer(FILTER_DONE, note.ticket, note.progress);
}

/* What a client is told whose time has run out. */
static sg_message rolled_back(bool is_known, uint64_t caller, void *context)
{
    (void)context;
    struct note note = notes[atomic_load_explicit(&current, memory_order_acquire)];
    /* The request may have ended before anything was noted of it; an old ticket tells. */
    if (!is_known || note.caller != caller)
        note = (struct note){0};
    return answer(FILTER_PARTIAL, note.ticket, note.progress);
}

int main(void)
{
    static const sg_timeout_functions functions = {.rolled_back = rolled_back};
    sg_prepare_timeout_handler("filter", "handler", &functions);
    sg_serve("filter", filter, NULL);
}
