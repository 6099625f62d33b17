/* Beginning and end, versions, and how to come by a card. */
#include "mig.h"
#include "state.h"

static struct lock init_lock;
static uint32_t users;

bool state_ready(void) { return __atomic_load_n(&users, __ATOMIC_ACQUIRE) != 0; }

API nvmlReturn_t nvmlInitWithFlags(uint flags)
{
    NEED(flags < 4, NVML_ERROR_INVALID_ARGUMENT);
    lock_take(&init_lock);
    nvmlReturn_t result = users ? NVML_SUCCESS : state_open();
    if (result == NVML_SUCCESS)
        __atomic_add_fetch(&users, 1, __ATOMIC_RELEASE);
    lock_give(&init_lock);
    return result;
}

API nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
API nvmlReturn_t nvmlInit(void) { return nvmlInitWithFlags(0); }

API nvmlReturn_t nvmlShutdown(void)
{
    lock_take(&init_lock);
    nvmlReturn_t result = users ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    if (users && !__atomic_sub_fetch(&users, 1, __ATOMIC_RELEASE)) {
        events_forget();
        gpm_forget();
    }
    lock_give(&init_lock);
    return result;
}

static const struct {
    int code;
    const char *text;
} errors[] = {
    {0, "Success"},
    {1, "Uninitialized"},
    {2, "Invalid Argument"},
    {3, "Not Supported"},
    {4, "Insufficient Permissions"},
    {5, "Already Initialized"},
    {6, "Not Found"},
    {7, "Insufficient Size"},
    {8, "Insufficient External Power"},
    {9, "Driver Not Loaded"},
    {10, "Timeout"},
    {11, "Interrupt Request Issue"},
    {12, "NVML Shared Library Not Found"},
    {13, "Function Not Found"},
    {14, "Corrupted infoROM"},
    {15, "GPU is lost"},
    {16, "GPU requires reset"},
    {17, "GPU access blocked by the operating system"},
    {18, "Driver/library version mismatch"},
    {19, "In use by another client"},
    {20, "Insufficient Memory"},
    {21, "No data"},
    {22, "ECC not supported on this vGPU"},
    {23, "Insufficient Resources"},
    {24, "Frequency not supported"},
    {25, "Argument version mismatch"},
    {26, "Deprecated"},
    {27, "System not ready"},
    {28, "No GPUs found"},
    {29, "Invalid state"},
    {30, "Reset type not supported"},
};

API const char *nvmlErrorString(nvmlReturn_t code)
{
    for (size_t i = 0; i < COUNT_OF(errors); i++)
        if (errors[i].code == (int)code)
            return errors[i].text;
    return "Unknown Error";
}

static nvmlReturn_t header_text(size_t offset, char *to, uint size)
{
    NEED(state_ready(), NVML_ERROR_UNINITIALIZED);
    state_follow();
    return give_text(to, size, (const char *)state_header() + offset);
}

API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, uint size)
{
    return header_text(offsetof(struct header, driver_version), version, size);
}

API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, uint size)
{
    return header_text(offsetof(struct header, nvml_version), version, size);
}

API nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_v1_t *info, uint size)
{
    NEED_ARGUMENT(info);
    NEED_VERSION(info, nvmlSystemDriverBranchInfo_v1_t, 1);
    return header_text(offsetof(struct header, driver_branch), info->branch,
                       size < sizeof info->branch ? size : sizeof info->branch);
}

API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    NEED(state_ready(), NVML_ERROR_UNINITIALIZED);
    NEED_ARGUMENT(version);
    state_follow();
    *version = (int)state_header()->cuda_version;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

