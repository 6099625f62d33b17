/* What a C library would do for us: system calls, bytes, texts, the environment. */
#ifndef HAMI_MOCK_SYSTEM_H
#define HAMI_MOCK_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define PATH_SIZE 512

/* Each returns what the kernel does: a negative errno where it fails. */
long sys_open(const char *path, int flags);
long sys_close(int fd);
long sys_read(int fd, void *to, size_t size);
long sys_write(int fd, const void *from, size_t size);
_Noreturn void sys_exit(int code);
long sys_size(int fd);
long sys_map(void *where, size_t size, int protection, int flags, int fd);
long sys_unmap(void *where, size_t size);
long sys_entries(int fd, void *to, size_t size);
long sys_wait(const uint32_t *word, uint32_t value, uint64_t nanoseconds, bool shared);
long sys_wake(const uint32_t *word);
long sys_pid(void);
void sys_yield(void);
long sys_run_on(const void *cpus, size_t size);
void sys_sleep(uint64_t nanoseconds);
uint64_t sys_monotonic(void);
uint64_t sys_realtime(void);
long sys_connect(const char *path);
long sys_send(int fd, const void *from, size_t size);
/* Receives all of it; ERROR_AGAIN: it didn't come in time. */
long sys_receive(int fd, void *to, size_t size);
void sys_hostname(char *to, size_t size);

enum { OPEN_READ = 02000000, OPEN_PATH = 012000000 };
enum { PROTECT_NONE = 0, PROTECT_READ = 1 };
enum { MAP_SHARED_FILE = 0x01, MAP_RESERVED = 0x4022, MAP_AT = 0x10 };
enum { ERROR_INTERRUPTED = -4, ERROR_AGAIN = -11 };

/* A lock that survives fork(): a holder that is no thread of this process holds nothing. */
struct lock {
    uint32_t holder;
};
void lock_take(struct lock *lock);
void lock_give(struct lock *lock);

size_t text_length(const char *text);
bool text_equal(const char *one, const char *other);
bool text_equal_part(const char *text, const char *part, size_t length);
/* Writes at most size bytes with the closing zero; returns the length of what was written. */
size_t text_copy(char *to, size_t size, const char *from);
/* Writes what the format says; it knows %s, %u, %x, %X and widths with leading zeros. */
size_t text_format(char *to, size_t size, const char *format, ...);
/* Reads digits; returns where they end, or NULL if there are none or too many. */
const char *text_number(const char *text, unsigned base, uint64_t *value);

const char *environment(const char *name);

#endif
