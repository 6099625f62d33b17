/*
 * Which cards a process may see, as in a container of NVIDIA's: those of NVIDIA_VISIBLE_DEVICES,
 * and where there are device nodes, those that have one. And how much of their memory, as HAMi's
 * library shows it.
 */
#include "state.h"

#define MOST_MIG_NAMES 64u

struct choice {
    uint count;
    uint order[MOST_CARDS];
    uint mig_name_count;
    char mig_names[MOST_MIG_NAMES][80];
    uint64_t limits[MOST_CARDS];
    char owner[sizeof((struct process *)0)->owner];
};

/* The next choice is made beside the one that others look at. */
static struct choice choices[2];
static struct choice *chosen = &choices[0];

static const struct choice *now(void) { return __atomic_load_n(&chosen, __ATOMIC_ACQUIRE); }

uint visible_count(void) { return now()->count; }
uint visible_card(uint index) { return now()->order[index]; }
const char *visible_owner(void) { return now()->owner; }
uint64_t visible_memory_limit(uint card) { return now()->limits[card]; }

static uint index_in(const struct choice *choice, uint card)
{
    for (uint i = 0; i < choice->count; i++)
        if (choice->order[i] == card)
            return i;
    return NO_INSTANCE;
}

uint visible_index(uint card) { return index_in(now(), card); }

bool visible_mig(const char *uuid)
{
    const struct choice *choice = now();
    for (uint i = 0; i < choice->mig_name_count; i++)
        if (text_equal(choice->mig_names[i], uuid))
            return true;
    return choice->mig_name_count == 0;
}

static void show(struct choice *choice, uint card)
{
    if (index_in(choice, card) == NO_INSTANCE)
        choice->order[choice->count++] = card;
}

static void show_mig(struct choice *choice, const char *name, size_t length)
{
    for (uint card = 0; card < state_header()->card_count; card++) {
        struct compute_instance found[MOST_COMPUTE_INSTANCES];
        if (live_peek(card, offsetof(struct live, compute_instances), found, sizeof found) !=
            NVML_SUCCESS)
            continue;
        for (uint i = 0; i < MOST_COMPUTE_INSTANCES; i++) {
            bool named = found[i].used && text_equal_part(found[i].uuid, name, length);
            if (!named || choice->mig_name_count == MOST_MIG_NAMES)
                continue;
            show(choice, card);
            text_copy(choice->mig_names[choice->mig_name_count++], sizeof *choice->mig_names,
                      found[i].uuid);
        }
    }
}

static void show_named(struct choice *choice, const char *name, size_t length)
{
    uint64_t index;
    const char *end = text_number(name, 10, &index);
    if (end == name + length && index < state_header()->card_count) {
        show(choice, (uint)index);
        return;
    }
    for (uint card = 0; card < state_header()->card_count; card++)
        if (text_equal_part(state_identity(card)->uuid, name, length))
            show(choice, card);
    if (length > 4 && name[0] == 'M' && name[1] == 'I' && name[2] == 'G')
        show_mig(choice, name, length);
}

static bool is_word(const char *text, size_t length, const char *word)
{
    return length == text_length(word) && text_equal_part(word, text, length);
}

static void show_all(struct choice *choice)
{
    for (uint card = 0; card < state_header()->card_count; card++)
        show(choice, card);
}

/* Returns whether only device nodes say what there is: CDI's specifications name no card, but
 * "void", so that NVIDIA's runtime leaves the container alone. */
static bool show_listed(struct choice *choice, const char *list)
{
    bool by_nodes = false;
    while (*list) {
        size_t length = 0;
        while (list[length] && list[length] != ',')
            length++;
        by_nodes |= is_word(list, length, "void");
        if (is_word(list, length, "all") || is_word(list, length, "void"))
            show_all(choice);
        else if (!is_word(list, length, "none"))
            show_named(choice, list, length);
        list += length + (list[length] == ',');
    }
    return by_nodes;
}

/* Sets the bits of the device nodes' numbers; returns whether there is any. */
static bool read_nodes(uint64_t *nodes, size_t words)
{
    struct entry {
        uint64_t inode, offset;
        uint16_t size;
        uint8_t type;
        char name[];
    };
    static const char prefix[] = "nvidia";
    char text[4096] __attribute__((aligned(8)));
    bool any = false;
    long fd = sys_open("/dev", OPEN_READ), got;
    while (fd >= 0 && (got = sys_entries((int)fd, text, sizeof text)) > 0)
        for (long at = 0; at < got; at += ((struct entry *)(text + at))->size) {
            const char *name = ((struct entry *)(text + at))->name;
            size_t same = 0;
            while (prefix[same] && name[same] == prefix[same])
                same++;
            uint64_t number;
            const char *end = prefix[same] ? NULL : text_number(name + same, 10, &number);
            if (end && !*end && number < words * 64) {
                nodes[number / 64] |= 1ull << number % 64;
                any = true;
            }
        }
    if (fd >= 0)
        sys_close((int)fd);
    return any;
}

static void hide_without_node(struct choice *choice, bool even_if_there_is_none)
{
    uint64_t nodes[8] = {0};
    if (!read_nodes(nodes, COUNT_OF(nodes)) && !even_if_there_is_none)
        return;
    uint kept = 0;
    for (uint i = 0; i < choice->count; i++) {
        uint minor = state_identity(choice->order[i])->minor;
        if (minor < COUNT_OF(nodes) * 64 && nodes[minor / 64] >> minor % 64 & 1)
            choice->order[kept++] = choice->order[i];
    }
    choice->count = kept;
}

/* HAMi writes 3000m or 2g; without a letter it is bytes. 0, or more than there can be: no limit. */
static uint64_t bytes_of(const char *text)
{
    uint64_t value;
    const char *end = text ? text_number(text, 10, &value) : NULL;
    if (!end)
        return 0;
    uint shift = 0;
    switch (*end | 0x20) {
    case 'g': shift = 30; break;
    case 'm': shift = 20; break;
    case 'k': shift = 10; break;
    }
    return value > UINT64_MAX >> shift ? 0 : value << shift;
}

/* HAMi gives each container a file of its own, named after it: …/UID_0.cache. */
static void name_owner(char *to, size_t size, const char *file)
{
    size_t begin = 0, length = 0;
    for (size_t i = 0; file && file[i]; i++)
        if (file[i] == '/')
            begin = i + 1;
    while (file && file[begin + length] && file[begin + length] != '.' && length + 1 < size) {
        to[length] = file[begin + length];
        length++;
    }
    to[length] = 0;
}

void visible_choose(void)
{
    struct choice *choice = &choices[chosen == choices];
    const char *list = environment("NVIDIA_VISIBLE_DEVICES");
    bool by_nodes = false;
    choice->count = choice->mig_name_count = 0;
    if (list)
        by_nodes = show_listed(choice, list);
    else
        show_all(choice);
    hide_without_node(choice, by_nodes);
    name_owner(choice->owner, sizeof choice->owner, environment("CUDA_DEVICE_MEMORY_SHARED_CACHE"));
    uint64_t common = bytes_of(environment("CUDA_DEVICE_MEMORY_LIMIT"));
    for (uint i = 0; i < choice->count; i++) {
        char name[48];
        text_format(name, sizeof name, "CUDA_DEVICE_MEMORY_LIMIT_%u", i);
        uint64_t own = bytes_of(environment(name));
        choice->limits[choice->order[i]] = own ? own : common;
    }
    __atomic_store_n(&chosen, choice, __ATOMIC_RELEASE);
}