API nvmlReturn_t nvmlDeviceGetCount_v2(uint *count)
{
    NEED(state_ready(), NVML_ERROR_UNINITIALIZED);
    NEED_ARGUMENT(count);
    state_follow();
    *count = visible_count();
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetCount(uint *count) { return nvmlDeviceGetCount_v2(count); }

/* A lost card can't be had any more; who had it before may still say which one it was. */
static nvmlReturn_t give_card(uint card, nvmlDevice_t *device)
{
    uint32_t lost;
    TRY(LIVE_FIELD(card, lost, &lost));
    *device = device_handle(card);
    return NVML_SUCCESS;
}

static nvmlReturn_t by_index(uint index, nvmlDevice_t *device)
{
    NEED_ARGUMENT(device && index < visible_count());
    return give_card(visible_card(index), device);
}

API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(uint index, nvmlDevice_t *device)
{
    NEED(state_ready(), NVML_ERROR_UNINITIALIZED);
    return IN_ONE_FILE(by_index(index, device));
}

API nvmlReturn_t nvmlDeviceGetHandleByIndex(uint index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static nvmlReturn_t find_text(const char *text, size_t offset, nvmlDevice_t *device)
{
    for (uint i = 0; i < visible_count(); i++)
        if (text_equal((const char *)state_identity(visible_card(i)) + offset, text))
            return give_card(visible_card(i), device);
    return NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t by_text(const char *text, size_t offset, nvmlDevice_t *device)
{
    NEED(state_ready(), NVML_ERROR_UNINITIALIZED);
    NEED_ARGUMENT(text && device);
    return IN_ONE_FILE(find_text(text, offset, device));
}

API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    nvmlReturn_t result = by_text(uuid, offsetof(struct identity, uuid), device);
    return result == NVML_ERROR_NOT_FOUND ? mig_by_uuid(uuid, device) : result;
}

API nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    return by_text(serial, offsetof(struct identity, serial), device);
}

API nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_v1_t *uuid, nvmlDevice_t *device)
{
    enum { AS_TEXT = 1, AS_BYTES = 2 };
    NEED_ARGUMENT(uuid);
    NEED_VERSION(uuid, nvmlUUID_v1_t, 1);
    if (uuid->type == AS_TEXT)
        return nvmlDeviceGetHandleByUUID(uuid->value.str, device);
    NEED_ARGUMENT(uuid->type == AS_BYTES);
    char text[64];
    size_t length = text_copy(text, sizeof text, "GPU-");
    for (uint i = 0; i < 16; i++)
        length += text_format(text + length, sizeof text - length,
                              i == 4 || i == 6 || i == 8 || i == 10 ? "-%2x" : "%2x",
                              uuid->value.bytes[i]);
    return nvmlDeviceGetHandleByUUID(text, device);
}

/* 0000:1B:00.0, 00000000:1b:00.0, or without the domain. */
static bool read_bus_id(const char *text, uint64_t part[4])
{
    part[0] = 0;
    const char *at = text_number(text, 16, &part[1]);
    if (!at || *at++ != ':' || !(at = text_number(at, 16, &part[2])))
        return false;
    if (*at == ':') {
        part[0] = part[1];
        part[1] = part[2];
        if (!(at = text_number(at + 1, 16, &part[2])))
            return false;
    }
    part[3] = 0;
    return *at == 0 || (*at == '.' && (at = text_number(at + 1, 16, &part[3])) && *at == 0);
}

static nvmlReturn_t by_place(const uint64_t part[4], nvmlDevice_t *device)
{
    for (uint i = 0; i < visible_count(); i++) {
        const struct identity *each = state_identity(visible_card(i));
        if (each->pci_domain == part[0] && each->pci_bus == part[1] &&
            each->pci_device == part[2] && each->pci_function == part[3])
            return give_card(visible_card(i), device);
    }
    return NVML_ERROR_NOT_FOUND;
}

API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    uint64_t part[4];
    NEED(state_ready(), NVML_ERROR_UNINITIALIZED);
    NEED_ARGUMENT(bus_id && device && read_bus_id(bus_id, part));
    return IN_ONE_FILE(by_place(part, device));
}

API nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}
