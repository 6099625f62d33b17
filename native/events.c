/* Events: sets of cards and kinds that a caller waits for. The state's ring has what happened. */
#include "state.h"

#define MOST_SETS 64u
#define FOREVER 0xffffffffu
#define KEPT (RING - 1) /* of the ring's events: the place of the oldest may be written anew */
#define LONGEST_SLEEP 1000000000ull /* ns; the file may be replaced meanwhile */

struct event_set {
    uint32_t used;
    uint64_t seen; /* the newest event that this set has been told, or that is older than it */
    uint64_t types[MOST_CARDS]; /* by the numbers of the cards' handles */
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
        for (uint number = 0; number < MOST_CARDS; number++)
            sets[i].types[number] = 0;
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
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(types);
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
    __atomic_or_fetch(&set->types[handle_number(place.card)], types, __ATOMIC_RELAXED);
    return NVML_SUCCESS;
}

/* Copies an event; false if newer ones have taken its place, or one may be taking it now. */
static bool read_event(uint64_t sequence, struct event *event)
{
    *event = *(const volatile struct event *)&state_header()->events[(sequence - 1) % RING];
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return event->sequence == sequence &&
           __atomic_load_n(&state_header()->event_sequence, __ATOMIC_RELAXED) < sequence + KEPT;
}

struct told {
    struct event event;
    nvmlDevice_t device;
    char uuid[sizeof((struct identity *)0)->uuid];
};

/* Reads an event and whose it is, if the set has asked for it. */
static bool is_wanted(nvmlEventSet_t set, uint64_t sequence, struct told *told)
{
    const struct event *event = &told->event;
    if (!read_event(sequence, &told->event) || event->card >= state_header()->card_count ||
        !(set->types[handle_number(event->card)] & event->type))
        return false;
    told->device = device_handle(event->card);
    text_copy(told->uuid, sizeof told->uuid, state_identity(event->card)->uuid);
    return true;
}

/* Takes the next event of a set that is there already. */
static bool take(nvmlEventSet_t set, struct told *told)
{
    for (;;) {
        uint32_t file = state_file();
        uint64_t newest = __atomic_load_n(&state_header()->event_sequence, __ATOMIC_ACQUIRE);
        uint64_t oldest = newest > KEPT ? newest - KEPT : 0;
        uint64_t seen = __atomic_load_n(&set->seen, __ATOMIC_RELAXED);
        if (seen == newest)
            return false;
        /* A new file may count anew; a slow reader misses what the ring has no place for. */
        uint64_t before = seen > newest || seen < oldest ? oldest : seen;
        uint64_t next = before < newest ? before + 1 : newest;
        bool wanted = before < newest && is_wanted(set, next, told);
        /* The numbers of cards are of one file, or it is read again. */
        if (state_is_still(file) &&
            __atomic_compare_exchange_n(&set->seen, &seen, next, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED) &&
            wanted)
            return true;
    }
}

static nvmlReturn_t wait(nvmlEventSet_t set, uint milliseconds, struct told *told)
{
    TRY(check(set));
    uint64_t end =
        milliseconds == FOREVER ? UINT64_MAX : sys_monotonic() + milliseconds * 1000000ull;
    for (;;) {
        state_follow();
        const uint32_t *word = &state_header()->event_futex;
        uint32_t before = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if (take(set, told))
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
    struct told told;
    NEED_ARGUMENT(data);
    TRY(wait(set, milliseconds, &told));
    *data = (nvmlEventData_v2_t){{told.device, told.event.type, told.event.data},
                                 told.event.gpu_instance,
                                 told.event.compute_instance};
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_v1_t *data, uint milliseconds)
{
    struct told told;
    NEED_ARGUMENT(data);
    TRY(wait(set, milliseconds, &told));
    *data = (nvmlEventData_v1_t){told.device, told.event.type, told.event.data};
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlEventSetWait_v3(nvmlEventSet_t set, nvmlEventSetWait_v3_t *params)
{
    struct told told;
    NEED_ARGUMENT(params);
    TRY(wait(set, params->timeoutMs, &told));
    *params = (nvmlEventSetWait_v3_t){.timeoutMs = params->timeoutMs,
                                      .eventType = told.event.type,
                                      .eventData = told.event.data,
                                      .timestampUsec = told.event.timestamp,
                                      .gpuInstanceId = told.event.gpu_instance,
                                      .computeInstanceId = told.event.compute_instance};
    text_copy(params->uuid, sizeof params->uuid, told.uuid);
    return NVML_SUCCESS;
}
