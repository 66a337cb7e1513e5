/*
 * Formatted text, to the console or into memory.
 */
#include <stdarg.h>

#include "root.h"

/* Where formatted text goes: into memory, or to the console if there is none. */
struct sink {
    char *text;
    size_t room;
};

static void emit(struct sink *sink, char c)
{
    if (sink->text == NULL) {
        if (c == '\n')
            console_put('\r');
        console_put(c);
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
