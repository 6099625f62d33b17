#include "state.h"

/* As large as a file can be. Its place in memory stays the same when another file takes its place.
 */
#define REGION_SIZE \
    ((sizeof(struct header) + MOST_CARDS * sizeof(struct card) + 0xffff) & ~(size_t)0xffff)

static char *region;
static char folder[PATH_SIZE];
static uint32_t epoch; /* odd while the file is replaced and its cards are chosen */
static struct lock open_lock;
static uint64_t given_up[MOST_CARDS]; /* sequences whose writer is gone */

const char *state_folder(void) { return folder; }
const struct header *state_header(void) { return (const struct header *)region; }

static const struct card *card_at(uint card)
{
    return (const struct card *)(region + sizeof(struct header)) + card;
}

const struct identity *state_identity(uint card) { return &card_at(card)->identity; }

/* Finds the folder of this library in the list of what is mapped; returns the length, or 0. */
static size_t own_folder(char *to, size_t size)
{
    char text[4096 + PATH_SIZE];
    size_t filled = 0;
    uint64_t own = (uint64_t)(uintptr_t)&own_folder;
    long fd = sys_open("/proc/self/maps", OPEN_READ), got;
    if (fd < 0)
        return 0;
    size_t length = 0;
    while (!length && (got = sys_read((int)fd, text + filled, sizeof text - filled)) > 0) {
        filled += (size_t)got;
        size_t line = 0;
        for (size_t i = 0; i < filled; i++) {
            if (text[i] != '\n')
                continue;
            text[i] = 0;
            uint64_t from, until;
            const char *dash = text_number(text + line, 16, &from);
            if (dash && text_number(dash + 1, 16, &until) && from <= own && own < until) {
                const char *path = dash;
                while (*path && *path != '/')
                    path++;
                size_t end = text_copy(to, size, path);
                while (end && to[end - 1] != '/')
                    end--;
                if (end)
                    to[length = end - 1] = 0;
                break;
            }
            line = i + 1;
        }
        filled -= line;
        for (size_t i = 0; i < filled; i++)
            text[i] = text[line + i];
    }
    sys_close((int)fd);
    return length;
}

static long open_in(const char *directory)
{
    char path[PATH_SIZE + sizeof "/" STATE_FILE];
    text_copy(folder, sizeof folder, directory);
    text_format(path, sizeof path, "%s/%s", folder, STATE_FILE);
    return sys_open(path, OPEN_READ);
}

static long open_file(void)
{
    const char *named = environment(STATE_VARIABLE);
    if (named && *named)
        return open_in(named);
    char beside[PATH_SIZE];
    size_t length = own_folder(beside, sizeof beside);
    if (length) {
        text_copy(beside + length, sizeof beside - length, "/" STATE_BESIDE_LIBRARY);
        long fd = open_in(beside);
        if (fd >= 0)
            return fd;
    }
    return open_in(STATE_IN_PODS);
}

static nvmlReturn_t check(int fd)
{
    struct {
        uint64_t magic;
        uint32_t version, header_size, card_size, card_count;
        uint64_t file_size;
    } head;
    _Static_assert(sizeof head == offsetof(struct header, generation),
                   "the head is what stands first");
    NEED(sys_read(fd, &head, sizeof head) == sizeof head && head.magic == MAGIC,
         NVML_ERROR_DRIVER_NOT_LOADED);
    NEED(head.version == VERSION && head.header_size == sizeof(struct header) &&
             head.card_size == sizeof(struct card),
         NVML_ERROR_LIB_RM_VERSION_MISMATCH);
    size_t needed = sizeof(struct header) + head.card_count * sizeof(struct card);
    NEED(head.card_count <= MOST_CARDS && head.file_size == needed && sys_size(fd) >= (long)needed,
         NVML_ERROR_DRIVER_NOT_LOADED);
    return NVML_SUCCESS;
}

static bool failed(long result) { return result < 0 && result > -4096; }

static nvmlReturn_t map(int fd)
{
    if (!region) {
        long made = sys_map(NULL, REGION_SIZE, PROTECT_NONE, MAP_RESERVED, -1);
        NEED(!failed(made), NVML_ERROR_MEMORY);
        region = (char *)made;
    }
    size_t size = ((size_t)sys_size(fd) + 0xfff) & ~(size_t)0xfff;
    NEED(size <= REGION_SIZE, NVML_ERROR_DRIVER_NOT_LOADED);
    bool bad = failed(sys_map(region, size, PROTECT_READ, MAP_SHARED_FILE | MAP_AT, fd));
    return bad ? NVML_ERROR_MEMORY : NVML_SUCCESS;
}

