/* Handles: addresses in arrays that nobody writes to. Where in its array says what one stands for.
 */
#include "state.h"
#include "mig.h"

#define INSTANCES (MOST_CARDS * GPU_INSTANCE_IDS)
#define DEVICES (INSTANCES * COMPUTE_INSTANCE_IDS)

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

static uint number(uint card, uint gpu_instance, uint compute_instance)
{
    return (card * GPU_INSTANCE_IDS + gpu_instance) * COMPUTE_INSTANCE_IDS + compute_instance;
}

static struct place place_at(uint number)
{
    return (struct place){number / COMPUTE_INSTANCE_IDS / GPU_INSTANCE_IDS, true,
                          number / COMPUTE_INSTANCE_IDS % GPU_INSTANCE_IDS,
                          number % COMPUTE_INSTANCE_IDS};
}

nvmlDevice_t device_handle(uint card) { return (nvmlDevice_t)(whole + card); }

nvmlDevice_t mig_handle(uint card, uint gpu_instance, uint compute_instance)
{
    return (nvmlDevice_t)(migs + number(card, gpu_instance, compute_instance));
}

nvmlGpuInstance_t gpu_instance_handle(uint card, uint id)
{
    return (nvmlGpuInstance_t)(gpu_instances + card * GPU_INSTANCE_IDS + id);
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
    uint card = place_in(whole, MOST_CARDS, device);
    if (card < MOST_CARDS) {
        *place = (struct place){card, false, NO_INSTANCE, NO_INSTANCE};
        return NVML_SUCCESS;
    }
    uint mig = place_in(migs, DEVICES, device);
    NEED_ARGUMENT(mig < DEVICES);
    *place = place_at(mig);
    return NVML_SUCCESS;
}

nvmlReturn_t card_of(nvmlDevice_t device, uint *card)
{
    struct place place;
    TRY(place_of(device, &place));
    *card = place.card;
    return place.is_mig ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t gpu_instance_of(nvmlGpuInstance_t handle, struct place *place)
{
    TRY(enter());
    uint at = place_in(gpu_instances, INSTANCES, handle);
    NEED_ARGUMENT(at < INSTANCES);
    *place = (struct place){at / GPU_INSTANCE_IDS, true, at % GPU_INSTANCE_IDS, NO_INSTANCE};
    return NVML_SUCCESS;
}

nvmlReturn_t compute_instance_of(nvmlComputeInstance_t handle, struct place *place)
{
    TRY(enter());
    uint at = place_in(compute_instances, DEVICES, handle);
    NEED_ARGUMENT(at < DEVICES);
    *place = place_at(at);
    return NVML_SUCCESS;
}
