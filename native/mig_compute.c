/* MIG's compute instances: parts of a GPU instance's compute slices. */
#include "mig.h"

/* The slices of NVML's compute instance profiles, by their numbers, which are their IDs too. */
static const uint slices_of[] = {1, 2, 3, 4, 7, 8, 6, 1, 7};

static nvmlReturn_t profile_of(nvmlGpuInstance_t instance, struct place *place,
                               const struct mig_profile **profile)
{
    struct gpu_instance found;
    TRY(gpu_instance_of(instance, place));
    TRY(mig_gpu_instance(place, &found));
    return mig_profile(place->card, found.profile, profile);
}

/* What a compute instance of that profile has of the GPU instance. */
static nvmlReturn_t describe(nvmlGpuInstance_t instance, uint number, uint engine_profile,
                             nvmlComputeInstanceProfileInfo_t *to, char name[96])
{
    struct place place;
    const struct mig_profile *profile;
    TRY(profile_of(instance, &place, &profile));
    NEED_ARGUMENT(number < COUNT_OF(slices_of) && engine_profile == 0);
    NEED(profile->compute_profiles >> number & 1, NVML_ERROR_NOT_SUPPORTED);
    uint slices = slices_of[number];
    *to = (nvmlComputeInstanceProfileInfo_t){number,
                                             slices,
                                             profile->slices / slices,
                                             {profile->multiprocessors * slices / profile->slices,
                                              profile->copy_engines, profile->decoders,
                                              profile->encoders, profile->jpegs, profile->ofas}};
    char part[48];
    mig_name(part, sizeof part, profile, slices);
    text_format(name, 96, "MIG %s", part);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t instance,
                                                              uint number, uint engine_profile,
                                                              nvmlComputeInstanceProfileInfo_t *to)
{
    char name[96];
    NEED_ARGUMENT(to);
    return describe(instance, number, engine_profile, to, name);
}

API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t instance,
                                                               uint number, uint engine_profile,
                                                               void *to)
{
    /* The third version is the second one with a word more. */
    nvmlComputeInstanceProfileInfo_v2_t *info = to;
    NEED_ARGUMENT(to);
    bool third = info->version == VERSION_OF(nvmlComputeInstanceProfileInfo_v3_t, 3);
    if (!third)
        NEED_VERSION(info, nvmlComputeInstanceProfileInfo_v2_t, 2);
    if (third)
        ((nvmlComputeInstanceProfileInfo_v3_t *)to)->capabilities = 0;
    return describe(instance, number, engine_profile, &info->first, info->name);
}

/* Sets a bit for each compute slice of a GPU instance that is taken. */
static nvmlReturn_t taken_of(const struct place *place, uint *taken)
{
    struct compute_instance all[MOST_COMPUTE_INSTANCES];
    TRY(LIVE_FIELD(place->card, compute_instances, all));
    *taken = 0;
    for (uint i = 0; i < MOST_COMPUTE_INSTANCES; i++)
        if (all[i].used && all[i].gpu_instance == place->gpu_instance)
            *taken |= ((1u << all[i].size) - 1) << all[i].start;
    return NVML_SUCCESS;
}

static nvmlReturn_t placements(nvmlGpuInstance_t instance, uint number, bool only_free,
                               nvmlPlacement_t *to, uint *count)
{
    struct place place;
    const struct mig_profile *profile;
    uint taken = 0, found = 0;
    TRY(profile_of(instance, &place, &profile));
    NEED_ARGUMENT(count && number < COUNT_OF(slices_of));
    NEED(profile->compute_profiles >> number & 1, NVML_ERROR_NOT_SUPPORTED);
    if (only_free)
        TRY(taken_of(&place, &taken));
    uint slices = slices_of[number];
    for (uint start = 0; start + slices <= profile->slices; start += slices) {
        if (taken >> start & ((1u << slices) - 1))
            continue;
        if (to) {
            NEED(found < *count, NVML_ERROR_INSUFFICIENT_SIZE);
            to[found] = (nvmlPlacement_t){start, slices};
        }
        found++;
    }
    *count = found;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t instance,
                                                                     uint profile,
                                                                     nvmlPlacement_t *to,
                                                                     uint *count)
{
    return placements(instance, profile, false, to, count);
}

API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t instance,
                                                                    uint profile, uint *count)
{
    return placements(instance, profile, true, NULL, count);
}

API nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t instance, uint profile,
                                                    nvmlComputeInstance_t *to, uint *count)
{
    struct place place;
    struct compute_instance all[MOST_COMPUTE_INSTANCES];
    uint found = 0;
    TRY(gpu_instance_of(instance, &place));
    NEED_ARGUMENT(to && count);
    TRY(LIVE_FIELD(place.card, compute_instances, all));
    for (uint i = 0; i < MOST_COMPUTE_INSTANCES; i++)
        if (all[i].used && all[i].gpu_instance == place.gpu_instance && all[i].profile == profile &&
            all[i].id < COMPUTE_INSTANCE_IDS)
            to[found++] = compute_instance_handle(place.card, place.gpu_instance, all[i].id);
    *count = found;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t instance, uint id,
                                                       nvmlComputeInstance_t *to)
{
    struct place place;
    struct compute_instance found;
    TRY(gpu_instance_of(instance, &place));
    NEED_ARGUMENT(to && id < COMPUTE_INSTANCE_IDS);
    place.compute_instance = id;
    TRY(mig_compute_instance(&place, &found));
    *to = compute_instance_handle(place.card, place.gpu_instance, id);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t instance,
                                               nvmlComputeInstanceInfo_v2_t *to)
{
    struct place place;
    struct compute_instance found;
    TRY(compute_instance_of(instance, &place));
    NEED_ARGUMENT(to);
    TRY(mig_compute_instance(&place, &found));
    *to = (nvmlComputeInstanceInfo_v2_t){{device_handle(place.card),
                                          gpu_instance_handle(place.card, place.gpu_instance),
                                          found.id, found.profile},
                                         {found.start, found.size}};
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t instance,
                                            nvmlComputeInstanceInfo_v1_t *to)
{
    nvmlComputeInstanceInfo_v2_t found;
    NEED_ARGUMENT(to);
    TRY(nvmlComputeInstanceGetInfo_v2(instance, &found));
    *to = found.first;
    return NVML_SUCCESS;
}