static nvmlReturn_t open_locked(void)
{
    long fd = open_file();
    NEED(fd >= 0, NVML_ERROR_DRIVER_NOT_LOADED);
    nvmlReturn_t result = check((int)fd);
    if (result == NVML_SUCCESS) {
        __atomic_or_fetch(&epoch, 1, __ATOMIC_SEQ_CST);
        result = map((int)fd);
        if (result == NVML_SUCCESS) {
            handles_follow();
            visible_choose();
        }
    }
    sys_close((int)fd);
    return result;
}

/* Others look again only if there was a file to look at. */
static nvmlReturn_t open_for_all(void)
{
    nvmlReturn_t result = open_locked();
    if (epoch % 2)
        __atomic_add_fetch(&epoch, 1, __ATOMIC_SEQ_CST);
    return result;
}

nvmlReturn_t state_open(void)
{
    lock_take(&open_lock);
    nvmlReturn_t result = open_for_all();
    lock_give(&open_lock);
    return result;
}

/* A child of fork() may have left the thread that opens the file behind: it does so itself. */
static bool is_settled(void)
{
    return !(__atomic_load_n(&epoch, __ATOMIC_ACQUIRE) & 1) &&
           !__atomic_load_n(&state_header()->moved, __ATOMIC_RELAXED);
}

void state_follow(void)
{
    if (is_settled())
        return;
    lock_take(&open_lock);
    /* A file that can't be read is no reason to lose the one that could. */
    if (!is_settled())
        open_for_all();
    lock_give(&open_lock);
}

void state_hold(void) { lock_take(&open_lock); }
void state_release(void) { lock_give(&open_lock); }

uint32_t state_file(void)
{
    for (;;) {
        bool is_open = state_ready();
        if (is_open)
            state_follow();
        uint32_t file = __atomic_load_n(&epoch, __ATOMIC_ACQUIRE);
        if (file % 2 == 0 || !is_open)
            return file;
    }
}

bool state_is_still(uint32_t file)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&epoch, __ATOMIC_RELAXED) == file;
}

/* Where nobody has shut it down, the program may be about to end while its threads still look. */
__attribute__((destructor)) static void leave(void)
{
    if (!region || state_ready())
        return;
    sys_unmap(region, REGION_SIZE);
    region = NULL;
}

static void copy(void *to, const void *from, size_t size)
{
    if (((uintptr_t)from | size) % 8 == 0 && (uintptr_t)to % 8 == 0)
        for (size_t i = 0; i < size / 8; i++)
            ((uint64_t *)to)[i] = __atomic_load_n((const uint64_t *)from + i, __ATOMIC_RELAXED);
    else
        for (size_t i = 0; i < size / 4; i++)
            ((uint32_t *)to)[i] = __atomic_load_n((const uint32_t *)from + i, __ATOMIC_RELAXED);
}

/* Waits for a writer who is at work, a tenth of a second at most: nobody writes that long. */
static bool may_wait(uint card, uint64_t sequence, uint tries)
{
    enum { SPINS = 200, YIELDS = 400, SLEEPS = 2400 };
    if (__atomic_load_n(&given_up[card], __ATOMIC_RELAXED) == sequence)
        return false;
    if (tries > YIELDS)
        sys_sleep(50000);
    else if (tries > SPINS)
        sys_yield();
    if (tries < SLEEPS)
        return true;
    __atomic_store_n(&given_up[card], sequence, __ATOMIC_RELAXED);
    return false;
}

nvmlReturn_t live_peek(uint card, size_t offset, void *to, size_t size)
{
    NEED(card < state_header()->card_count, NVML_ERROR_GPU_IS_LOST);
    const struct live *live = &card_at(card)->live;
    for (uint tries = 0;; tries++) {
        uint64_t sequence = __atomic_load_n(&live->sequence, __ATOMIC_ACQUIRE);
        if (sequence % 2 && may_wait(card, sequence, tries))
            continue;
        copy(to, (const char *)live + offset, size);
        uint32_t lost = __atomic_load_n(&live->lost, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(&live->sequence, __ATOMIC_RELAXED) == sequence)
            return lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
    }
}

nvmlReturn_t live_copy(uint card, size_t offset, void *to, size_t size)
{
    for (;; state_follow()) {
        uint32_t file = __atomic_load_n(&epoch, __ATOMIC_ACQUIRE);
        nvmlReturn_t result = live_peek(card, offset, to, size);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (file % 2 == 0 && __atomic_load_n(&epoch, __ATOMIC_RELAXED) == file)
            return result;
    }
}

nvmlReturn_t give_text(char *to, uint size, const char *text)
{
    NEED_ARGUMENT(to);
    NEED(size > text_length(text), NVML_ERROR_INSUFFICIENT_SIZE);
    text_copy(to, size, text);
    return NVML_SUCCESS;
}
