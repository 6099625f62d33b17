/* Who uses a card. */
#include "state.h"

#define FEW 8u /* more than most cards have; they are read at once */

struct found {
    uint count;
    uint64_t timestamp;
    struct process process[MOST_PROCESSES];
};

static nvmlReturn_t read(nvmlDevice_t device, uint types, struct found *found)
{
    struct place place;
    struct live live;
    TRY(place_of(device, &place));
    TRY(live_copy(place.card, 0, &live, LIVE_NUMBERS + FEW * sizeof *live.processes));
    if (live.process_count > FEW)
        TRY(live_copy(place.card, 0, &live, offsetof(struct live, gpu_instances)));
    found->count = 0;
    for (uint i = 0; i < live.process_count && i < MOST_PROCESSES; i++) {
        const struct process *each = &live.processes[i];
        if (each->type & types && is_inside(each, &place))
            found->process[found->count++] = *each;
    }
    return NVML_SUCCESS;
}

/* Reads the processes of some types on a card, or of a MIG device those in it. */
static nvmlReturn_t find(nvmlDevice_t device, uint types, struct found *found)
{
    return IN_ONE_FILE(read(device, types, found));
}

/* Says how many there are, and whether they fit. */
static nvmlReturn_t fit(const struct found *found, uint *count, const void *to)
{
    uint room = *count;
    *count = found->count;
    NEED(room >= found->count, NVML_ERROR_INSUFFICIENT_SIZE);
    NEED_ARGUMENT(to || !found->count);
    return NVML_SUCCESS;
}

static nvmlReturn_t list_v1(nvmlDevice_t device, uint types, uint *count, nvmlProcessInfo_v1_t *to)
{
    struct found found;
    NEED_ARGUMENT(count);
    TRY(find(device, types, &found));
    TRY(fit(&found, count, to));
    for (uint i = 0; i < found.count; i++)
        to[i] = (nvmlProcessInfo_v1_t){found.process[i].pid, found.process[i].memory};
    return NVML_SUCCESS;
}

static nvmlReturn_t list_v2(nvmlDevice_t device, uint types, uint *count, nvmlProcessInfo_v2_t *to)
{
    struct found found;
    NEED_ARGUMENT(count);
    TRY(find(device, types, &found));
    TRY(fit(&found, count, to));
    for (uint i = 0; i < found.count; i++) {
        const struct process *each = &found.process[i];
        to[i] = (nvmlProcessInfo_v2_t){each->pid, each->memory, each->gpu_instance,
                                       each->compute_instance};
    }
    return NVML_SUCCESS;
}

/* The third version has the second one's record. */
#define LISTS(name, types) \
    API nvmlReturn_t name(nvmlDevice_t device, uint *count, nvmlProcessInfo_v1_t *to) \
    { \
        return list_v1(device, types, count, to); \
    } \
    API nvmlReturn_t name##_v2(nvmlDevice_t device, uint *count, nvmlProcessInfo_v2_t *to) \
    { \
        return list_v2(device, types, count, to); \
    } \
    API nvmlReturn_t name##_v3(nvmlDevice_t device, uint *count, nvmlProcessInfo_v2_t *to) \
    { \
        return list_v2(device, types, count, to); \
    }
LISTS(nvmlDeviceGetComputeRunningProcesses, PROCESS_COMPUTE)
LISTS(nvmlDeviceGetGraphicsRunningProcesses, PROCESS_GRAPHICS)
LISTS(nvmlDeviceGetMPSComputeRunningProcesses, PROCESS_MPS)

API nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                       nvmlProcessDetailList_v1_t *list)
{
    static const uint types[] = {PROCESS_COMPUTE, PROCESS_GRAPHICS, PROCESS_MPS,
                                 PROCESS_COMPUTE | PROCESS_GRAPHICS | PROCESS_MPS};
    struct found found;
    NEED_ARGUMENT(list);
    NEED_VERSION(list, nvmlProcessDetailList_v1_t, 1);
    NEED_ARGUMENT(list->mode < COUNT_OF(types));
    TRY(find(device, types[list->mode], &found));
    TRY(fit(&found, &list->numProcArrayEntries, list->procArray));
    for (uint i = 0; i < found.count; i++) {
        const struct process *each = &found.process[i];
        list->procArray[i] = (nvmlProcessDetail_v1_t){each->pid, each->memory, each->gpu_instance,
                                                      each->compute_instance, 0};
    }
    return NVML_SUCCESS;
}

/*
 * Samples are of now: what nobody has written anew is still true. A caller that asks for those of
 * the last second gets one, however long the load has been the same.
 */
static uint64_t sampled(void) { return sys_realtime() / 1000; }

