/* The functions of NVML that this program calls. */
#ifndef HAMI_MOCK_SMI_CALLS_H
#define HAMI_MOCK_SMI_CALLS_H

#include "../nvml.h"

typedef nvmlReturn_t number_call(nvmlDevice_t, uint *);
typedef nvmlReturn_t wide_call(nvmlDevice_t, ullong *);
typedef nvmlReturn_t pair_call(nvmlDevice_t, uint *, uint *);
typedef nvmlReturn_t which_call(nvmlDevice_t, uint, uint *);
typedef nvmlReturn_t text_call(nvmlDevice_t, char *, uint);
typedef nvmlReturn_t processes_call(nvmlDevice_t, uint *, nvmlProcessInfo_v2_t *);

/* The library. */
nvmlReturn_t nvmlInit_v2(void);
const char *nvmlErrorString(nvmlReturn_t);
nvmlReturn_t nvmlSystemGetDriverVersion(char *, uint);
nvmlReturn_t nvmlSystemGetNVMLVersion(char *, uint);
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *);
nvmlReturn_t nvmlSystemGetProcessName(uint, char *, uint);
nvmlReturn_t nvmlDeviceGetCount_v2(uint *);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(uint, nvmlDevice_t *);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *, nvmlDevice_t *);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *, nvmlDevice_t *);

/* Numbers and texts of a card. */
number_call nvmlDeviceGetIndex, nvmlDeviceGetMinorNumber, nvmlDeviceGetBrand,
    nvmlDeviceGetArchitecture, nvmlDeviceGetBoardId, nvmlDeviceGetModuleId,
    nvmlDeviceGetMultiGpuBoard, nvmlDeviceGetDisplayMode, nvmlDeviceGetDisplayActive,
    nvmlDeviceGetPersistenceMode, nvmlDeviceGetAccountingMode, nvmlDeviceGetAccountingBufferSize,
    nvmlDeviceGetMaxPcieLinkGeneration, nvmlDeviceGetGpuMaxPcieLinkGeneration,
    nvmlDeviceGetMaxPcieLinkWidth, nvmlDeviceGetCurrPcieLinkGeneration,
    nvmlDeviceGetCurrPcieLinkWidth, nvmlDeviceGetPcieReplayCounter, nvmlDeviceGetFanSpeed,
    nvmlDeviceGetPerformanceState, nvmlDeviceGetComputeMode, nvmlDeviceGetRetiredPagesPendingStatus,
    nvmlDeviceGetPowerManagementMode, nvmlDeviceGetPowerUsage, nvmlDeviceGetPowerManagementLimit,
    nvmlDeviceGetEnforcedPowerLimit, nvmlDeviceGetPowerManagementDefaultLimit,
    nvmlDeviceGetMaxMigDeviceCount, nvmlDeviceGetGpuInstanceId, nvmlDeviceGetComputeInstanceId,
    nvmlDeviceGetVirtualizationMode, nvmlDeviceIsMigDeviceHandle;
wide_call nvmlDeviceGetCurrentClocksEventReasons, nvmlDeviceGetSupportedClocksEventReasons;
pair_call nvmlDeviceGetMigMode, nvmlDeviceGetEccMode, nvmlDeviceGetGspFirmwareMode,
    nvmlDeviceGetCudaComputeCapability, nvmlDeviceGetEncoderUtilization,
    nvmlDeviceGetDecoderUtilization, nvmlDeviceGetJpgUtilization, nvmlDeviceGetOfaUtilization,
    nvmlDeviceGetPowerManagementLimitConstraints, nvmlDeviceGetGpuOperationMode,
    nvmlDeviceGetAutoBoostedClocksEnabled;
which_call nvmlDeviceGetClockInfo, nvmlDeviceGetMaxClockInfo, nvmlDeviceGetApplicationsClock,
    nvmlDeviceGetDefaultApplicationsClock, nvmlDeviceGetMaxCustomerBoostClock,
    nvmlDeviceGetTemperature, nvmlDeviceGetTemperatureThreshold, nvmlDeviceGetPcieThroughput,
    nvmlDeviceGetNvLinkState;
text_call nvmlDeviceGetName, nvmlDeviceGetUUID, nvmlDeviceGetSerial, nvmlDeviceGetBoardPartNumber,
    nvmlDeviceGetVbiosVersion, nvmlDeviceGetInforomImageVersion;
nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t, uint, char *, uint);
nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t, char *);
nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t, nvmlPciInfoExt_v1_t *);
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t, int, nvmlFieldValue_t *);
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t, nvmlUtilization_t *);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t, nvmlMemory_v2_t *);
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t, nvmlBAR1Memory_t *);
nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t, nvmlMemory_t *);
nvmlReturn_t nvmlDeviceGetLastBBXFlushTime(nvmlDevice_t, ullong *, unsigned long *);
nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t, uint *, uint *);
nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t, uint *, uint *, uint *);
nvmlReturn_t nvmlDeviceGetFBCStats(nvmlDevice_t, uint[3]);
nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_t, nvmlC2cModeInfo_v1_t *);
nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t, nvmlDeviceAddressingMode_v1_t *);
nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t, nvmlMarginTemperature_v1_t *);
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t, void *);
nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t, uint *, uint *);
nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t, uint, uint *, uint *);
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t, uint, ullong, uint *, uint *, nvmlSample_t *);

/* Errors of memory. */
nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t, uint, uint, uint, ullong *);
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t, uint, uint, ullong *);
nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t, nvmlEccSramErrorStatus_v1_t *);
nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t, uint, uint *, ullong *);
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t, uint *, uint *, uint *, uint *);
nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t, nvmlRowRemapperHistogramValues_t *);

/* Processes. */
processes_call nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetGraphicsRunningProcesses_v3,
    nvmlDeviceGetMPSComputeRunningProcesses_v3;
nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t,
                                                   nvmlProcessesUtilizationInfo_v1_t *);

/* How cards reach each other. */
nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t, nvmlDevice_t, uint *);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t, uint, nvmlPciInfo_v3_t *);
which_call nvmlDeviceGetNvLinkRemoteDeviceType;
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t, uint, unsigned long *);
nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t, uint, unsigned long *, uint);

/* MIG. */
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t, uint, nvmlDevice_t *);
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t, nvmlDeviceAttributes_v2_t *);
nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t, uint, void *);
nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t, uint, nvmlPlacement_t *,
                                                           uint *);
which_call nvmlDeviceGetGpuInstanceRemainingCapacity;
nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t, uint, nvmlGpuInstance_t *, uint *);
nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t, nvmlGpuInstanceInfo_t *);
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t, uint, uint, void *);
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t, uint, uint *);
nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t, uint, nvmlComputeInstance_t *,
                                                uint *);
nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t, nvmlComputeInstanceInfo_v2_t *);

/* Setters. */
nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t, uint);
nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t, uint);
nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t, uint);
nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t, uint, nvmlReturn_t *);
nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t, uint, nvmlGpuInstance_t *);
nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t, uint, const nvmlPlacement_t *,
                                                      nvmlGpuInstance_t *);
nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t);
nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t, uint, nvmlComputeInstance_t *);
nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t);

#endif
