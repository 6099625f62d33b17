/* Getters of one number or two that stand in the state as they are: a line each. */
#include "state.h"

enum part { IDENTITY, LIVE };

/* Reads a number of 4 or 8 bytes, or two of 4, from a card that has certain features. */
static nvmlReturn_t find(nvmlDevice_t device, enum part part, size_t offset, size_t size,
                         uint needs, void *to)
{
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(to);
    const struct identity *identity = state_identity(card);
    NEED((identity->flags & needs) == needs, NVML_ERROR_NOT_SUPPORTED);
    if (part == LIVE)
        return live_copy(card, offset, to, size);
    *(uint32_t *)to = *(const uint32_t *)((const char *)identity + offset);
    return NVML_SUCCESS;
}

static nvmlReturn_t get(nvmlDevice_t device, enum part part, size_t offset, size_t size, uint needs,
                        void *to)
{
    return IN_ONE_FILE(find(device, part, offset, size, needs, to));
}

nvmlReturn_t live_of(nvmlDevice_t device, size_t offset, void *to, size_t size)
{
    return get(device, LIVE, offset, size, 0, to);
}

static nvmlReturn_t find_use(nvmlDevice_t device, size_t offset, void *to, size_t size)
{
    uint card;
    TRY(uncut_card_of(device, &card));
    return live_copy(card, offset, to, size);
}

/* How busy a card is, unless it is cut. */
static nvmlReturn_t use_of(nvmlDevice_t device, size_t offset, void *to, size_t size)
{
    return IN_ONE_FILE(find_use(device, offset, to, size));
}

#define IDENTITY_NUMBER(name, field, needs) \
    API nvmlReturn_t name(nvmlDevice_t device, uint *value) \
    { \
        return get(device, IDENTITY, offsetof(struct identity, field), 4, needs, value); \
    }
#define LIVE_NUMBER(name, type, field, needs) \
    API nvmlReturn_t name(nvmlDevice_t device, type *value) \
    { \
        _Static_assert(sizeof(type) == sizeof((struct live *)0)->field, #name); \
        return get(device, LIVE, offsetof(struct live, field), sizeof(type), needs, value); \
    }
/* Two that stand side by side. */
#define LIVE_PAIR(name, one_field, other_field, needs) \
    API nvmlReturn_t name(nvmlDevice_t device, uint *one, uint *other) \
    { \
        uint pair[2]; \
        _Static_assert(offsetof(struct live, other_field) == offsetof(struct live, one_field) + 4, \
                       #name); \
        NEED_ARGUMENT(one && other); \
        TRY(get(device, LIVE, offsetof(struct live, one_field), sizeof pair, needs, pair)); \
        *one = pair[0]; \
        *other = pair[1]; \
        return NVML_SUCCESS; \
    }
#define IDENTITY_PAIR(name, one_field, other_field, needs) \
    API nvmlReturn_t name(nvmlDevice_t device, uint *one, uint *other) \
    { \
        NEED_ARGUMENT(one && other); \
        TRY(get(device, IDENTITY, offsetof(struct identity, one_field), 4, needs, one)); \
        return get(device, IDENTITY, offsetof(struct identity, other_field), 4, needs, other); \
    }
/* Utilization of an engine, and how often it is looked at. */
#define ENGINE(name, field) \
    API nvmlReturn_t name(nvmlDevice_t device, uint *percent, uint *period) \
    { \
        NEED_ARGUMENT(percent && period); \
        TRY(use_of(device, offsetof(struct live, field), percent, sizeof *percent)); \
        *period = 167000; \
        return NVML_SUCCESS; \
    }

IDENTITY_NUMBER(nvmlDeviceGetBrand, brand, 0)
IDENTITY_NUMBER(nvmlDeviceGetArchitecture, architecture, 0)
IDENTITY_NUMBER(nvmlDeviceGetBoardId, board_id, 0)
IDENTITY_NUMBER(nvmlDeviceGetModuleId, module_id, 0)
IDENTITY_NUMBER(nvmlDeviceGetNumGpuCores, cores, 0)
IDENTITY_NUMBER(nvmlDeviceGetMemoryBusWidth, memory_bus_width, 0)
IDENTITY_NUMBER(nvmlDeviceGetIrqNum, irq, 0)
IDENTITY_NUMBER(nvmlDeviceGetNumFans, fans, 0)
IDENTITY_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, pcie_generation_most, 0)
IDENTITY_NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, pcie_generation_card, 0)
IDENTITY_NUMBER(nvmlDeviceGetMaxPcieLinkWidth, pcie_width_most, 0)
IDENTITY_NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, power_limit_default, 0)
IDENTITY_PAIR(nvmlDeviceGetPowerManagementLimitConstraints, power_limit_least, power_limit_most, 0)
IDENTITY_PAIR(nvmlDeviceGetCudaComputeCapability, compute_major, compute_minor, 0)
IDENTITY_PAIR(nvmlDeviceGetMinMaxFanSpeed, fan_least, fan_most, FLAG_FAN)

LIVE_NUMBER(nvmlDeviceGetPowerUsage, uint, power, 0)
LIVE_NUMBER(nvmlDeviceGetPowerManagementLimit, uint, power_limit, 0)
LIVE_NUMBER(nvmlDeviceGetEnforcedPowerLimit, uint, power_limit_enforced, 0)
LIVE_NUMBER(nvmlDeviceGetTotalEnergyConsumption, ullong, energy, 0)
LIVE_NUMBER(nvmlDeviceGetFanSpeed, uint, fan, FLAG_FAN)
LIVE_NUMBER(nvmlDeviceGetPerformanceState, uint, performance_state, 0)
LIVE_NUMBER(nvmlDeviceGetPowerState, uint, performance_state, 0)
LIVE_NUMBER(nvmlDeviceGetCurrentClocksEventReasons, ullong, clock_reasons, 0)
LIVE_NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, ullong, clock_reasons, 0)
LIVE_NUMBER(nvmlDeviceGetPersistenceMode, uint, persistence_mode, 0)
LIVE_NUMBER(nvmlDeviceGetComputeMode, uint, compute_mode, 0)
LIVE_NUMBER(nvmlDeviceGetAccountingMode, uint, accounting_mode, 0)
LIVE_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, uint, pcie_generation, 0)
LIVE_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, uint, pcie_width, 0)
LIVE_NUMBER(nvmlDeviceGetPcieReplayCounter, uint, pcie_replays, 0)
LIVE_PAIR(nvmlDeviceGetEccMode, ecc_mode, ecc_mode_pending, FLAG_ECC)
LIVE_PAIR(nvmlDeviceGetMigMode, mig_mode, mig_mode_pending, FLAG_MIG)

ENGINE(nvmlDeviceGetEncoderUtilization, encoder)
ENGINE(nvmlDeviceGetDecoderUtilization, decoder)
ENGINE(nvmlDeviceGetJpgUtilization, jpeg)
ENGINE(nvmlDeviceGetOfaUtilization, ofa)

API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *use)
{
    NEED_ARGUMENT(use);
    /* The two stand side by side. */
    _Static_assert(offsetof(struct live, memory) == offsetof(struct live, gpu) + 4, "utilization");
    return use_of(device, offsetof(struct live, gpu), use, sizeof *use);
}