/* What is newer than the caller has seen. */
static nvmlReturn_t find_newer(nvmlDevice_t device, ullong seen, struct found *found)
{
    uint card;
    TRY(uncut_card_of(device, &card));
    TRY(find(device, ~0u, found));
    found->timestamp = sampled();
    NEED(found->count && found->timestamp > seen, NVML_ERROR_NOT_FOUND);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                                 nvmlProcessUtilizationSample_t *to, uint *count,
                                                 ullong seen)
{
    struct found found;
    NEED_ARGUMENT(count);
    TRY(find_newer(device, seen, &found));
    if (!to)
        *count = 0;
    TRY(fit(&found, count, to));
    for (uint i = 0; i < found.count; i++) {
        const struct process *each = &found.process[i];
        to[i] = (nvmlProcessUtilizationSample_t){each->pid,         found.timestamp, each->sm,
                                                 each->memory_busy, each->encoder,   each->decoder};
    }
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                       nvmlProcessesUtilizationInfo_v1_t *info)
{
    struct found found;
    NEED_ARGUMENT(info);
    NEED_VERSION(info, nvmlProcessesUtilizationInfo_v1_t, 1);
    TRY(find_newer(device, info->lastSeenTimeStamp, &found));
    if (!info->procUtilArray)
        info->processSamplesCount = 0;
    TRY(fit(&found, &info->processSamplesCount, info->procUtilArray));
    for (uint i = 0; i < found.count; i++) {
        const struct process *each = &found.process[i];
        info->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
            found.timestamp, each->pid,     each->sm,   each->memory_busy,
            each->encoder,   each->decoder, each->jpeg, each->ofa};
    }
    info->lastSeenTimeStamp = found.timestamp;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlSystemGetProcessName(uint pid, char *name, uint size)
{
    NEED(state_ready(), NVML_ERROR_UNINITIALIZED);
    NEED_ARGUMENT(pid && name && size);
    for (uint i = 0; i < visible_count(); i++) {
        struct found found;
        if (find(device_handle(visible_card(i)), ~0u, &found) != NVML_SUCCESS)
            continue;
        for (uint k = 0; k < found.count; k++)
            if (found.process[k].pid == pid) {
                text_copy(name, size, found.process[k].name);
                return NVML_SUCCESS;
            }
    }
    return NVML_ERROR_NOT_FOUND;
}

/* Accounting: nobody is remembered after its end. */

API nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, uint *size)
{
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(size);
    *size = MOST_PROCESSES;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, uint *count, uint *pids)
{
    struct found found;
    uint card, mode;
    NEED_ARGUMENT(count);
    TRY(card_of(device, &card));
    TRY(LIVE_FIELD(card, accounting_mode, &mode));
    TRY(find(device, PROCESS_COMPUTE, &found));
    if (!mode)
        found.count = 0;
    TRY(fit(&found, count, pids));
    for (uint i = 0; i < found.count; i++)
        pids[i] = found.process[i].pid;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, uint pid,
                                              nvmlAccountingStats_t *to)
{
    struct found found;
    uint card, mode;
    NEED_ARGUMENT(to);
    TRY(card_of(device, &card));
    TRY(LIVE_FIELD(card, accounting_mode, &mode));
    NEED(mode, NVML_ERROR_NOT_SUPPORTED);
    TRY(find(device, PROCESS_COMPUTE, &found));
    for (uint i = 0; i < found.count; i++) {
        const struct process *each = &found.process[i];
        if (each->pid == pid) {
            *to = (nvmlAccountingStats_t){
                each->sm, each->memory_busy, each->memory, 0, each->started, 1, {0}};
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

/* Samples: the newest one of each kind is all there is. */
API nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, uint kind, ullong seen, uint *type,
                                      uint *count, nvmlSample_t *to)
{
    enum { POWER = 0, PROCESSOR_CLOCK = 5, MEMORY_CLOCK = 6, MODULE_POWER = 7 };
    uint card;
    struct live live;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(type && count && (!to || *count));
    TRY(live_copy(card, 0, &live, LIVE_NUMBERS));
    const uint values[] = {live.power,   live.gpu,      live.memory,       live.encoder,
                           live.decoder, live.sm_clock, live.memory_clock, 0,
                           live.jpeg,    live.ofa};
    NEED_ARGUMENT(kind < COUNT_OF(values));
    bool is_use = kind != POWER && kind != PROCESSOR_CLOCK && kind != MEMORY_CLOCK;
    NEED(kind != MODULE_POWER && !(is_use && live.mig_mode), NVML_ERROR_NOT_SUPPORTED);
    uint64_t timestamp = sampled();
    NEED(timestamp > seen, NVML_ERROR_NOT_FOUND);
    *type = VALUE_UINT;
    if (to)
        *to = (nvmlSample_t){timestamp, {.ullVal = values[kind]}};
    *count = 1;
    return NVML_SUCCESS;
}
