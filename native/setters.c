/*
 * Setters: each asks the agent, which changes the state for every process, or says why not. Where
 * no agent listens, nobody has the right to set anything.
 */
#include "mig.h"

static nvmlReturn_t ask(struct request *request, struct reply *reply)
{
    char path[PATH_SIZE + 32];
    /* By way of the folder's descriptor: the path of a socket must be short. */
    text_format(path, sizeof path, "%s/" SETTER_SOCKET, state_folder());
    size_t name = text_length(path);
    while (name && path[name - 1] != '/')
        name--;
    char socket[64];
    path[name ? name - 1 : 0] = 0;
    long folder = sys_open(path, OPEN_PATH);
    NEED(folder >= 0, NVML_ERROR_NO_PERMISSION);
    text_format(socket, sizeof socket, "/proc/self/fd/%u/%s", (uint)folder, path + name);
    long fd = sys_connect(socket);
    sys_close((int)folder);
    NEED(fd >= 0, NVML_ERROR_NO_PERMISSION);
    request->magic = MAGIC;
    request->version = VERSION;
    request->generation = state_header()->generation;
    nvmlReturn_t result = NVML_ERROR_UNKNOWN;
    if (sys_send((int)fd, request, sizeof *request) == sizeof *request) {
        long got = sys_receive((int)fd, reply, sizeof *reply);
        if (got == sizeof *reply && reply->magic == MAGIC)
            result = (nvmlReturn_t)reply->result;
        else if (got == ERROR_AGAIN)
            result = NVML_ERROR_TIMEOUT;
    }
    sys_close((int)fd);
    return result;
}

static nvmlReturn_t set(nvmlDevice_t device, uint needs, uint operation, uint64_t value,
                        uint64_t other)
{
    struct request request = {.operation = operation,
                              .gpu_instance = NO_INSTANCE,
                              .compute_instance = NO_INSTANCE,
                              .values = {value, other}};
    struct reply reply;
    TRY(card_of(device, &request.card));
    NEED((state_identity(request.card)->flags & needs) == needs, NVML_ERROR_NOT_SUPPORTED);
    return ask(&request, &reply);
}

API nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, uint mode)
{
    NEED_ARGUMENT(mode < 2);
    return set(device, 0, SET_PERSISTENCE_MODE, mode, 0);
}

API nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, uint mode)
{
    NEED_ARGUMENT(mode == 0 || mode == 2 || mode == 3);
    return set(device, 0, SET_COMPUTE_MODE, mode, 0);
}

API nvmlReturn_t nvmlDeviceSetEccMode(nvmlDevice_t device, uint mode)
{
    NEED_ARGUMENT(mode < 2);
    return set(device, FLAG_ECC, SET_ECC_MODE, mode, 0);
}

API nvmlReturn_t nvmlDeviceClearEccErrorCounts(nvmlDevice_t device, uint counter)
{
    NEED_ARGUMENT(counter < 2);
    return set(device, FLAG_ECC, CLEAR_ECC_ERRORS, counter, 0);
}

API nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, uint limit)
{
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(limit >= state_identity(card)->power_limit_least &&
                  limit <= state_identity(card)->power_limit_most);
    return set(device, 0, SET_POWER_LIMIT, limit, 0);
}

API nvmlReturn_t nvmlDeviceSetPowerManagementLimit_v2(nvmlDevice_t device,
                                                      nvmlPowerValue_v2_t *value)
{
    NEED_ARGUMENT(value);
    NEED_VERSION(value, nvmlPowerValue_v2_t, 2);
    NEED(value->powerScope == 0, NVML_ERROR_NOT_SUPPORTED);
    return nvmlDeviceSetPowerManagementLimit(device, value->powerValueMw);
}

API nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t device, uint least, uint most)
{
    NEED_ARGUMENT(least <= most && most);
    return set(device, 0, SET_GPU_LOCKED_CLOCKS, least, most);
}

API nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t device)
{
    return set(device, 0, SET_GPU_LOCKED_CLOCKS, 0, 0);
}

API nvmlReturn_t nvmlDeviceSetMemoryLockedClocks(nvmlDevice_t device, uint least, uint most)
{
    NEED_ARGUMENT(least <= most && most);
    return set(device, 0, SET_MEMORY_LOCKED_CLOCKS, least, most);
}

API nvmlReturn_t nvmlDeviceResetMemoryLockedClocks(nvmlDevice_t device)
{
    return set(device, 0, SET_MEMORY_LOCKED_CLOCKS, 0, 0);
}

API nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, uint memory_clock,
                                                      uint *count, uint *clocks);

/* Only clocks that go together can be chosen. */
static nvmlReturn_t can_choose(nvmlDevice_t device, uint memory, uint graphics)
{
    uint clocks[1024], count = COUNT_OF(clocks);
    nvmlReturn_t result = nvmlDeviceGetSupportedGraphicsClocks(device, memory, &count, clocks);
    NEED(result != NVML_ERROR_NOT_FOUND, NVML_ERROR_INVALID_ARGUMENT);
    TRY(result);
    for (uint i = 0; i < count; i++)
        if (clocks[i] == graphics)
            return NVML_SUCCESS;
    return NVML_ERROR_INVALID_ARGUMENT;
}

