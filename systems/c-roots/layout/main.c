/*
 * A root task that checks its own image: that every segment is where the program headers say,
 * whatever their order, gaps and alignments; that all else is zero; that it started in the state
 * that the ABI promises; and that thread-local storage works, which it sets up itself.
 *
 * The same program is linked in several ways (see the Makefile).
 */
#include "root.h"

#include "memory.h"
#include "own.h"
#include "parts.h"

/* The program's own variables, which change while it runs. */
extern uint8_t __bss_start[] __attribute__((visibility("hidden")));
extern uint8_t _end[] __attribute__((visibility("hidden")));

/* Prints the program headers, as `readelf -l` does. */
static void print_headers(void)
{
    for (unsigned i = 0; i < __ehdr_start.program_header_count; i++) {
        const struct program_header *header = program_header(i);
        say("  header %d: type 0x%lx, address 0x%lx, 0x%lx bytes in the file, 0x%lx in memory, "
            "alignment 0x%lx\n",
            (int)i, (word_t)header->type, header->vaddr, header->file_bytes, header->memory_bytes,
            header->align);
    }
}

static void pages_behind_the_image(void)
{
    struct range image = image_range();
    EXPECT_EQ(image.start % PAGE_BYTES, 0);
    struct slot_region frames = boot_info->user_image_frames;
    EXPECT_EQ(frames.end - frames.start, (image.end - image.start) / PAGE_BYTES);
    EXPECT_EQ(boot_info->ipc_buffer, image.end);
    EXPECT_EQ(boot_info, image.end + PAGE_BYTES);
    EXPECT_EQ(entry_dirty_ipc_words, 0);
    EXPECT(all_zero(boot_info + 1, PAGE_BYTES - sizeof(*boot_info)));
}

static void entry_point(void)
{
    struct range image = image_range();
    EXPECT(__ehdr_start.entry >= image.start && __ehdr_start.entry < image.end);
    EXPECT_EQ(memcmp(__ehdr_start.ident, "\x7f" "ELF", 4), 0);
}

static bool has_pattern(const uint32_t *part, uint32_t first, unsigned words)
{
    for (unsigned i = 0; i < words; i++) {
        uint32_t word;
        /* A part may begin at any address. */
        memcpy(&word, (const uint8_t *)part + i * sizeof(word), sizeof(word));
        if (word != first + i * PATTERN_STEP)
            return false;
    }
    return true;
}

static void contents_of_segments(void)
{
    EXPECT(has_pattern(part_highest, HIGHEST_FIRST, HIGHEST_WORDS));
    EXPECT(has_pattern(part_unaligned, UNALIGNED_FIRST, UNALIGNED_WORDS));
    EXPECT(has_pattern(part_small, SMALL_FIRST, SMALL_WORDS));
    EXPECT(has_pattern(part_aligned, ALIGNED_FIRST, ALIGNED_WORDS));
    EXPECT(has_pattern(part_tail, TAIL_FIRST, TAIL_WORDS));
}

/* Addresses in data: a position-independent program has to relocate them. */
static void addresses_in_data(void)
{
    static const uint32_t *const volatile parts[] = {part_highest, part_tail, part_small};
    EXPECT(has_pattern(parts[0], HIGHEST_FIRST, HIGHEST_WORDS));
    EXPECT(has_pattern(parts[1], TAIL_FIRST, TAIL_WORDS));
    EXPECT(has_pattern(parts[2], SMALL_FIRST, SMALL_WORDS));
}

static void zeroes_behind_segments(void)
{
    EXPECT(all_zero(part_tail_zeroes, TAIL_ZERO_BYTES));
    EXPECT(all_zero(part_alone, ALONE_BYTES));
}

/*
 * The end of what the file or the running program has put from `at` on, or `at` if there is
 * nothing; `*next` becomes the start of what comes behind it.
 */
static word_t occupied_from(word_t at, word_t *next)
{
    struct range ranges[64];
    unsigned count = 0;
    for (unsigned i = 0; i < __ehdr_start.program_header_count; i++) {
        const struct program_header *header = program_header(i);
        if (header->type == PT_LOAD)
            ranges[count++] = (struct range){header->vaddr, header->vaddr + header->file_bytes};
    }
    ranges[count++] = (struct range){(word_t)__bss_start, (word_t)_end};

    for (unsigned i = 0; i < count; i++) {
        if (ranges[i].start <= at && at < ranges[i].end)
            return ranges[i].end;
        if (ranges[i].start > at && ranges[i].start < *next)
            *next = ranges[i].start;
    }
    return at;
}

