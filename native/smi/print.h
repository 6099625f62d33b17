/* Output: what printf would do. */
#ifndef HAMI_MOCK_SMI_PRINT_H
#define HAMI_MOCK_SMI_PRINT_H

#include "../system.h"

#define LIKE_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* Both know %s, %c, %u, %llu, %d, %x, %X, %llX and %%, with -, 0, a width or *, and a precision of
 * texts.
 */
void print(const char *format, ...) LIKE_PRINTF(1, 2);
size_t text_print(char *to, size_t size, const char *format, ...) LIKE_PRINTF(3, 4);
void print_flush(void);
/* Prints one character many times. */
void print_line(char character, unsigned count);

/* Ends the program, after what it has printed. */
_Noreturn void stop(int code);

/* A moment in UTC, µs since 1970, as the tool writes it: Wed Nov 18 09:03:13 2026 … */
void text_moment(char *to, size_t size, uint64_t microseconds);
/* … and in lists: 2026/11/18 09:03:13.456 */
void text_moment_short(char *to, size_t size, uint64_t microseconds);

#endif
