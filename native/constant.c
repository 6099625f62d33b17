/* What is the same for every card here, and what none of them has: displays, virtual machines,
 * sessions. */
#include "state.h"

/* NVML's numbers of generations. */
enum { TURING = 6, AMPERE = 7, BLACKWELL = 10 };

/* What only cards from some generation on know. */
static nvmlReturn_t since(nvmlDevice_t device, uint architecture)
{
    uint card;
    TRY(card_of(device, &card));
    return state_identity(card)->architecture >= architecture ? NVML_SUCCESS
                                                              : NVML_ERROR_NOT_SUPPORTED;
}

/* Writes one number that never changes. */
static nvmlReturn_t give(nvmlDevice_t device, uint *to, uint value)
{
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(to);
    *to = value;
    return NVML_SUCCESS;
}

#define CONSTANT(name, value) \
    API nvmlReturn_t name(nvmlDevice_t device, uint *to) { return give(device, to, value); }
#define CONSTANT_PAIR(name, one_value, other_value) \
    API nvmlReturn_t name(nvmlDevice_t device, uint *one, uint *other) \
    { \
        TRY(give(device, one, one_value)); \
        return give(device, other, other_value); \
    }

CONSTANT(nvmlDeviceGetDisplayActive, 0)
CONSTANT(nvmlDeviceGetBusType, 2)     /* PCIe */
CONSTANT(nvmlDeviceGetPowerSource, 0) /* the mains */
CONSTANT(nvmlDeviceGetAdaptiveClockInfoStatus, 1)
CONSTANT(nvmlDeviceGetVirtualizationMode, 0)
CONSTANT(nvmlDeviceGetGpcClkVfOffset, 0)
CONSTANT(nvmlDeviceGetMemClkVfOffset, 0)
CONSTANT(nvmlGpmQueryIfStreamingEnabled, 0)
CONSTANT_PAIR(nvmlDeviceGetGpcClkMinMaxVfOffset, 0, 0)
CONSTANT_PAIR(nvmlDeviceGetMemClkMinMaxVfOffset, 0, 0)

API nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, uint *mode)
{
    uint card;
    TRY(card_of(device, &card));
    return give(device, mode, (state_identity(card)->flags & FLAG_DISPLAY) != 0);
}

API nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device)
{
    uint nothing;
    return give(device, &nothing, 0);
}

API nvmlReturn_t nvmlDeviceGetAPIRestriction(nvmlDevice_t device, uint which, uint *restricted)
{
    NEED_ARGUMENT(which < 2);
    return give(device, restricted, 1);
}

API nvmlReturn_t nvmlDeviceGetEncoderCapacity(nvmlDevice_t device, uint codec, uint *percent)
{
    NEED_ARGUMENT(codec < 3);
    return give(device, percent, 100);
}

API nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, uint *sessions, uint *rate,
                                           uint *latency)
{
    TRY(give(device, sessions, 0));
    TRY(give(device, rate, 0));
    return give(device, latency, 0);
}

/* Nobody has a session; the records of those who would aren't written. */
API nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, uint *count, void *sessions)
{
    (void)sessions;
    return give(device, count, 0);
}

API nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_t device, uint *count, void *sessions)
{
    (void)sessions;
    return give(device, count, 0);
}

API nvmlReturn_t nvmlDeviceGetFBCStats(nvmlDevice_t device, uint stats[3])
{
    NEED_ARGUMENT(stats);
    for (uint i = 0; i < 3; i++)
        TRY(give(device, &stats[i], 0));
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetClkMonStatus(nvmlDevice_t device, nvmlClkMonStatus_t *to)
{
    NEED_ARGUMENT(to);
    TRY(since(device, AMPERE));
    TRY(give(device, &to->bGlobalStatus, 0));
    return give(device, &to->clkMonListSize, 0);
}

API nvmlReturn_t nvmlDeviceGetClockOffsets(nvmlDevice_t device, nvmlClockOffset_v1_t *to)
{
    uint none;
    NEED_ARGUMENT(to);
    NEED_VERSION(to, nvmlClockOffset_v1_t, 1);
    NEED_ARGUMENT(to->type < CLOCK_COUNT && to->pstate <= 15);
    TRY(give(device, &none, 0));
    to->clockOffsetMHz = to->minClockOffsetMHz = to->maxClockOffsetMHz = 0;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_t device, nvmlC2cModeInfo_v1_t *to)
{
    NEED_ARGUMENT(to);
    return give(device, &to->isC2cEnabled, 0);
}

API nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, nvmlDeviceAddressingMode_v1_t *to)
{
    enum { HMM = 1 };
    NEED_ARGUMENT(to);
    NEED_VERSION(to, nvmlDeviceAddressingMode_v1_t, 1);
    TRY(since(device, TURING));
    return give(device, &to->value, HMM);
}

API nvmlReturn_t nvmlDeviceGetDramEncryptionMode(nvmlDevice_t device,
                                                 nvmlDramEncryptionInfo_v1_t *now,
                                                 nvmlDramEncryptionInfo_v1_t *pending)
{
    NEED_ARGUMENT(now && pending);
    NEED_VERSION(now, nvmlDramEncryptionInfo_v1_t, 1);
    NEED_VERSION(pending, nvmlDramEncryptionInfo_v1_t, 1);
    TRY(since(device, BLACKWELL));
    TRY(give(device, &now->encryptionState, 0));
    return give(device, &pending->encryptionState, 0);
}

