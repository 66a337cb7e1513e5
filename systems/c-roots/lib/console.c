/*
 * The first serial port, which firmware has set up, by capabilities to its I/O ports; and the
 * emulator's exit device. Both work on every kernel, unlike the debug kernel's console.
 */
#include <stdarg.h>

#include "root.h"

enum {
    COM1 = 0x3f8,
    COM1_LAST = 0x3ff,
    LINE_CONTROL = 3,
    LINE_STATUS = 5,
    TRANSMITTER_EMPTY = 0x20,
    EIGHT_BITS_NO_PARITY = 3,
    DEBUG_EXIT = 0xf4,
};

static cptr_t com1, debug_exit;

void console_open(void)
{
    com1 = slot_new();
    must(io_port_issue(COM1, COM1_LAST, com1), "the serial port");
    must(io_port_out8(com1, COM1 + LINE_CONTROL, EIGHT_BITS_NO_PARITY), "its line");
    debug_exit = slot_new();
    must(io_port_issue(DEBUG_EXIT, DEBUG_EXIT, debug_exit), "the exit device");
}

static void put(char c)
{
    while ((io_port_in8(com1, COM1 + LINE_STATUS).mr[0] & TRANSMITTER_EMPTY) == 0) {
    }
    io_port_out8(com1, COM1, (unsigned char)c);
}

/* Where formatted text goes: into memory, or to the console if there is none. */
struct sink {
    char *text;
    size_t room;
};

static void emit(struct sink *sink, char c)
{
    if (sink->text == NULL) {
        if (c == '\n')
            put('\r');
        put(c);
    } else if (sink->room > 1) {
        *sink->text++ = c;
        *sink->text = '\0';
        sink->room--;
    }
}

static void emit_number(struct sink *sink, word_t number, unsigned base)
{
    char digits[20];
    int count = 0;
    do {
        digits[count++] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number != 0);
    while (count > 0)
        emit(sink, digits[--count]);
}

/* Knows %s, %c, %d for int, and %lu and %lx for words. */
static void format_to(struct sink *sink, const char *format, va_list args)
{
    for (; *format != '\0'; format++) {
        if (*format != '%') {
            emit(sink, *format);
            continue;
        }
        format++;
        if (*format == 's') {
            for (const char *text = va_arg(args, const char *); *text != '\0'; text++)
                emit(sink, *text);
        } else if (*format == 'c') {
            emit(sink, (char)va_arg(args, int));
        } else if (*format == 'd') {
            emit_number(sink, (word_t)va_arg(args, int), 10);
        } else {
            format++;
            emit_number(sink, va_arg(args, word_t), *format == 'x' ? 16 : 10);
        }
    }
}

void say(const char *format, ...)
{
    struct sink console = {NULL, 0};
    va_list args;
    va_start(args, format);
    format_to(&console, format, args);
    va_end(args);
}

void say_into(char *text, size_t size, const char *format, ...)
{
    struct sink memory = {text, size};
    va_list args;
    va_start(args, format);
    format_to(&memory, format, args);
    va_end(args);
}

_Noreturn void leave(unsigned status)
{
    io_port_out8(debug_exit, DEBUG_EXIT, status);
    for (;;)
        tcb_suspend(INIT_TCB);
}
