/* Events: sets of cards and kinds that a caller waits for. The state's ring has what happened. */
#include "state.h"

#define MOST_SETS 64u
#define FOREVER 0xffffffffu
#define LONGEST_SLEEP 1000000000ull /* ns; the file may be replaced meanwhile */

struct event_set {
    uint32_t used;
    uint64_t seen; /* the newest event that this set has been told, or that is older than it */
    uint64_t types[MOST_CARDS];
};

static struct event_set sets[MOST_SETS];

static nvmlReturn_t check(nvmlEventSet_t set)
{
    NEED(state_ready(), NVML_ERROR_UNINITIALIZED);
    uintptr_t offset = (uintptr_t)set - (uintptr_t)sets;
    NEED_ARGUMENT(offset < sizeof sets && offset % sizeof *sets == 0 && set->used);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    NEED(state_ready(), NVML_ERROR_UNINITIALIZED);
    NEED_ARGUMENT(set);
    state_follow();
    for (uint i = 0; i < MOST_SETS; i++) {
        uint32_t unused = 0;
        if (!__atomic_compare_exchange_n(&sets[i].used, &unused, 1, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        for (uint card = 0; card < MOST_CARDS; card++)
            sets[i].types[card] = 0;
        sets[i].seen = __atomic_load_n(&state_header()->event_sequence, __ATOMIC_ACQUIRE);
        *set = &sets[i];
        return NVML_SUCCESS;
    }
    return NVML_ERROR_INSUFFICIENT_RESOURCES;
}

void events_forget(void)
{
    for (uint i = 0; i < MOST_SETS; i++)
        __atomic_store_n(&sets[i].used, 0, __ATOMIC_RELEASE);
}

API nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    TRY(check(set));
    __atomic_store_n(&set->used, 0, __ATOMIC_RELEASE);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, ullong *types)
{
    uint card, lost;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(types);
    TRY(LIVE_FIELD(card, lost, &lost));
    *types = EVENTS_OFFERED;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, ullong types, nvmlEventSet_t set)
{
    struct place place;
    uint lost;
    TRY(check(set));
    TRY(place_of(device, &place));
    NEED_ARGUMENT(!(types & ~(ullong)EVENT_ALL));
    NEED(!(types & ~(ullong)EVENTS_OFFERED), NVML_ERROR_NOT_SUPPORTED);
    TRY(LIVE_FIELD(place.card, lost, &lost));
    __atomic_or_fetch(&set->types[place.card], types, __ATOMIC_RELAXED);
    return NVML_SUCCESS;
}

/* Copies an event; false if newer ones have taken its place. */
static bool read_event(uint64_t sequence, struct event *event)
{
    const struct event *entry = &state_header()->events[(sequence - 1) % RING];
    *event = *(const volatile struct event *)entry;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return event->sequence == sequence &&
           __atomic_load_n(&entry->sequence, __ATOMIC_RELAXED) == sequence &&
           __atomic_load_n(&state_header()->event_sequence, __ATOMIC_RELAXED) < sequence + RING;
}

/* Takes the next event of a set that is there already. */
static bool take(nvmlEventSet_t set, struct event *event)
{
    uint64_t newest = __atomic_load_n(&state_header()->event_sequence, __ATOMIC_ACQUIRE);
    uint64_t seen = __atomic_load_n(&set->seen, __ATOMIC_RELAXED);
    while (seen != newest) {
        /* A new file may count anew; a slow reader misses what the ring has no place for. */
        uint64_t next = seen > newest || newest - seen > RING
                            ? (newest > RING ? newest - RING : 0) + 1
                            : seen + 1;
        bool wanted = read_event(next, event) && event->card < MOST_CARDS &&
                      set->types[event->card] & event->type;
        if (__atomic_compare_exchange_n(&set->seen, &seen, next, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            if (wanted)
                return true;
            seen = next;
        }
    }
    return false;
}

static nvmlReturn_t wait(nvmlEventSet_t set, uint milliseconds, struct event *event)
{
    TRY(check(set));
    uint64_t end =
        milliseconds == FOREVER ? UINT64_MAX : sys_monotonic() + milliseconds * 1000000ull;
    for (;;) {
        state_follow();
        const uint32_t *word = &state_header()->event_futex;
        uint32_t before = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if (take(set, event))
            return NVML_SUCCESS;
        uint64_t now = sys_monotonic();
        NEED(now < end, NVML_ERROR_TIMEOUT);
        sys_wait(word, before, end - now < LONGEST_SLEEP ? end - now : LONGEST_SLEEP, true);
        NEED(state_ready(), NVML_ERROR_UNINITIALIZED);
    }
}

API nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_v2_t *data,
                                     uint milliseconds)
{
    struct event event;
    NEED_ARGUMENT(data);
    TRY(wait(set, milliseconds, &event));
    *data = (nvmlEventData_v2_t){{device_handle(event.card), event.type, event.data},
                                 event.gpu_instance,
                                 event.compute_instance};
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_v1_t *data, uint milliseconds)
{
    struct event event;
    NEED_ARGUMENT(data);
    TRY(wait(set, milliseconds, &event));
    *data = (nvmlEventData_v1_t){device_handle(event.card), event.type, event.data};
    return NVML_SUCCESS;
}
