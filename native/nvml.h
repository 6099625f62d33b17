/*
 * The part of NVML's interface that this library implements: its codes, numbers and records, as
 * version 13 has them. Records that changed have a type for each version. tests/driver compares the
 * sizes with those of independent clients.
 */
#ifndef HAMI_MOCK_NVML_H
#define HAMI_MOCK_NVML_H

#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

typedef unsigned int uint;
typedef unsigned long long ullong;

typedef enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_MEMORY = 20,
    NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_UNKNOWN = 999,
} nvmlReturn_t;

/* Handles are addresses that nobody looks behind. */
typedef struct device_handle *nvmlDevice_t;
typedef struct gpu_instance_handle *nvmlGpuInstance_t;
typedef struct compute_instance_handle *nvmlComputeInstance_t;
typedef struct event_set *nvmlEventSet_t;
typedef struct gpm_sample *nvmlGpmSample_t;

/* The version word of a record: its size, and which version it is. */
#define VERSION_OF(type, version) ((uint)(sizeof(type) | (version) << 24))

enum { CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY, CLOCK_VIDEO, CLOCK_COUNT };
enum { CLOCK_CURRENT, CLOCK_TARGET, CLOCK_DEFAULT, CLOCK_BOOST_MOST };
enum {
    TOPOLOGY_INTERNAL = 0,
    TOPOLOGY_SINGLE = 10,
    TOPOLOGY_MULTIPLE = 20,
    TOPOLOGY_HOSTBRIDGE = 30,
    TOPOLOGY_NODE = 40,
    TOPOLOGY_SYSTEM = 50
};
enum { P2P_OK = 0, P2P_NOT_SUPPORTED = 5 };
enum { P2P_READ, P2P_WRITE, P2P_NVLINK, P2P_ATOMICS, P2P_PCI, P2P_UNKNOWN };
enum { VALUE_UINT = 1, VALUE_ULLONG = 3, VALUE_INT = 5 };
enum { EVENT_XID = 0x8, EVENT_ALL = 0xff9f, EVENTS_OFFERED = 0x811f };
enum { FABRIC_NOT_SUPPORTED = 0, FABRIC_COMPLETED = 3, FABRIC_HEALTHY = 1 };