/* Whatever is not in the file is zero: gaps between segments, and the ends of their pages. */
static void zeroes_in_gaps(void)
{
    struct range image = image_range();
    word_t gaps = 0;
    word_t at = image.start;
    while (at < image.end) {
        word_t next = image.end;
        word_t end = occupied_from(at, &next);
        if (end != at) {
            at = end;
            continue;
        }
        gaps += next - at;
        EXPECT(all_zero((const void *)at, next - at));
        at = next;
    }
    say("  %lu KiB of the image's %lu KiB are neither in the file nor variables\n", gaps / 1024,
        (image.end - image.start) / 1024);
}

/* Every page of the image has a frame, those of the gaps too, which can be used (06, section 3). */
static void frames_of_all_pages(void)
{
    struct range image = image_range();
    for (word_t vaddr = image.start; vaddr < image.end; vaddr += PAGE_BYTES) {
        cptr_t frame = image_frame((const void *)vaddr);
        EXPECT_DONE(page_map(frame, INIT_VSPACE, vaddr, RIGHT_READ | RIGHT_WRITE));
        struct result moved =
            page_map(frame, INIT_VSPACE, image.start - PAGE_BYTES, RIGHT_READ | RIGHT_WRITE);
        EXPECT_EQ(moved.error, INVALID_ARGUMENT);
        EXPECT_EQ(moved.mr[0], 0);
    }
}

/* The permissions of segments are ignored: text can be written, data executed (06, section 3). */
static void permissions_are_ignored(void)
{
    static uint8_t code[ANSWER_42_BYTES] __attribute__((aligned(8)));
    memcpy(code, answer_42, sizeof(code));
    make_executable(code, sizeof(code));
    int (*function)(void) = (int (*)(void))(uintptr_t)code;
    EXPECT_EQ(function(), 42);

    volatile uint8_t *text = (volatile uint8_t *)(uintptr_t)pages_behind_the_image;
    uint8_t old = *text;
    *text = (uint8_t)~old;
    EXPECT_EQ(*text, (uint8_t)~old);
    *text = old;
}

/* An allocator's reserve: a page of the image gives way to another frame, and comes back. */
static void page_replaced(void)
{
    static uint8_t page[PAGE_BYTES] __attribute__((aligned(PAGE_BYTES)));
    volatile uint8_t *byte = page;
    *byte = 1;
    cptr_t old = image_frame(page);
    cptr_t new = object_new(OBJECT_PAGE, 0);
    EXPECT_DONE(page_unmap(old));
    EXPECT_DONE(page_map(new, INIT_VSPACE, (word_t)page, RIGHT_READ | RIGHT_WRITE));
    EXPECT_EQ(*byte, 0);
    *byte = 2;
    EXPECT_DONE(page_unmap(new));
    EXPECT_DONE(page_map(old, INIT_VSPACE, (word_t)page, RIGHT_READ | RIGHT_WRITE));
    EXPECT_EQ(*byte, 1);
}

#define TLS_ALIGNMENT 256
#define TLS_ZEROES 300

static __thread uint32_t tls_word = 0x11223344;
static __thread uint8_t tls_text[] = "thread-local";
static __thread __attribute__((aligned(TLS_ALIGNMENT))) uint64_t tls_aligned = 77;
static __thread uint8_t tls_zeroes[TLS_ZEROES];
static __thread __attribute__((aligned(64))) uint32_t tls_zero_aligned;

/* Hides where a variable is, so that its contents are really read. */
static const volatile uint8_t *hidden(const volatile void *variable)
{
    __asm__("" : "+r"(variable));
    return variable;
}

/* Whether this thread's variables have their first values; changes them, by `mark`. */
static bool tls_is_fresh(uint32_t mark)
{
    bool fresh = *(const volatile uint32_t *)hidden(&tls_word) == 0x11223344 &&
                 memcmp((const void *)hidden(tls_text), "thread-local", 13) == 0 &&
                 *(const volatile uint64_t *)hidden(&tls_aligned) == 77 &&
                 all_zero((const void *)hidden(tls_zeroes), TLS_ZEROES) &&
                 *(const volatile uint32_t *)hidden(&tls_zero_aligned) == 0 &&
                 (word_t)hidden(&tls_aligned) % TLS_ALIGNMENT == 0 &&
                 (word_t)hidden(&tls_zero_aligned) % 64 == 0;
    tls_word = mark;
    memset(tls_zeroes, (int)mark, TLS_ZEROES);
    return fresh;
}

