/* MIG as it is: modes, instances, devices, profiles. How to change it is in setters.c. */
#include "mig.h"

struct instances {
    struct gpu_instance gpu[MOST_GPU_INSTANCES];
    struct compute_instance compute[MOST_COMPUTE_INSTANCES];
};
_Static_assert(offsetof(struct live, compute_instances) - offsetof(struct live, gpu_instances) ==
                   offsetof(struct instances, compute),
               "MIG");

static nvmlReturn_t instances_of(uint card, struct instances *all)
{
    return live_copy(card, offsetof(struct live, gpu_instances), all, sizeof *all);
}

static bool is_of(const struct compute_instance *each, uint gpu_instance)
{
    return each->used && each->gpu_instance == gpu_instance && each->id < COMPUTE_INSTANCE_IDS &&
           gpu_instance < GPU_INSTANCE_IDS;
}

nvmlReturn_t mig_gpu_instance(const struct place *place, struct gpu_instance *found)
{
    struct instances all;
    TRY(instances_of(place->card, &all));
    for (uint i = 0; i < MOST_GPU_INSTANCES; i++)
        if (all.gpu[i].used && all.gpu[i].id == place->gpu_instance) {
            *found = all.gpu[i];
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t mig_compute_instance(const struct place *place, struct compute_instance *found)
{
    struct instances all;
    TRY(instances_of(place->card, &all));
    for (uint i = 0; i < MOST_COMPUTE_INSTANCES; i++)
        if (is_of(&all.compute[i], place->gpu_instance) &&
            all.compute[i].id == place->compute_instance) {
            *found = all.compute[i];
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t mig_profile(uint card, uint id, const struct mig_profile **found)
{
    const struct identity *identity = state_identity(card);
    for (uint i = 0; i < MOST_MIG_PROFILES; i++)
        if (identity->mig_profiles[i].slices && identity->mig_profiles[i].id == id) {
            *found = &identity->mig_profiles[i];
            return NVML_SUCCESS;
        }
    return NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t mig_by_uuid(const char *uuid, nvmlDevice_t *device)
{
    for (uint i = 0; i < visible_count(); i++) {
        struct instances all;
        uint card = visible_card(i);
        if (instances_of(card, &all) != NVML_SUCCESS)
            continue;
        for (uint k = 0; k < MOST_COMPUTE_INSTANCES; k++) {
            const struct compute_instance *each = &all.compute[k];
            if (is_of(each, each->gpu_instance) && text_equal(each->uuid, uuid) &&
                visible_mig(uuid)) {
                *device = mig_handle(card, each->gpu_instance, each->id);
                return NVML_SUCCESS;
            }
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

void mig_name(char *to, size_t size, const struct mig_profile *profile, uint compute_slices)
{
    if (compute_slices == profile->slices)
        text_copy(to, size, profile->name);
    else
        text_format(to, size, "%uc.%s", compute_slices, profile->name);
}

/* Devices. */

API nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, uint *is_mig)
{
    struct place place;
    TRY(place_of(device, &place));
    NEED_ARGUMENT(is_mig);
    *is_mig = place.is_mig;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, uint *id)
{
    struct place place;
    TRY(place_of(device, &place));
    NEED_ARGUMENT(id);
    NEED(place.is_mig, NVML_ERROR_NOT_SUPPORTED);
    *id = place.gpu_instance;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, uint *id)
{
    struct place place;
    TRY(place_of(device, &place));
    NEED_ARGUMENT(id);
    NEED(place.is_mig, NVML_ERROR_NOT_SUPPORTED);
    *id = place.compute_instance;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, uint *count)
{
    uint card, most = 0, is_cut;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(count);
    TRY(LIVE_FIELD(card, mig_mode, &is_cut));
    const struct identity *identity = state_identity(card);
    for (uint i = 0; i < MOST_MIG_PROFILES; i++)
        if (identity->mig_profiles[i].slices > most)
            most = identity->mig_profiles[i].slices;
    *count = identity->flags & FLAG_MIG && is_cut ? most : 0;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, uint index,
                                                     nvmlDevice_t *found)
{
    uint card, most;
    struct instances all;
    TRY(card_of(device, &card));
    TRY(nvmlDeviceGetMaxMigDeviceCount(device, &most));
    NEED(most, NVML_ERROR_NOT_SUPPORTED);
    NEED_ARGUMENT(found && index < most);
    TRY(instances_of(card, &all));
    uint seen = 0;
    for (uint i = 0; i < MOST_COMPUTE_INSTANCES; i++) {
        const struct compute_instance *each = &all.compute[i];
        if (is_of(each, each->gpu_instance) && visible_mig(each->uuid) && seen++ == index) {
            *found = mig_handle(card, each->gpu_instance, each->id);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t mig_index(const struct place *place, uint *index)
{
    struct instances all;
    TRY(instances_of(place->card, &all));
    *index = 0;
    for (uint i = 0; i < MOST_COMPUTE_INSTANCES; i++) {
        const struct compute_instance *each = &all.compute[i];
        if (!is_of(each, each->gpu_instance) || !visible_mig(each->uuid))
            continue;
        if (each->gpu_instance == place->gpu_instance && each->id == place->compute_instance)
            return NVML_SUCCESS;
        ++*index;
    }
    return NVML_ERROR_NOT_FOUND;
}

API nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig,
                                                              nvmlDevice_t *device)
{
    struct place place;
    TRY(place_of(mig, &place));
    NEED_ARGUMENT(device && place.is_mig);
    *device = device_handle(place.card);
    return NVML_SUCCESS;
}

/* GPU instances. */

static nvmlReturn_t mig_card(nvmlDevice_t device, uint *card)
{
    TRY(card_of(device, card));
    NEED(state_identity(*card)->flags & FLAG_MIG, NVML_ERROR_NOT_SUPPORTED);
    return NVML_SUCCESS;
}

/* The same for a card that is in MIG mode now. */
static nvmlReturn_t cut_card(nvmlDevice_t device, uint *card)
{
    uint mode;
    TRY(mig_card(device, card));
    TRY(LIVE_FIELD(*card, mig_mode, &mode));
    NEED(mode, NVML_ERROR_NOT_SUPPORTED);
    return NVML_SUCCESS;
}

static nvmlReturn_t profile_numbered(nvmlDevice_t device, uint number,
                                     const struct mig_profile **found)
{
    uint card;
    TRY(mig_card(device, &card));
    NEED_ARGUMENT(number < MOST_MIG_PROFILES);
    const struct identity *identity = state_identity(card);
    for (uint i = 0; i < MOST_MIG_PROFILES; i++)
        if (identity->mig_profiles[i].slices && identity->mig_profiles[i].number == number) {
            *found = &identity->mig_profiles[i];
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_SUPPORTED;
}

static nvmlEngines_t engines(const struct mig_profile *profile)
{
    return (nvmlEngines_t){profile->multiprocessors, profile->copy_engines, profile->decoders,
                           profile->encoders,        profile->jpegs,        profile->ofas};
}

API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, uint number,
                                                     nvmlGpuInstanceProfileInfo_t *to)
{
    const struct mig_profile *profile;
    NEED_ARGUMENT(to);
    TRY(profile_numbered(device, number, &profile));
    *to = (nvmlGpuInstanceProfileInfo_t){profile->id,   profile->capabilities & 1, profile->slices,
                                         profile->most, engines(profile),          profile->memory};
    return NVML_SUCCESS;
}

static nvmlReturn_t fill_profile(const struct mig_profile *profile, void *to)
{
    char name[96];
    text_format(name, sizeof name, "MIG %s", profile->name);
    nvmlGpuInstanceProfileInfo_v2_t *second = to;
    nvmlGpuInstanceProfileInfo_v3_t *third = to;
    if (second->version == VERSION_OF(nvmlGpuInstanceProfileInfo_v2_t, 2)) {
        *second = (nvmlGpuInstanceProfileInfo_v2_t){
            second->version, profile->id,      profile->capabilities & 1, profile->slices,
            profile->most,   engines(profile), profile->memory,           {0}};
        text_copy(second->name, sizeof second->name, name);
        return NVML_SUCCESS;
    }
    NEED_VERSION(third, nvmlGpuInstanceProfileInfo_v3_t, 3);
    *third = (nvmlGpuInstanceProfileInfo_v3_t){
        third->version,  profile->id, profile->slices,      profile->most, engines(profile),
        profile->memory, {0},         profile->capabilities};
    text_copy(third->name, sizeof third->name, name);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, uint number, void *to)
{
    const struct mig_profile *profile;
    NEED_ARGUMENT(to);
    TRY(profile_numbered(device, number, &profile));
    return fill_profile(profile, to);
}

API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, uint id, void *to)
{
    uint card;
    const struct mig_profile *profile;
    NEED_ARGUMENT(to);
    TRY(mig_card(device, &card));
    TRY(mig_profile(card, id, &profile));
    return fill_profile(profile, to);
}

API nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, uint id,
                                                               nvmlPlacement_t *to, uint *count)
{
    uint card;
    const struct mig_profile *profile;
    TRY(mig_card(device, &card));
    NEED_ARGUMENT(count);
    TRY(mig_profile(card, id, &profile));
    if (to) {
        NEED(*count >= profile->placement_count, NVML_ERROR_INSUFFICIENT_SIZE);
        for (uint i = 0; i < profile->placement_count && i < MOST_PLACEMENTS; i++)
            to[i] = (nvmlPlacement_t){profile->starts[i], profile->memory_slices};
    }
    *count = profile->placement_count;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t device, uint id,
                                                            nvmlPlacement_t *to, uint *count)
{
    return nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, to, count);
}

API nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, uint id,
                                                           uint *count)
{
    uint card, slices = 0, free_slices = 0, taken = 0;
    struct instances all;
    const struct mig_profile *profile, *other;
    TRY(cut_card(device, &card));
    NEED_ARGUMENT(count);
    TRY(mig_profile(card, id, &profile));
    TRY(instances_of(card, &all));
    TRY(nvmlDeviceGetMaxMigDeviceCount(device, &slices));
    for (uint i = 0; i < MOST_GPU_INSTANCES; i++) {
        const struct gpu_instance *each = &all.gpu[i];
        if (!each->used || mig_profile(card, each->profile, &other) != NVML_SUCCESS)
            continue;
        taken |= ((1u << each->size) - 1) << each->start;
        free_slices += other->slices;
    }
    free_slices = free_slices < slices ? slices - free_slices : 0;
    *count = 0;
    for (uint i = 0; i < profile->placement_count && i < MOST_PLACEMENTS; i++) {
        uint needed = ((1u << profile->memory_slices) - 1) << profile->starts[i];
        if (taken & needed || free_slices < profile->slices || *count == profile->most)
            continue;
        taken |= needed;
        free_slices -= profile->slices;
        ++*count;
    }
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, uint profile, nvmlGpuInstance_t *to,
                                           uint *count)
{
    uint card, found = 0;
    struct instances all;
    TRY(cut_card(device, &card));
    NEED_ARGUMENT(to && count);
    TRY(instances_of(card, &all));
    for (uint i = 0; i < MOST_GPU_INSTANCES; i++)
        if (all.gpu[i].used && all.gpu[i].profile == profile && all.gpu[i].id < GPU_INSTANCE_IDS)
            to[found++] = gpu_instance_handle(card, all.gpu[i].id);
    *count = found;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, uint id, nvmlGpuInstance_t *to)
{
    struct place place = {0, true, id, NO_INSTANCE};
    struct gpu_instance found;
    TRY(cut_card(device, &place.card));
    NEED_ARGUMENT(to && id < GPU_INSTANCE_IDS);
    TRY(mig_gpu_instance(&place, &found));
    *to = gpu_instance_handle(place.card, id);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *to)
{
    struct place place;
    struct gpu_instance found;
    TRY(gpu_instance_of(instance, &place));
    NEED_ARGUMENT(to);
    TRY(mig_gpu_instance(&place, &found));
    *to = (nvmlGpuInstanceInfo_t){
        device_handle(place.card), found.id, found.profile, {found.start, found.size}};
    return NVML_SUCCESS;
}
