/* mig: making and removing instances. */
#include "instances.h"

/* Takes the next part of a list with commas; false at its end. */
static bool next(const char **list, char *to, size_t size)
{
    size_t length = 0;
    if (!**list)
        return false;
    while ((*list)[length] && (*list)[length] != ',')
        length++;
    text_print(to, size, "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    return true;
}

/* Is an ID in a list? All are in no list. */
static bool is_listed(const char *list, uint id)
{
    char part[24];
    uint64_t number;
    if (!list)
        return true;
    while (next(&list, part, sizeof part)) {
        const char *end = text_number(part, 10, &number);
        if (end && !*end && number == id)
            return true;
    }
    return false;
}

/* Does a text name a profile: by its ID, or as 1g.5gb or MIG 1g.5gb? */
static bool is_named(const char *text, uint id, const char *name)
{
    uint64_t number;
    const char *end = text_number(text, 10, &number);
    return (end && !*end && number == id) || text_equal(name, text) ||
           text_equal(name + sizeof "MIG", text);
}

static nvmlReturn_t default_compute_instance(const struct chosen *card, nvmlGpuInstance_t handle,
                                             uint id)
{
    nvmlGpuInstanceInfo_t info;
    nvmlComputeInstance_t made;
    nvmlComputeInstanceInfo_v2_t about;
    compute_profile profile, whole = {0};
    TRY(nvmlGpuInstanceGetInfo(handle, &info));
    /* The default one is the largest: all of the GPU instance. */
    for (uint number = 0; number < COMPUTE_PROFILES; number++)
        if (compute_profile_numbered(handle, number, &profile) &&
            profile.first.sliceCount > whole.first.sliceCount)
            whole = profile;
    NEED(whole.first.sliceCount, NVML_ERROR_NOT_SUPPORTED);
    nvmlReturn_t result = nvmlGpuInstanceCreateComputeInstance(handle, whole.first.id, &made);
    if (result != NVML_SUCCESS) {
        print("Unable to create a compute instance on GPU %2u GPU instance ID %2u: %s\n",
              card->index, id, nvmlErrorString(result));
        return result;
    }
    TRY(nvmlComputeInstanceGetInfo_v2(made, &about));
    print("Successfully created compute instance ID %2u on GPU %2u GPU instance ID %2u using "
          "profile %s (ID %2u)\n",
          about.first.id, card->index, id, whole.name, whole.first.id);
    return NVML_SUCCESS;
}

static nvmlReturn_t make_gpu_instance(const struct chosen *card, char *text, bool with_compute)
{
    gpu_profile profile = {0};
    nvmlGpuInstance_t made;
    nvmlGpuInstanceInfo_t info;
    uint64_t start = NO_INSTANCE;
    uint number = 0;
    for (size_t i = 0; text[i]; i++)
        if (text[i] == ':') {
            const char *end = text_number(text + i + 1, 10, &start);
            NEED(end && !*end, NVML_ERROR_INVALID_ARGUMENT);
            text[i] = 0;
            break;
        }
    while (number < GPU_PROFILES && !(gpu_profile_numbered(card->device, number, &profile) &&
                                      is_named(text, profile.id, profile.name)))
        number++;
    nvmlReturn_t result = NVML_ERROR_INVALID_ARGUMENT;
    if (number < GPU_PROFILES && start == NO_INSTANCE)
        result = nvmlDeviceCreateGpuInstance(card->device, profile.id, &made);
    else if (number < GPU_PROFILES) {
        nvmlPlacement_t places[MOST_PLACEMENTS], place = {(uint)start, 0};
        uint count = MOST_PLACEMENTS;
        TRY(nvmlDeviceGetGpuInstancePossiblePlacements_v2(card->device, profile.id, places,
                                                          &count));
        place.size = count ? places[0].size : 0;
        result = nvmlDeviceCreateGpuInstanceWithPlacement(card->device, profile.id, &place, &made);
    }
    if (result != NVML_SUCCESS) {
        print("Unable to create a GPU instance on GPU %2u using profile %s: %s\n", card->index,
              text, nvmlErrorString(result));
        return result;
    }
    TRY(nvmlGpuInstanceGetInfo(made, &info));
    print("Successfully created GPU instance ID %2u on GPU %2u using profile %s (ID %2u)\n",
          info.id, card->index, profile.name, profile.id);
    return with_compute ? default_compute_instance(card, made, info.id) : NVML_SUCCESS;
}

int gpu_instances_make(const struct cards *cards, const struct wanted *wanted)
{
    for (uint i = 0; i < cards->count; i++) {
        const char *list = wanted->profiles;
        char text[96];
        while (next(&list, text, sizeof text)) {
            nvmlReturn_t result = make_gpu_instance(&cards->card[i], text, wanted->with_compute);
            if (result != NVML_SUCCESS)
                return mig_failed("create GPU instances", result);
        }
    }
    return EXIT_GOOD;
}

int gpu_instances_remove(const struct cards *cards, const struct wanted *wanted)
{
    uint removed = 0;
    for (uint i = 0; i < cards->count; i++) {
        struct gpu_part parts[MOST_GPU_INSTANCES];
        uint count = gpu_parts(cards->card[i].device, parts);
        for (uint k = 0; k < count; k++) {
            uint id = parts[k].info.id, card = cards->card[i].index;
            if (!is_listed(wanted->gpu_ids, id))
                continue;
            nvmlReturn_t result = nvmlGpuInstanceDestroy(parts[k].handle);
            if (result != NVML_SUCCESS) {
                print("Unable to destroy GPU instance ID %2u from GPU %2u: %s\n", id, card,
                      nvmlErrorString(result));
                return mig_failed("destroy GPU instances", result);
            }
            print("Successfully destroyed GPU instance ID %2u from GPU %2u\n", id, card);
            removed++;
        }
    }
    if (!removed)
        print("No GPU instances found: Not Found\n");
    return removed ? EXIT_GOOD : EXIT_NOT_FOUND;
}

static nvmlReturn_t make_compute_instance(const struct chosen *card, const struct gpu_part *part,
                                          const char *text)
{
    compute_profile profile;
    nvmlComputeInstance_t made;
    nvmlComputeInstanceInfo_v2_t info;
    uint number = 0;
    while (number < COMPUTE_PROFILES &&
           !(compute_profile_numbered(part->handle, number, &profile) &&
             is_named(text, profile.first.id, profile.name)))
        number++;
    nvmlReturn_t result =
        number == COMPUTE_PROFILES
            ? NVML_ERROR_INVALID_ARGUMENT
            : nvmlGpuInstanceCreateComputeInstance(part->handle, profile.first.id, &made);
    if (result != NVML_SUCCESS) {
        print("Unable to create a compute instance on GPU %2u GPU instance ID %2u using profile "
              "%s: %s\n",
              card->index, part->info.id, text, nvmlErrorString(result));
        return result;
    }
    TRY(nvmlComputeInstanceGetInfo_v2(made, &info));
    print("Successfully created compute instance ID %2u on GPU %2u GPU instance ID %2u using "
          "profile %s (ID %2u)\n",
          info.first.id, card->index, part->info.id, profile.name, profile.first.id);
    return NVML_SUCCESS;
}

int compute_instances_make(const struct cards *cards, const struct wanted *wanted)
{
    uint found = 0;
    for (uint i = 0; i < cards->count; i++) {
        struct gpu_part parts[MOST_GPU_INSTANCES];
        uint count = gpu_parts(cards->card[i].device, parts);
        for (uint k = 0; k < count; k++) {
            const char *list = wanted->profiles ? wanted->profiles : "";
            char text[96];
            nvmlReturn_t result = NVML_SUCCESS;
            if (!is_listed(wanted->gpu_ids, parts[k].info.id))
                continue;
            found++;
            if (!*list)
                result =
                    default_compute_instance(&cards->card[i], parts[k].handle, parts[k].info.id);
            while (result == NVML_SUCCESS && next(&list, text, sizeof text))
                result = make_compute_instance(&cards->card[i], &parts[k], text);
            if (result != NVML_SUCCESS)
                return mig_failed("create compute instances", result);
        }
    }
    if (!found)
        print("No GPU instances found: Not Found\n");
    return found ? EXIT_GOOD : EXIT_NOT_FOUND;
}

int compute_instances_remove(const struct cards *cards, const struct wanted *wanted)
{
    uint removed = 0;
    for (uint i = 0; i < cards->count; i++) {
        struct gpu_part parts[MOST_GPU_INSTANCES];
        uint count = gpu_parts(cards->card[i].device, parts);
        for (uint k = 0; k < count; k++) {
            struct compute_part inside[MOST_COMPUTE_INSTANCES];
            uint found = compute_parts(parts[k].handle, inside);
            for (uint c = 0; is_listed(wanted->gpu_ids, parts[k].info.id) && c < found; c++) {
                uint id = inside[c].info.first.id;
                if (!is_listed(wanted->compute_ids, id))
                    continue;
                nvmlReturn_t result = nvmlComputeInstanceDestroy(inside[c].handle);
                if (result != NVML_SUCCESS) {
                    print("Unable to destroy compute instance ID %2u from GPU %2u GPU instance ID "
                          "%2u: %s\n",
                          id, cards->card[i].index, parts[k].info.id, nvmlErrorString(result));
                    return mig_failed("destroy compute instances", result);
                }
                print("Successfully destroyed compute instance ID %2u from GPU %2u GPU instance ID "
                      "%2u\n",
                      id, cards->card[i].index, parts[k].info.id);
                removed++;
            }
        }
    }
    if (!removed)
        print("No compute instances found: Not Found\n");
    return removed ? EXIT_GOOD : EXIT_NOT_FOUND;
}