typedef struct {
    char busId[16];
    uint domain, bus, device, pciDeviceId;
} nvmlPciInfo_v1_t;
typedef struct {
    char busId[16];
    uint domain, bus, device, pciDeviceId, pciSubSystemId, reserved[4];
} nvmlPciInfo_v2_t;
typedef struct {
    char busIdLegacy[16];
    uint domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_v3_t;
typedef struct {
    uint version, domain, bus, device, pciDeviceId, pciSubSystemId, baseClass, subClass;
    char busId[32];
} nvmlPciInfoExt_v1_t;

typedef struct {
    uint gpu, memory;
} nvmlUtilization_t;
typedef struct {
    ullong total, free, used;
} nvmlMemory_t;
typedef struct {
    uint version;
    ullong total, reserved, free, used;
} nvmlMemory_v2_t;
typedef struct {
    ullong bar1Total, bar1Free, bar1Used;
} nvmlBAR1Memory_t;

typedef struct {
    uint pid;
    ullong usedGpuMemory;
} nvmlProcessInfo_v1_t;
typedef struct {
    uint pid;
    ullong usedGpuMemory;
    uint gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_v2_t;
typedef struct {
    uint pid;
    ullong usedGpuMemory;
    uint gpuInstanceId, computeInstanceId;
    ullong usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;
typedef struct {
    uint version, mode, numProcArrayEntries;
    nvmlProcessDetail_v1_t *procArray;
} nvmlProcessDetailList_v1_t;
typedef struct {
    uint pid;
    ullong timeStamp;
    uint smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;
typedef struct {
    ullong timeStamp;
    uint pid, smUtil, memUtil, encUtil, decUtil, jpgUtil, ofaUtil;
} nvmlProcessUtilizationInfo_v1_t;
typedef struct {
    uint version, processSamplesCount;
    ullong lastSeenTimeStamp;
    nvmlProcessUtilizationInfo_v1_t *procUtilArray;
} nvmlProcessesUtilizationInfo_v1_t;
typedef struct {
    uint gpuUtilization, memoryUtilization;
    ullong maxMemoryUsage, time, startTime;
    uint isRunning, reserved[5];
} nvmlAccountingStats_t;

typedef struct {
    uint multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount;
    uint sharedJpegCount, sharedOfaCount;
} nvmlDeviceAttributes_v1_t;
typedef struct {
    nvmlDeviceAttributes_v1_t shared;
    uint gpuInstanceSliceCount, computeInstanceSliceCount;
    ullong memorySizeMB;
} nvmlDeviceAttributes_v2_t;

typedef struct {
    uint isC2cEnabled;
} nvmlC2cModeInfo_v1_t;
typedef struct {
    uint version, value;
} nvmlDeviceAddressingMode_v1_t;
typedef struct {
    uint version, bChannelRepairPending, bTpcRepairPending;
} nvmlRepairStatus_v1_t;
typedef struct {
    uint bUnrepairableMemory;
} nvmlUnrepairableMemoryStatus_v1_t;
typedef struct {
    uint max, high, partial, low, none;
} nvmlRowRemapperHistogramValues_t;
typedef struct {
    uint corrActive, corrInactive, uncActive, uncInactive, bPending, bFailureOccurred;
} nvmlRemappedRowsInfo_v2_t;
typedef struct {
    ullong l1Cache, l2Cache, deviceMemory, registerFile;
} nvmlEccErrorCounts_t;
typedef struct {
    uint version;
    ullong aggregateUncParity, aggregateUncSecDed, aggregateCor;
    ullong volatileUncParity, volatileUncSecDed, volatileCor;
    ullong aggregateUncBucket[5];
    uint bThresholdExceeded;
} nvmlEccSramErrorStatus_v1_t;
typedef struct {
    uint version, entryCount;
    void *entries;
} nvmlEccSramUniqueUncorrectedErrorCounts_v1_t;

typedef struct {
    unsigned char bridgeCount;
    struct {
        uint type, fwVersion;
    } bridgeChipInfo[128];
} nvmlBridgeChipHierarchy_t;
typedef union {
    double dVal;
    int siVal;
    uint uiVal;
    unsigned long ulVal;
    ullong ullVal;
    long long sllVal;
} nvmlValue_t;
typedef struct {
    ullong timeStamp;
    nvmlValue_t sampleValue;
} nvmlSample_t;
typedef struct {
    ullong referenceTime, violationTime;
} nvmlViolationTime_t;
typedef struct {
    uint fieldId, scopeId;
    long long timestamp, latencyUsec;
    uint valueType;
    nvmlReturn_t nvmlReturn;
    nvmlValue_t value;
} nvmlFieldValue_t;

typedef struct {
    uint count;
    struct {
        int controller, defaultMinTemp, defaultMaxTemp, currentTemp, target;
    } sensor[3];
} nvmlGpuThermalSettings_t;
typedef struct {
    uint version, sensorType;
    int temperature;
} nvmlTemperature_v1_t;
typedef struct {
    uint version;
    int marginTemperature;
} nvmlMarginTemperature_v1_t;
typedef struct {
    uint version, index, signalType, target;
} nvmlCoolerInfo_v1_t;
typedef struct {
    uint version, fan, speed;
} nvmlFanSpeedInfo_v1_t;
typedef struct {
    uint version, type, pstate;
    int clockOffsetMHz, minClockOffsetMHz, maxClockOffsetMHz;
} nvmlClockOffset_v1_t;
typedef struct {
    uint version;
    char str[2048];
} nvmlDeviceClockText_v1_t;
typedef struct {
    uint flags;
    struct {
        uint bIsPresent, percentage, incThreshold, decThreshold;
    } utilization[8];
} nvmlGpuDynamicPstatesInfo_t;
typedef struct {
    uint bGlobalStatus, clkMonListSize;
    struct {
        uint clkApiDomain, clkDomainFaultMask;
    } clkMonList[32];
} nvmlClkMonStatus_t;
typedef struct {
    uint version;
    unsigned char powerScope;
    uint powerValueMw;
} nvmlPowerValue_v2_t;

typedef struct {
    uint version, type;
    union {
        char str[41];
        unsigned char bytes[16];
    } value;
} nvmlUUID_v1_t;
typedef struct {
    uint version;
    ullong value;
} nvmlPdi_v1_t;
typedef struct {
    uint version, encryptionState;
} nvmlDramEncryptionInfo_v1_t;
typedef struct {
    uint version;
    unsigned char ibGuid[16], chassis[16], slot, tray, host, peerType, moduleId;
} nvmlPlatformInfo_t;
typedef struct {
    char value[64];
} nvmlHostname_v1_t;
typedef struct {
    uint version;
    char branch[80];
} nvmlSystemDriverBranchInfo_v1_t;
typedef struct {
    uint version, capMask;
} nvmlDeviceCapabilities_v1_t;
typedef struct {
    uint version, isSupportedDevice;
} nvmlGpmSupport_t;
/* Names and units may be left out. */
typedef struct {
    uint metricId;
    nvmlReturn_t nvmlReturn;
    double value;
    const char *shortName, *longName, *unit;
} nvmlGpmMetric_t;
typedef struct {
    uint version, numMetrics;
    nvmlGpmSample_t sample1, sample2;
    nvmlGpmMetric_t metrics[477]; /* older programs have room for fewer: for numMetrics */
} nvmlGpmMetricsGet_t;

typedef struct {
    unsigned char clusterUuid[16];
    uint status, cliqueId;
    unsigned char state;
} nvmlGpuFabricInfo_t;
typedef struct {
    uint version;
    unsigned char clusterUuid[16];
    uint status, cliqueId;
    unsigned char state;
    uint healthMask;
} nvmlGpuFabricInfo_v2_t;
typedef struct {
    uint version;
    unsigned char clusterUuid[16];
    uint status, cliqueId;
    unsigned char state;
    uint healthMask;
    unsigned char healthSummary;
} nvmlGpuFabricInfo_v3_t;

typedef struct {
    unsigned char type;
    uint id;
} nvmlGpuFabricClique_v1_t;
typedef struct {
    unsigned char clusterUuid[16];
    uint status;
    nvmlGpuFabricClique_v1_t cliques[64];
    uint numCliques;
    unsigned char state;
    uint healthMask;
    unsigned char healthSummary;
} nvmlGpuFabricInfo_v4_t;

typedef struct {
    nvmlDevice_t device;
    ullong eventType, eventData;
} nvmlEventData_v1_t;
typedef struct {
    nvmlEventData_v1_t first;
    uint gpuInstanceId, computeInstanceId;
} nvmlEventData_v2_t;
/* All but these few are of structured events, which there are none of. */
typedef struct {
    uint timeoutMs, dataType;
    char uuid[96], sourceModule[16];
    ullong eventType, eventData, groupCursor, instanceId, timestampUsec, traceId;
    uint gpuInstanceId, computeInstanceId, structured[11];
    unsigned char groupSize, groupIndex;
} nvmlEventSetWait_v3_t;

typedef struct {
    uint start, size;
} nvmlPlacement_t;
typedef struct {
    uint multiprocessorCount, copyEngineCount, decoderCount, encoderCount, jpegCount, ofaCount;
} nvmlEngines_t;
typedef struct {
    uint id, isP2pSupported, sliceCount, instanceCount;
    nvmlEngines_t engines;
    ullong memorySizeMB;
} nvmlGpuInstanceProfileInfo_t;
typedef struct {
    uint version, id, isP2pSupported, sliceCount, instanceCount;
    nvmlEngines_t engines;
    ullong memorySizeMB;
    char name[96];
} nvmlGpuInstanceProfileInfo_v2_t;
typedef struct {
    uint version, id, sliceCount, instanceCount;
    nvmlEngines_t engines;
    ullong memorySizeMB;
    char name[96];
    uint capabilities;
} nvmlGpuInstanceProfileInfo_v3_t;
typedef struct {
    nvmlDevice_t device;
    uint id, profileId;
    nvmlPlacement_t placement;
} nvmlGpuInstanceInfo_t;
typedef struct {
    uint id, sliceCount, instanceCount;
    nvmlEngines_t engines;
} nvmlComputeInstanceProfileInfo_t;
typedef struct {
    uint version;
    nvmlComputeInstanceProfileInfo_t first;
    char name[96];
} nvmlComputeInstanceProfileInfo_v2_t;
typedef struct {
    uint version;
    nvmlComputeInstanceProfileInfo_t first;
    char name[96];
    uint capabilities;
} nvmlComputeInstanceProfileInfo_v3_t;
typedef struct {
    nvmlDevice_t device;
    nvmlGpuInstance_t gpuInstance;
    uint id, profileId;
} nvmlComputeInstanceInfo_v1_t;
typedef struct {
    nvmlComputeInstanceInfo_v1_t first;
    nvmlPlacement_t placement;
} nvmlComputeInstanceInfo_v2_t;

#endif