API nvmlReturn_t nvmlDeviceSetApplicationsClocks(nvmlDevice_t device, uint memory, uint graphics)
{
    TRY(can_choose(device, memory, graphics));
    return set(device, 0, SET_APPLICATION_CLOCKS, memory, graphics);
}

API nvmlReturn_t nvmlDeviceResetApplicationsClocks(nvmlDevice_t device)
{
    return set(device, 0, SET_APPLICATION_CLOCKS, 0, 0);
}

API nvmlReturn_t nvmlDeviceSetAccountingMode(nvmlDevice_t device, uint mode)
{
    NEED_ARGUMENT(mode < 2);
    return set(device, 0, SET_ACCOUNTING_MODE, mode, 0);
}

/* MIG. */

API nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, uint mode, nvmlReturn_t *activation)
{
    struct request request = {.operation = SET_MIG_MODE,
                              .gpu_instance = NO_INSTANCE,
                              .compute_instance = NO_INSTANCE,
                              .values = {mode, 0}};
    struct reply reply;
    NEED_ARGUMENT(mode < 2 && activation);
    TRY(card_of(device, &request.card));
    NEED(state_identity(request.card)->flags & FLAG_MIG, NVML_ERROR_NOT_SUPPORTED);
    TRY(ask(&request, &reply));
    *activation = (nvmlReturn_t)reply.activation;
    return NVML_SUCCESS;
}

static nvmlReturn_t create_gpu_instance(nvmlDevice_t device, uint id, uint start, uint size,
                                        nvmlGpuInstance_t *made)
{
    struct request request = {.operation = CREATE_GPU_INSTANCE,
                              .gpu_instance = NO_INSTANCE,
                              .compute_instance = NO_INSTANCE,
                              .profile = id,
                              .start = start,
                              .size = size};
    struct reply reply;
    const struct mig_profile *profile;
    NEED_ARGUMENT(made);
    TRY(card_of(device, &request.card));
    NEED(state_identity(request.card)->flags & FLAG_MIG, NVML_ERROR_NOT_SUPPORTED);
    TRY(mig_profile(request.card, id, &profile));
    TRY(ask(&request, &reply));
    NEED(reply.gpu_instance < GPU_INSTANCE_IDS, NVML_ERROR_UNKNOWN);
    *made = gpu_instance_handle(request.card, reply.gpu_instance);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, uint profile,
                                             nvmlGpuInstance_t *made)
{
    return create_gpu_instance(device, profile, NO_INSTANCE, NO_INSTANCE, made);
}

API nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, uint profile,
                                                          const nvmlPlacement_t *placement,
                                                          nvmlGpuInstance_t *made)
{
    NEED_ARGUMENT(placement);
    return create_gpu_instance(device, profile, placement->start, placement->size, made);
}

API nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance)
{
    struct place place;
    struct gpu_instance found;
    struct reply reply;
    TRY(gpu_instance_of(instance, &place));
    TRY(mig_gpu_instance(&place, &found));
    return ask(&(struct request){.operation = DESTROY_GPU_INSTANCE,
                                 .card = place.card,
                                 .gpu_instance = place.gpu_instance,
                                 .compute_instance = NO_INSTANCE},
               &reply);
}

static nvmlReturn_t create_compute_instance(nvmlGpuInstance_t instance, uint profile, uint start,
                                            uint size, nvmlComputeInstance_t *made)
{
    struct place place;
    struct gpu_instance found;
    struct reply reply;
    NEED_ARGUMENT(made);
    TRY(gpu_instance_of(instance, &place));
    TRY(mig_gpu_instance(&place, &found));
    struct request request = {.operation = CREATE_COMPUTE_INSTANCE,
                              .card = place.card,
                              .gpu_instance = place.gpu_instance,
                              .compute_instance = NO_INSTANCE,
                              .profile = profile,
                              .start = start,
                              .size = size};
    TRY(ask(&request, &reply));
    NEED(reply.compute_instance < COMPUTE_INSTANCE_IDS, NVML_ERROR_UNKNOWN);
    *made = compute_instance_handle(place.card, place.gpu_instance, reply.compute_instance);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t instance, uint profile,
                                                      nvmlComputeInstance_t *made)
{
    return create_compute_instance(instance, profile, NO_INSTANCE, NO_INSTANCE, made);
}

API nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(nvmlGpuInstance_t instance,
                                                                   uint profile,
                                                                   const nvmlPlacement_t *placement,
                                                                   nvmlComputeInstance_t *made)
{
    NEED_ARGUMENT(placement);
    return create_compute_instance(instance, profile, placement->start, placement->size, made);
}

API nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t instance)
{
    struct place place;
    struct compute_instance found;
    struct reply reply;
    TRY(compute_instance_of(instance, &place));
    TRY(mig_compute_instance(&place, &found));
    return ask(&(struct request){.operation = DESTROY_COMPUTE_INSTANCE,
                                 .card = place.card,
                                 .gpu_instance = place.gpu_instance,
                                 .compute_instance = place.compute_instance},
               &reply);
}
