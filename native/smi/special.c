/* Fields with a function of their own. */
#include "../state.h"
#include "fields.h"

nvmlReturn_t show_timestamp(nvmlDevice_t device, char *to)
{
    (void)device;
    text_moment_short(to, FIELD_SIZE, sys_realtime() / 1000);
    return NVML_SUCCESS;
}

nvmlReturn_t show_moment(nvmlDevice_t device, char *to)
{
    (void)device;
    text_moment(to, FIELD_SIZE, sys_realtime() / 1000);
    return NVML_SUCCESS;
}

nvmlReturn_t show_cuda_version(nvmlDevice_t device, char *to)
{
    int version;
    (void)device;
    TRY(nvmlSystemGetCudaDriverVersion_v2(&version));
    text_print(to, FIELD_SIZE, "%d.%d", version / 1000, version % 1000 / 10);
    return NVML_SUCCESS;
}

nvmlReturn_t show_driver_version(nvmlDevice_t device, char *to)
{
    (void)device;
    return nvmlSystemGetDriverVersion(to, FIELD_SIZE);
}

nvmlReturn_t show_count(nvmlDevice_t device, char *to)
{
    uint count;
    (void)device;
    TRY(nvmlDeviceGetCount_v2(&count));
    text_print(to, FIELD_SIZE, "%u", count);
    return NVML_SUCCESS;
}

nvmlReturn_t show_bus_id(nvmlDevice_t device, char *to)
{
    nvmlPciInfoExt_v1_t pci = {.version = VERSION_OF(nvmlPciInfoExt_v1_t, 1)};
    TRY(nvmlDeviceGetPciInfoExt(device, &pci));
    text_copy(to, FIELD_SIZE, pci.busId);
    return NVML_SUCCESS;
}

nvmlReturn_t show_compute_capability(nvmlDevice_t device, char *to)
{
    uint major, minor;
    TRY(nvmlDeviceGetCudaComputeCapability(device, &major, &minor));
    text_print(to, FIELD_SIZE, "%u.%u", major, minor);
    return NVML_SUCCESS;
}

nvmlReturn_t show_margin(nvmlDevice_t device, char *to)
{
    nvmlMarginTemperature_v1_t margin = {.version = VERSION_OF(nvmlMarginTemperature_v1_t, 1)};
    TRY(nvmlDeviceGetMarginTemperature(device, &margin));
    text_print(to, FIELD_SIZE, "%d", margin.marginTemperature);
    return NVML_SUCCESS;
}

nvmlReturn_t show_addressing_mode(nvmlDevice_t device, char *to)
{
    static const char *const modes[] = {"None", "HMM", "ATS"};
    nvmlDeviceAddressingMode_v1_t mode = {.version = VERSION_OF(nvmlDeviceAddressingMode_v1_t, 1)};
    TRY(nvmlDeviceGetAddressingMode(device, &mode));
    text_copy(to, FIELD_SIZE, mode.value < COUNT_OF(modes) ? modes[mode.value] : "Unknown");
    return NVML_SUCCESS;
}

nvmlReturn_t show_c2c_mode(nvmlDevice_t device, char *to)
{
    nvmlC2cModeInfo_v1_t mode;
    TRY(nvmlDeviceGetC2cModeInfoV(device, &mode));
    text_copy(to, FIELD_SIZE, mode.isC2cEnabled ? "Enabled" : "Disabled");
    return NVML_SUCCESS;
}

/* A card that is in no fabric shows nothing of it. */
static nvmlReturn_t fabric_of(nvmlDevice_t device, nvmlGpuFabricInfo_v2_t *fabric)
{
    *fabric = (nvmlGpuFabricInfo_v2_t){.version = VERSION_OF(nvmlGpuFabricInfo_v2_t, 2)};
    TRY(nvmlDeviceGetGpuFabricInfoV(device, fabric));
    NEED(fabric->state != FABRIC_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
    return NVML_SUCCESS;
}

nvmlReturn_t show_fabric_state(nvmlDevice_t device, char *to)
{
    static const char *const states[] = {"N/A", "Not Started", "In Progress", "Completed"};
    nvmlGpuFabricInfo_v2_t fabric;
    TRY(fabric_of(device, &fabric));
    text_copy(to, FIELD_SIZE, fabric.state < COUNT_OF(states) ? states[fabric.state] : "Unknown");
    return NVML_SUCCESS;
}

nvmlReturn_t show_fabric_status(nvmlDevice_t device, char *to)
{
    nvmlGpuFabricInfo_v2_t fabric;
    TRY(fabric_of(device, &fabric));
    text_copy(to, FIELD_SIZE, nvmlErrorString((nvmlReturn_t)fabric.status));
    return NVML_SUCCESS;
}

nvmlReturn_t show_clique(nvmlDevice_t device, char *to)
{
    nvmlGpuFabricInfo_v2_t fabric;
    TRY(fabric_of(device, &fabric));
    text_print(to, FIELD_SIZE, "%u", fabric.cliqueId);
    return NVML_SUCCESS;
}

nvmlReturn_t show_cluster(nvmlDevice_t device, char *to)
{
    nvmlGpuFabricInfo_v2_t fabric;
    TRY(fabric_of(device, &fabric));
    size_t length = 0;
    for (uint i = 0; i < sizeof fabric.clusterUuid; i++)
        length += text_format(to + length, FIELD_SIZE - length,
                              i == 4 || i == 6 || i == 8 || i == 10 ? "-%2x" : "%2x",
                              fabric.clusterUuid[i]);
    return NVML_SUCCESS;
}

nvmlReturn_t show_gsp_firmware(nvmlDevice_t device, char *to)
{
    return nvmlDeviceGetGspFirmwareVersion(device, to);
}

nvmlReturn_t show_inforom_oem(nvmlDevice_t device, char *to)
{
    return nvmlDeviceGetInforomVersion(device, 0, to, FIELD_SIZE);
}

nvmlReturn_t show_inforom_ecc(nvmlDevice_t device, char *to)
{
    return nvmlDeviceGetInforomVersion(device, 1, to, FIELD_SIZE);
}

nvmlReturn_t show_inforom_power(nvmlDevice_t device, char *to)
{
    return nvmlDeviceGetInforomVersion(device, 2, to, FIELD_SIZE);
}

nvmlReturn_t show_flush_time(nvmlDevice_t device, char *to)
{
    ullong moment;
    unsigned long duration;
    TRY(nvmlDeviceGetLastBBXFlushTime(device, &moment, &duration));
    text_moment_short(to, FIELD_SIZE, moment);
    return NVML_SUCCESS;
}

nvmlReturn_t show_flush_duration(nvmlDevice_t device, char *to)
{
    ullong moment;
    unsigned long duration;
    TRY(nvmlDeviceGetLastBBXFlushTime(device, &moment, &duration));
    text_print(to, FIELD_SIZE, "%llu", (ullong)duration);
    return NVML_SUCCESS;
}