API nvmlReturn_t nvmlDeviceGetCapabilities(nvmlDevice_t device, nvmlDeviceCapabilities_v1_t *to)
{
    NEED_ARGUMENT(to);
    NEED_VERSION(to, nvmlDeviceCapabilities_v1_t, 1);
    return give(device, &to->capMask, 0);
}

#define HASH_OF_NOTHING 0xcbf29ce484222325ull
static uint64_t hash(const char *text, uint64_t before)
{
    for (; *text; text++)
        before = (before ^ (unsigned char)*text) * 0x100000001b3ull;
    return before;
}

API nvmlReturn_t nvmlDeviceGetPdi(nvmlDevice_t device, nvmlPdi_v1_t *to)
{
    uint card;
    NEED_ARGUMENT(to);
    NEED_VERSION(to, nvmlPdi_v1_t, 1);
    TRY(card_of(device, &card));
    /* Any number that is the card's own for ever: its UUID's, in short. */
    to->value = hash(state_identity(card)->uuid, HASH_OF_NOTHING);
    return NVML_SUCCESS;
}

/* A sum of what this InfoROM holds: its versions, and which board it is of. */
API nvmlReturn_t nvmlDeviceGetInforomConfigurationChecksum(nvmlDevice_t device, uint *checksum)
{
    uint card;
    NEED_ARGUMENT(checksum);
    TRY(card_of(device, &card));
    const struct identity *identity = state_identity(card);
    const char *held[] = {identity->inforom_image, identity->inforom_oem, identity->inforom_ecc,
                          identity->inforom_power, identity->board_part_number, identity->serial};
    uint64_t sum = HASH_OF_NOTHING;
    for (uint i = 0; i < COUNT_OF(held); i++)
        sum = hash(held[i], sum);
    *checksum = (uint)(sum ^ sum >> 32);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t device, nvmlPlatformInfo_t *to)
{
    uint card;
    NEED_ARGUMENT(to);
    NEED(to->version == VERSION_OF(nvmlPlatformInfo_t, 1) ||
             to->version == VERSION_OF(nvmlPlatformInfo_t, 2),
         OTHERWISE(NVML_ERROR_ARGUMENT_VERSION_MISMATCH));
    TRY(since(device, BLACKWELL));
    TRY(card_of(device, &card));
    *to = (nvmlPlatformInfo_t){.version = to->version,
                               .moduleId = (unsigned char)state_identity(card)->module_id};
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetHostname_v1(nvmlDevice_t device, nvmlHostname_v1_t *to)
{
    NEED_ARGUMENT(to);
    TRY(since(device, BLACKWELL));
    sys_hostname(to->value, sizeof to->value);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetLastBBXFlushTime(nvmlDevice_t device, ullong *timestamp,
                                               unsigned long *duration)
{
    uint card;
    NEED_ARGUMENT(timestamp && duration);
    TRY(card_of(device, &card));
    *timestamp = state_header()->started;
    *duration = 0;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetBBXTimeData_v1(nvmlDevice_t device, uint *seconds)
{
    uint card;
    uint64_t now;
    NEED_ARGUMENT(seconds);
    TRY(card_of(device, &card));
    TRY(LIVE_FIELD(card, timestamp, &now));
    *seconds = (uint)((now - state_header()->started) / 1000000);
    return NVML_SUCCESS;
}

/* Confidential computing is off: all memory is unprotected. */
API nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t device, ullong to[2])
{
    uint card;
    NEED_ARGUMENT(to);
    TRY(since(device, AMPERE));
    TRY(card_of(device, &card));
    to[0] = 0;
    to[1] = state_identity(card)->memory_total / 1024;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t device, nvmlMemory_t *to)
{
    NEED_ARGUMENT(to);
    TRY(since(device, AMPERE));
    *to = (nvmlMemory_t){0, 0, 0};
    return NVML_SUCCESS;
}

/* A licence that nobody needs, in all versions of its record: they begin alike. */
#define LICENCE(name) \
    API nvmlReturn_t name(nvmlDevice_t device, uint to[2]) \
    { \
        NEED_ARGUMENT(to); \
        TRY(give(device, &to[0], 0)); \
        return give(device, &to[1], 0); \
    }
LICENCE(nvmlDeviceGetGridLicensableFeatures)
LICENCE(nvmlDeviceGetGridLicensableFeatures_v2)
LICENCE(nvmlDeviceGetGridLicensableFeatures_v3)
LICENCE(nvmlDeviceGetGridLicensableFeatures_v4)

/* What there is none of on the node. */
static nvmlReturn_t none(uint *count)
{
    NEED(state_ready(), NVML_ERROR_UNINITIALIZED);
    NEED_ARGUMENT(count);
    *count = 0;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlUnitGetCount(uint *count) { return none(count); }
API nvmlReturn_t nvmlGetExcludedDeviceCount(uint *count) { return none(count); }
API nvmlReturn_t nvmlGetBlacklistDeviceCount(uint *count) { return none(count); }

API nvmlReturn_t nvmlSystemGetHicVersion(uint *count, void *entries)
{
    (void)entries;
    return none(count);
}

static nvmlReturn_t no_such(void)
{
    return OTHERWISE(NVML_ERROR_INVALID_ARGUMENT);
}

#define NO_SUCH(name) \
    API nvmlReturn_t name(uint index, void *to) \
    { \
        (void)index; \
        (void)to; \
        return no_such(); \
    }
NO_SUCH(nvmlUnitGetHandleByIndex)
NO_SUCH(nvmlGetExcludedDeviceInfoByIndex)
NO_SUCH(nvmlGetBlacklistDeviceInfoByIndex)