static bool tls_is_marked(uint32_t mark)
{
    return *(const volatile uint32_t *)hidden(&tls_word) == mark &&
           *hidden(tls_zeroes) == (uint8_t)mark;
}

static void tls_of_the_first_thread(void)
{
    const struct program_header *header = program_header_of(PT_TLS);
    EXPECT(header != NULL);
    EXPECT(header->file_bytes > 0 && header->memory_bytes > header->file_bytes);
    EXPECT(tls_is_fresh(1));
    EXPECT(tls_is_marked(1));
}

/* What a thread tells the first one: it waits on `done`. */
struct tls_thread {
    uint32_t mark;
    cptr_t done;
    word_t own_base; /* set in the thread itself, unless 0 */
    bool fresh;
    word_t address;
};

/* A function of its own, as is what uses another block: compilers keep the thread pointer within one. */
static __attribute__((noinline)) void set_ipc_buffer(struct ipc_buffer *buffer)
{
    ipc_buffer = buffer;
}

static __attribute__((noinline)) void look_at_tls(struct tls_thread *self)
{
    self->fresh = tls_is_fresh(self->mark) && tls_is_marked(self->mark);
    self->address = (word_t)&tls_word;
}

static void tls_thread(void *argument)
{
    struct tls_thread *self = argument;
    if (self->own_base != 0) {
        struct ipc_buffer *buffer = ipc_buffer;
        set_thread_pointer(self->own_base);
        set_ipc_buffer(buffer);
    }
    look_at_tls(self);
    sys_signal(self->done);
}

static void tls_of_each_thread(void)
{
    static uint8_t area[TLS_BYTES] __attribute__((aligned(TLS_ALIGN)));
    cptr_t done = object_new(OBJECT_NOTIFICATION, 0);
    struct tls_thread threads[] = {
        {.mark = 2, .done = done},
        {.mark = 3, .done = done, .own_base = tls_make(area)},
    };
    for (unsigned i = 0; i < 2; i++) {
        struct thread_params params = {.priority = 254, ROUND_ROBIN};
        struct thread *thread = thread_spawn(params, tls_thread, &threads[i]);
        sys_wait(done);
        EXPECT(threads[i].fresh);
        thread_end(thread);
    }
    EXPECT(threads[0].address != threads[1].address);
    EXPECT(threads[0].address != (word_t)&tls_word);
    EXPECT(tls_is_marked(1));
}

/* The base can be set by an invocation, too. */
static void tls_base_set_from_outside(void)
{
    static uint8_t area[TLS_BYTES] __attribute__((aligned(TLS_ALIGN)));
    word_t base = tls_make(area);
    cptr_t done = object_new(OBJECT_NOTIFICATION, 0);
    struct tls_thread state = {.mark = 4, .done = done};
    struct thread *thread =
        thread_new((struct thread_params){.priority = 254, ROUND_ROBIN}, tls_thread, &state);
    word_t registers[USER_REGISTERS];
    thread_registers(thread, registers);
    EXPECT_DONE(tcb_write_registers(thread->tcb, false, registers));
    EXPECT_DONE(tcb_set_tls_base(thread->tcb, base));
    EXPECT_DONE(tcb_resume(thread->tcb));
    sys_wait(done);
    EXPECT(state.fresh);
    EXPECT(tls_holds(base, state.address));
    EXPECT_DONE(tcb_read_registers(thread->tcb, false, registers));
    EXPECT_EQ(registers[REG_TLS], base);
    EXPECT_EQ(registers[REG_OTHER_TLS], 0);
    thread_end(thread);

    odd_thread_pointers();
    EXPECT(tls_is_marked(1));
}

void root_main(void)
{
    struct range image = image_range();
    say("C root task: layout, image 0x%lx to 0x%lx, entry point 0x%lx\n", image.start, image.end,
        __ehdr_start.entry);
    print_headers();
    test("registers_at_start", registers_at_start);
    test("pages_behind_the_image", pages_behind_the_image);
    test("entry_point", entry_point);
    test("contents_of_segments", contents_of_segments);
    test("addresses_in_data", addresses_in_data);
    test("zeroes_behind_segments", zeroes_behind_segments);
    test("zeroes_in_gaps", zeroes_in_gaps);
    test("frames_of_all_pages", frames_of_all_pages);
    test("permissions_are_ignored", permissions_are_ignored);
    test("page_replaced", page_replaced);
    test("tls_of_the_first_thread", tls_of_the_first_thread);
    test("tls_of_each_thread", tls_of_each_thread);
    test("tls_base_set_from_outside", tls_base_set_from_outside);
}
