/* Handles: addresses in arrays that nobody writes to. Where in its array says what one stands for.
 */
#include "state.h"
#include "mig.h"

#define INSTANCES (MOST_CARDS * GPU_INSTANCE_IDS)
#define DEVICES (INSTANCES * COMPUTE_INSTANCE_IDS)

/* Cards are numbered anew in each file, and a handle stays with its card. */
struct numbering {
    uint cards[MOST_CARDS];   /* of each handle, its card; NO_INSTANCE: it is gone */
    uint handles[MOST_CARDS]; /* of each card, its handle */
};
static struct numbering now;
/* Written while no other file can come; empty: nobody has it. */
static char owners[MOST_CARDS][sizeof((struct identity *)0)->uuid];

static char whole[MOST_CARDS];
static char migs[DEVICES];
static char gpu_instances[INSTANCES];
static char compute_instances[DEVICES];

/* Returns the place of an address in an array; its size, if it is not in there. */
static uint place_in(const char *array, uint size, const void *handle)
{
    uintptr_t from = (uintptr_t)array, at = (uintptr_t)handle;
    return at >= from && at < from + size ? (uint)(at - from) : size;
}

static uint card_named(const char *uuid, uint guess)
{
    uint count = state_header()->card_count;
    if (guess < count && text_equal(state_identity(guess)->uuid, uuid))
        return guess;
    for (uint card = 0; card < count; card++)
        if (text_equal(state_identity(card)->uuid, uuid))
            return card;
    return NO_INSTANCE;
}

/* Finds a handle for a card that has none: of its own number, one that nobody has, or one of a card
 * that is gone. */
static uint free_handle(const struct numbering *next, uint card)
{
    if (next->cards[card] == NO_INSTANCE && !*owners[card])
        return card;
    uint gone = 0;
    for (uint handle = 0; handle < MOST_CARDS; handle++) {
        if (next->cards[handle] != NO_INSTANCE)
            continue;
        if (!*owners[handle])
            return handle;
        gone = handle;
    }
    *owners[gone] = 0;
    return gone;
}

void handles_follow(void)
{
    struct numbering next;
    bool has_handle[MOST_CARDS] = {false};
    for (uint i = 0; i < MOST_CARDS; i++) {
        next.cards[i] = *owners[i] ? card_named(owners[i], i) : NO_INSTANCE;
        next.handles[i] = i;
    }
    for (uint handle = 0; handle < MOST_CARDS; handle++)
        if (next.cards[handle] != NO_INSTANCE) {
            next.handles[next.cards[handle]] = handle;
            has_handle[next.cards[handle]] = true;
        }
    for (uint card = 0; card < state_header()->card_count; card++)
        if (!has_handle[card])
            next.cards[next.handles[card] = free_handle(&next, card)] = card;
    /* Number by number: others may be looking at them. */
    for (uint i = 0; i < MOST_CARDS; i++) {
        __atomic_store_n(&now.cards[i], next.cards[i], __ATOMIC_RELAXED);
        __atomic_store_n(&now.handles[i], next.handles[i], __ATOMIC_RELAXED);
    }
}

/* Notes that somebody has a card's handle, unless another file has come: they will look again. */
static void own(uint handle, uint card)
{
    char *owner = owners[handle];
    state_hold();
    if (now.handles[card] == handle && card < state_header()->card_count && !*owner) {
        const char *uuid = state_identity(card)->uuid;
        /* Its beginning comes last: a child of fork() has all of it or nothing. */
        text_copy(owner + 1, sizeof *owners - 1, uuid + 1);
        __atomic_store_n(owner, *uuid, __ATOMIC_RELEASE);
    }
    state_release();
}

uint handle_number(uint card)
{
    uint handle = __atomic_load_n(&now.handles[card], __ATOMIC_RELAXED);
    if (!__atomic_load_n(owners[handle], __ATOMIC_ACQUIRE))
        own(handle, card);
    return handle;
}

static uint number(uint card, uint gpu_instance, uint compute_instance)
{
    return (handle_number(card) * GPU_INSTANCE_IDS + gpu_instance) * COMPUTE_INSTANCE_IDS +
           compute_instance;
}

/* Says which card has the handle of a number, or that it has gone. */
static nvmlReturn_t place_at(uint handle, uint gpu_instance, uint compute_instance,
                             struct place *place)
{
    uint card = __atomic_load_n(&now.cards[handle], __ATOMIC_RELAXED);
    *place = (struct place){card, gpu_instance != NO_INSTANCE, gpu_instance,
                            compute_instance};
    return place->card == NO_INSTANCE ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

static nvmlReturn_t compute_instance_at(uint number, struct place *place)
{
    return place_at(number / COMPUTE_INSTANCE_IDS / GPU_INSTANCE_IDS,
                    number / COMPUTE_INSTANCE_IDS % GPU_INSTANCE_IDS, number % COMPUTE_INSTANCE_IDS,
                    place);
}

nvmlDevice_t device_handle(uint card) { return (nvmlDevice_t)(whole + handle_number(card)); }

nvmlDevice_t mig_handle(uint card, uint gpu_instance, uint compute_instance)
{
    return (nvmlDevice_t)(migs + number(card, gpu_instance, compute_instance));
}

nvmlGpuInstance_t gpu_instance_handle(uint card, uint id)
{
    return (nvmlGpuInstance_t)(gpu_instances + handle_number(card) * GPU_INSTANCE_IDS + id);
}

nvmlComputeInstance_t compute_instance_handle(uint card, uint gpu_instance, uint id)
{
    return (nvmlComputeInstance_t)(compute_instances + number(card, gpu_instance, id));
}

static nvmlReturn_t enter(void)
{
    NEED(state_ready(), NVML_ERROR_UNINITIALIZED);
    state_follow();
    return NVML_SUCCESS;
}

nvmlReturn_t place_of(nvmlDevice_t device, struct place *place)
{
    TRY(enter());
    uint handle = place_in(whole, MOST_CARDS, device);
    if (handle < MOST_CARDS)
        return place_at(handle, NO_INSTANCE, NO_INSTANCE, place);
    uint mig = place_in(migs, DEVICES, device);
    NEED_ARGUMENT(mig < DEVICES);
    return compute_instance_at(mig, place);
}

nvmlReturn_t card_of(nvmlDevice_t device, uint *card)
{
    struct place place;
    uint lost;
    TRY(place_of(device, &place));
    NEED(!place.is_mig, NVML_ERROR_NOT_SUPPORTED);
    *card = place.card;
    return LIVE_FIELD(place.card, lost, &lost);
}

nvmlReturn_t uncut_card_of(nvmlDevice_t device, uint *card)
{
    uint is_cut;
    TRY(card_of(device, card));
    TRY(LIVE_FIELD(*card, mig_mode, &is_cut));
    return is_cut ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t gpu_instance_of(nvmlGpuInstance_t handle, struct place *place)
{
    TRY(enter());
    uint at = place_in(gpu_instances, INSTANCES, handle);
    NEED_ARGUMENT(at < INSTANCES);
    return place_at(at / GPU_INSTANCE_IDS, at % GPU_INSTANCE_IDS, NO_INSTANCE, place);
}

nvmlReturn_t compute_instance_of(nvmlComputeInstance_t handle, struct place *place)
{
    TRY(enter());
    uint at = place_in(compute_instances, DEVICES, handle);
    NEED_ARGUMENT(at < DEVICES);
    return compute_instance_at(at, place);
}
