#include "print.h"

#include <stdarg.h>

struct sink {
    char *to;
    size_t size, length;
    bool is_output; /* it is written when it is full; else what doesn't fit is left out */
};

static char buffer[8192];
static struct sink output = {buffer, sizeof buffer, 0, true};

void print_flush(void)
{
    size_t written = 0;
    while (written < output.length) {
        long got = sys_write(1, buffer + written, output.length - written);
        if (got <= 0)
            sys_exit(1);
        written += (size_t)got;
    }
    output.length = 0;
}

static void put(struct sink *sink, char character)
{
    if (sink->is_output && sink->length == sink->size)
        print_flush();
    if (sink->length < sink->size)
        sink->to[sink->length++] = character;
}

static void put_many(struct sink *sink, char character, size_t count)
{
    while (count--)
        put(sink, character);
}

struct conversion {
    bool left, zeros, is_long;
    size_t width, precision;
};

static void put_text(struct sink *sink, const struct conversion *how, const char *text,
                     size_t length)
{
    size_t padding = how->width > length ? how->width - length : 0;
    if (!how->left)
        put_many(sink, how->zeros ? '0' : ' ', padding);
    for (size_t i = 0; i < length; i++)
        put(sink, text[i]);
    if (how->left)
        put_many(sink, ' ', padding);
}

static const char capitals[] = "0123456789ABCDEF";

static void put_number(struct sink *sink, const struct conversion *how, uint64_t value,
                       unsigned base, const char *letters, bool is_negative)
{
    char digits[24];
    size_t at = sizeof digits;
    do
        digits[--at] = letters[value % base];
    while (value /= base);
    if (is_negative)
        digits[--at] = '-';
    put_text(sink, how, digits + at, sizeof digits - at);
}

static const char *read_conversion(const char *format, struct conversion *how, va_list *given)
{
    *how = (struct conversion){.precision = SIZE_MAX};
    for (;; format++)
        if (*format == '-')
            how->left = true;
        else if (*format == '0')
            how->zeros = true;
        else
            break;
    for (bool after_point = false;; format++) {
        size_t *number = after_point ? &how->precision : &how->width;
        if (*format == '.') {
            after_point = true;
            how->precision = 0;
        } else if (*format == '*')
            *number = (size_t)va_arg(*given, int);
        else if (*format >= '0' && *format <= '9')
            *number = *number * 10 + (size_t)(*format - '0');
        else
            break;
    }
    for (; *format == 'l'; format++)
        how->is_long = true;
    return format;
}

static void put_converted(struct sink *sink, char kind, const struct conversion *how,
                          va_list *given)
{
    if (kind == 's') {
        const char *text = va_arg(*given, const char *);
        size_t length = text_length(text);
        put_text(sink, how, text, length < how->precision ? length : how->precision);
    } else if (kind == 'c') {
        char text = (char)va_arg(*given, int);
        put_text(sink, how, &text, 1);
    } else if (kind == 'd') {
        int value = va_arg(*given, int);
        put_number(sink, how, (uint64_t)(value < 0 ? -(int64_t)value : value), 10, capitals,
                   value < 0);
    } else if (kind == 'u' || kind == 'X' || kind == 'x') {
        uint64_t value =
            how->is_long ? va_arg(*given, unsigned long long) : va_arg(*given, unsigned);
        put_number(sink, how, value, kind == 'u' ? 10 : 16,
                   kind == 'x' ? "0123456789abcdef" : capitals, false);
    } else
        put(sink, kind);
}

static void put_format(struct sink *sink, const char *format, va_list *given)
{
    for (; *format; format++) {
        if (*format != '%') {
            put(sink, *format);
            continue;
        }
        struct conversion how;
        format = read_conversion(format + 1, &how, given);
        put_converted(sink, *format, &how, given);
    }
}

void print(const char *format, ...)
{
    va_list given;
    va_start(given, format);
    put_format(&output, format, &given);
    va_end(given);
}

size_t text_print(char *to, size_t size, const char *format, ...)
{
    struct sink sink = {to, size - 1, 0, false};
    va_list given;
    va_start(given, format);
    put_format(&sink, format, &given);
    va_end(given);
    to[sink.length] = 0;
    return sink.length;
}

void print_line(char character, unsigned count) { put_many(&output, character, count); }

void stop(int code)
{
    print_flush();
    sys_exit(code);
}

struct date {
    unsigned year, month, day, weekday; /* 0: January, the first, Sunday */
};

static unsigned days_of(unsigned year, unsigned month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month] + (month == 1 && leap);
}

static struct date date_of(uint64_t microseconds)
{
    unsigned days = (unsigned)(microseconds / 86400000000ull);
    struct date date = {1970, 0, 0, (days + 4) % 7};
    while (days >= days_of(date.year, date.month)) {
        days -= days_of(date.year, date.month);
        date.month = (date.month + 1) % 12;
        date.year += date.month == 0;
    }
    date.day = days;
    return date;
}

void text_moment(char *to, size_t size, uint64_t microseconds)
{
    static const char weekdays[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct date date = date_of(microseconds);
    unsigned second = (unsigned)(microseconds / 1000000 % 86400);
    text_print(to, size, "%.3s %.3s %2u %02u:%02u:%02u %u", weekdays + 3 * date.weekday,
               months + 3 * date.month, date.day + 1, second / 3600, second / 60 % 60, second % 60,
               date.year);
}

void text_moment_short(char *to, size_t size, uint64_t microseconds)
{
    struct date date = date_of(microseconds);
    unsigned second = (unsigned)(microseconds / 1000000 % 86400);
    text_print(to, size, "%u/%02u/%02u %02u:%02u:%02u.%03u", date.year, date.month + 1,
               date.day + 1, second / 3600, second / 60 % 60, second % 60,
               (unsigned)(microseconds / 1000 % 1000));
}
