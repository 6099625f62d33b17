#include "fields.h"

#include "../state.h"

const struct field *field_named(const char *name, size_t length)
{
    for (uint i = 0; i < field_count; i++) {
        const struct field *each = &fields[i];
        if (text_equal_part(each->name, name, length) ||
            (each->alias && text_equal_part(each->alias, name, length)))
            return each;
    }
    return NULL;
}

static nvmlReturn_t read_pci(nvmlDevice_t device, uint part, uint64_t *value)
{
    nvmlPciInfoExt_v1_t pci = {.version = VERSION_OF(nvmlPciInfoExt_v1_t, 1)};
    TRY(nvmlDeviceGetPciInfoExt(device, &pci));
    const uint parts[] = {pci.domain,         pci.bus,       pci.device,  pci.pciDeviceId,
                          pci.pciSubSystemId, pci.baseClass, pci.subClass};
    *value = parts[part];
    return NVML_SUCCESS;
}

static nvmlReturn_t read_memory(nvmlDevice_t device, uint part, uint64_t *value)
{
    nvmlMemory_v2_t memory = {.version = VERSION_OF(nvmlMemory_v2_t, 2)};
    TRY(nvmlDeviceGetMemoryInfo_v2(device, &memory));
    const uint64_t parts[] = {memory.total, memory.reserved, memory.free, memory.used};
    *value = parts[part];
    return NVML_SUCCESS;
}

static nvmlReturn_t read_bar1(nvmlDevice_t device, uint part, uint64_t *value)
{
    nvmlBAR1Memory_t memory;
    TRY(nvmlDeviceGetBAR1MemoryInfo(device, &memory));
    const uint64_t parts[] = {memory.bar1Total, memory.bar1Free, memory.bar1Used};
    *value = parts[part];
    return NVML_SUCCESS;
}

static nvmlReturn_t read_protected(nvmlDevice_t device, uint part, uint64_t *value)
{
    nvmlMemory_t memory;
    TRY(nvmlDeviceGetConfComputeProtectedMemoryUsage(device, &memory));
    const uint64_t parts[] = {memory.total, memory.free, memory.used};
    *value = parts[part];
    return NVML_SUCCESS;
}

static nvmlReturn_t read_ecc(nvmlDevice_t device, uint argument, uint64_t *value)
{
    enum { TOTAL = 8 };
    ullong count;
    uint uncorrected = argument & 1, ever = argument >> 1 & 1, location = argument >> 2;
    if (location == TOTAL)
        TRY(nvmlDeviceGetTotalEccErrors(device, uncorrected, ever, &count));
    else
        TRY(nvmlDeviceGetMemoryErrorCounter(device, uncorrected, ever, location, &count));
    *value = count;
    return NVML_SUCCESS;
}

static nvmlReturn_t read_sram(nvmlDevice_t device, uint part, uint64_t *value)
{
    nvmlEccSramErrorStatus_v1_t status = {.version = VERSION_OF(nvmlEccSramErrorStatus_v1_t, 1)};
    TRY(nvmlDeviceGetSramEccErrorStatus(device, &status));
    const uint64_t parts[] = {
        status.volatileUncParity,     status.volatileUncSecDed,     status.aggregateUncParity,
        status.aggregateUncSecDed,    status.bThresholdExceeded,    status.aggregateUncBucket[0],
        status.aggregateUncBucket[1], status.aggregateUncBucket[2], status.aggregateUncBucket[3],
        status.aggregateUncBucket[4], status.volatileCor,           status.aggregateCor};
    *value = parts[part];
    return NVML_SUCCESS;
}

static nvmlReturn_t read_by_id(nvmlDevice_t device, uint id, uint64_t *value)
{
    nvmlFieldValue_t found = {.fieldId = id};
    TRY(nvmlDeviceGetFieldValues(device, 1, &found));
    *value = found.value.ullVal;
    return found.nvmlReturn;
}

static nvmlReturn_t read_retired(nvmlDevice_t device, uint cause, uint64_t *value)
{
    uint count = 0;
    nvmlReturn_t result = nvmlDeviceGetRetiredPages(device, cause, &count, NULL);
    *value = count;
    return result == NVML_ERROR_INSUFFICIENT_SIZE ? NVML_SUCCESS : result;
}

/* Of those that give several numbers at once, one. */
static nvmlReturn_t read_part(const struct field *field, nvmlDevice_t device, uint *value)
{
    uint parts[5] = {0};
    switch (field->source) {
    case FIRST:
    case SECOND: {
        TRY(field->ask.pair(device, &parts[0], &parts[1]));
        *value = parts[field->source == SECOND];
        return NVML_SUCCESS;
    }
    case UTILIZATION: {
        nvmlUtilization_t use;
        TRY(nvmlDeviceGetUtilizationRates(device, &use));
        *value = field->argument ? use.memory : use.gpu;
        return NVML_SUCCESS;
    }
    case ENCODER: TRY(nvmlDeviceGetEncoderStats(device, &parts[0], &parts[1], &parts[2])); break;
    case FRAME_BUFFER_CAPTURE: TRY(nvmlDeviceGetFBCStats(device, parts)); break;
    case REMAPPED:
        TRY(nvmlDeviceGetRemappedRows(device, &parts[0], &parts[1], &parts[2], &parts[3]));
        break;
    case HISTOGRAM: {
        nvmlRowRemapperHistogramValues_t banks;
        TRY(nvmlDeviceGetRowRemapperHistogram(device, &banks));
        const uint each[] = {banks.max, banks.high, banks.partial, banks.low, banks.none};
        *value = each[field->argument];
        return NVML_SUCCESS;
    }
    default: return NVML_ERROR_NOT_SUPPORTED;
    }
    *value = parts[field->argument];
    return NVML_SUCCESS;
}

