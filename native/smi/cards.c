/* Which cards there are, and which of them are meant. */
#include "smi.h"

int no_driver(nvmlReturn_t result)
{
    if (result == NVML_ERROR_DRIVER_NOT_LOADED)
        print("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make "
              "sure that the latest NVIDIA driver is installed and running.\n\n");
    else
        print("Failed to initialize NVML: %s\n", nvmlErrorString(result));
    return (int)result;
}

static int no_handle(const char *which, uint index, nvmlReturn_t result)
{
    print("Unable to determine the device handle for %s%u: %s%s\n\n\n", which, index,
          nvmlErrorString(result),
          result == NVML_ERROR_GPU_IS_LOST ? ".  Reboot the system to recover this GPU" : "");
    return (int)result;
}

/* Finds a card by one name of a list: its index, or NO_INSTANCE. */
static uint index_of(const char *id, size_t length)
{
    char name[80];
    uint64_t index;
    nvmlDevice_t device;
    uint count = 0, found, is_mig;
    if (length >= sizeof name)
        return NO_INSTANCE;
    text_print(name, sizeof name, "%.*s", (int)length, id);
    const char *end = text_number(name, 10, &index);
    nvmlDeviceGetCount_v2(&count);
    if (end && !*end)
        return index < count ? (uint)index : NO_INSTANCE;
    if (nvmlDeviceGetHandleByUUID(name, &device) != NVML_SUCCESS &&
        nvmlDeviceGetHandleByPciBusId_v2(name, &device) != NVML_SUCCESS)
        return NO_INSTANCE;
    /* A MIG device's index is one within its card. */
    if (nvmlDeviceIsMigDeviceHandle(device, &is_mig) != NVML_SUCCESS || is_mig)
        return NO_INSTANCE;
    return nvmlDeviceGetIndex(device, &found) == NVML_SUCCESS ? found : NO_INSTANCE;
}

static void choose_listed(const char *ids, bool chosen[MOST_CARDS])
{
    while (*ids) {
        size_t length = 0;
        while (*ids == ' ')
            ids++;
        while (ids[length] && ids[length] != ',')
            length++;
        uint index = index_of(ids, length);
        if (index != NO_INSTANCE)
            chosen[index] = true;
        ids += length + (ids[length] == ',');
    }
}

int cards_choose(const char *ids, struct cards *cards)
{
    bool chosen[MOST_CARDS] = {false};
    uint count = 0;
    nvmlDeviceGetCount_v2(&count);
    if (ids)
        choose_listed(ids, chosen);
    cards->count = 0;
    for (uint index = 0; index < count; index++) {
        if (ids && !chosen[index])
            continue;
        struct chosen *card = &cards->card[cards->count++];
        card->index = index;
        nvmlReturn_t result = nvmlDeviceGetHandleByIndex_v2(index, &card->device);
        if (result != NVML_SUCCESS)
            return no_handle("GPU", index, result);
    }
    if (cards->count)
        return EXIT_GOOD;
    print("No devices were found\n");
    return EXIT_NOT_FOUND;
}

bool is_mig_on(nvmlDevice_t card)
{
    uint now = 0, pending;
    return nvmlDeviceGetMigMode(card, &now, &pending) == NVML_SUCCESS && now;
}

uint mig_devices(nvmlDevice_t card, nvmlDevice_t to[MOST_COMPUTE_INSTANCES])
{
    uint found = 0;
    while (is_mig_on(card) && found < MOST_COMPUTE_INSTANCES &&
           nvmlDeviceGetMigDeviceHandleByIndex(card, found, &to[found]) == NVML_SUCCESS)
        found++;
    return found;
}

static void list_mig(const char *product, nvmlDevice_t device, uint index)
{
    char name[FIELD_SIZE], uuid[FIELD_SIZE];
    field_show("name", device, name);
    field_show("uuid", device, uuid);
    /* Its name is that of the card with " MIG 1g.5gb" behind it. */
    size_t skipped = text_length(product) + sizeof " MIG";
    const char *profile = text_length(name) > skipped ? name + skipped : name;
    print("  MIG %-11s Device %2u: (UUID: %s)\n", profile, index, uuid);
}

int cards_list(void)
{
    uint count = 0;
    int code = EXIT_GOOD;
    nvmlDeviceGetCount_v2(&count);
    for (uint index = 0; index < count; index++) {
        nvmlDevice_t device, migs[MOST_COMPUTE_INSTANCES];
        char name[FIELD_SIZE], uuid[FIELD_SIZE];
        nvmlReturn_t result = nvmlDeviceGetHandleByIndex_v2(index, &device);
        if (result != NVML_SUCCESS) {
            code = no_handle("gpu ", index, result);
            continue;
        }
        field_show("name", device, name);
        field_show("uuid", device, uuid);
        print("GPU %u: %s (UUID: %s)\n", index, name, uuid);
        uint found = mig_devices(device, migs);
        for (uint i = 0; i < found; i++)
            list_mig(name, migs[i], i);
    }
    if (!count)
        print("No devices found.\n");
    return code;
}