static nvmlReturn_t read_number(const struct field *field, nvmlDevice_t device, uint64_t *value)
{
    uint number = 0;
    ullong wide = 0;
    nvmlReturn_t result;
    switch (field->source) {
    case NUMBER: result = field->ask.number(device, &number); break;
    case WHICH: result = field->ask.which(device, field->argument, &number); break;
    case WIDE:
        result = field->ask.wide(device, &wide);
        *value = wide;
        return result;
    case REASON:
        result = nvmlDeviceGetCurrentClocksEventReasons(device, &wide);
        *value = (wide & field->argument) != 0;
        return result;
    case BY_ID: return read_by_id(device, field->argument, value);
    case PCI: return read_pci(device, field->argument, value);
    case MEMORY: return read_memory(device, field->argument, value);
    case PROTECTED: return read_protected(device, field->argument, value);
    case BAR1: return read_bar1(device, field->argument, value);
    case ECC: return read_ecc(device, field->argument, value);
    case SRAM: return read_sram(device, field->argument, value);
    case RETIRED: return read_retired(device, field->argument, value);
    default: result = read_part(field, device, &number); break;
    }
    *value = number;
    return result;
}

/* Words for numbers from 0 on; what has no word is unknown. */
static const char *const words[][18] = {
    [SWITCH] = {"Disabled", "Enabled"},
    [ON_OFF] = {"Off", "On"},
    [YES_NO] = {"No", "Yes"},
    [ACTIVE] = {"Not Active", "Active"},
    [COMPUTE_MODE] = {"Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"},
    [OPERATION_MODE] = {"All On", "Compute", "Low Double Precision"},
    [BRAND] = {"Unknown", "Quadro", "Tesla", "NVS", "GRID", "GeForce", "Titan", "NVIDIA vApps",
               "NVIDIA VPC", "NVIDIA VCS", "NVIDIA VWS", "NVIDIA Cloud Gaming", "Quadro RTX",
               "NVIDIA RTX", "NVIDIA", "GeForce RTX", "TITAN RTX"},
    [ARCHITECTURE] = {"Unknown", "Unknown", "Kepler", "Maxwell", "Pascal", "Volta", "Turing",
                      "Ampere", "Ada Lovelace", "Hopper", "Blackwell"},
    [VIRTUALIZATION] = {"None", "Pass-Through", "VGPU", "Host VGPU", "Host VSGA"},
};

static void write_number(enum look look, uint64_t value, char *to)
{
    if (look < COUNT_OF(words) && words[look][0]) {
        const char *word = value < COUNT_OF(words[look]) ? words[look][value] : NULL;
        text_copy(to, FIELD_SIZE, word ? word : "Unknown");
        return;
    }
    switch (look) {
    case SIGNED: text_print(to, FIELD_SIZE, "%d", (int)value); return;
    case WATTS:
        value = (value + 5) / 10;
        text_print(to, FIELD_SIZE, "%u.%02u", (uint)(value / 100), (uint)(value % 100));
        return;
    case MIB: text_print(to, FIELD_SIZE, "%llu", (ullong)(value >> 20)); return;
    case STATE: text_print(to, FIELD_SIZE, "P%u", (uint)value); return;
    case LANES: text_print(to, FIELD_SIZE, "%ux", (uint)value); return;
    case HEX_SMALL: text_print(to, FIELD_SIZE, "0x%x", (uint)value); return;
    case HEX1: text_print(to, FIELD_SIZE, "0x%llX", (ullong)value); return;
    case HEX2: text_print(to, FIELD_SIZE, "0x%02llX", (ullong)value); return;
    case HEX4: text_print(to, FIELD_SIZE, "0x%04llX", (ullong)value); return;
    case HEX8: text_print(to, FIELD_SIZE, "0x%08llX", (ullong)value); return;
    case HEX16: text_print(to, FIELD_SIZE, "0x%016llX", (ullong)value); return;
    default: text_print(to, FIELD_SIZE, "%llu", (ullong)value); return;
    }
}

static nvmlReturn_t read(const struct field *field, nvmlDevice_t device, char *to)
{
    switch (field->source) {
    case ABSENT: return NVML_ERROR_NOT_SUPPORTED;
    case SPECIAL: return field->ask.special(device, to);
    case TEXT: return field->ask.text(device, to, FIELD_SIZE);
    default: break;
    }
    uint64_t value = 0;
    TRY(read_number(field, device, &value));
    write_number(field->look, value, to);
    return NVML_SUCCESS;
}

nvmlReturn_t field_read(const struct field *field, nvmlDevice_t device, char *to)
{
    nvmlReturn_t result = read(field, device, to);
    if (result == NVML_ERROR_NOT_SUPPORTED)
        text_copy(to, FIELD_SIZE, "N/A");
    else if (result != NVML_SUCCESS)
        text_copy(to, FIELD_SIZE, nvmlErrorString(result));
    return result;
}

nvmlReturn_t field_show(const char *name, nvmlDevice_t device, char *to)
{
    const struct field *field = field_named(name, text_length(name));
    nvmlReturn_t result = field_read(field, device, to);
    size_t length = text_length(to);
    if (result == NVML_SUCCESS && field->unit)
        text_print(to + length, FIELD_SIZE - length, " %s", field->unit);
    return result;
}
