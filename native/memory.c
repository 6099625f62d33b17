/* Memory: how much of it, and what went wrong in it. */
#include "mig.h"
#include "state.h"

struct amounts {
    uint64_t total, reserved, free, used;
};

/* HAMi's library shows a container its limit as the card's memory, and what it uses itself. */
static nvmlReturn_t bound(uint card, struct amounts *memory, uint64_t limit)
{
    const char *owner = visible_owner();
    if (*owner) {
        struct process all[MOST_PROCESSES];
        TRY(LIVE_FIELD(card, processes, all));
        memory->used = 0;
        for (uint i = 0; i < MOST_PROCESSES && all[i].pid; i++)
            if (text_equal(all[i].owner, owner))
                memory->used += all[i].memory;
    }
    memory->total = limit;
    if (memory->used > limit)
        memory->used = limit;
    memory->free = limit - memory->used;
    return NVML_SUCCESS;
}

static nvmlReturn_t find(nvmlDevice_t device, struct amounts *memory)
{
    struct place place;
    TRY(place_of(device, &place));
    if (place.is_mig) {
        struct gpu_instance instance;
        TRY(mig_gpu_instance(&place, &instance));
        uint64_t taken = instance.memory_used + instance.memory_reserved;
        *memory = (struct amounts){instance.memory_total, instance.memory_reserved,
                                   instance.memory_total - taken, instance.memory_used};
    } else {
        /* They stand side by side. */
        struct {
            uint64_t used, reserved, free;
        } now;
        _Static_assert(offsetof(struct live, memory_free) - offsetof(struct live, memory_used) ==
                           16,
                       "memory");
        TRY(live_copy(place.card, offsetof(struct live, memory_used), &now, sizeof now));
        *memory = (struct amounts){state_identity(place.card)->memory_total, now.reserved, now.free,
                                   now.used};
    }
    uint64_t limit = visible_memory_limit(place.card);
    return limit ? bound(place.card, memory, limit) : NVML_SUCCESS;
}

static nvmlReturn_t amounts_of(nvmlDevice_t device, struct amounts *memory)
{
    return IN_ONE_FILE(find(device, memory));
}

API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *to)
{
    struct amounts memory;
    NEED_ARGUMENT(to);
    TRY(amounts_of(device, &memory));
    /* The first version counts what is reserved as used. */
    *to = (nvmlMemory_t){memory.total, memory.free, memory.total - memory.free};
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *to)
{
    struct amounts memory;
    NEED_ARGUMENT(to);
    NEED_VERSION(to, nvmlMemory_v2_t, 2);
    TRY(amounts_of(device, &memory));
    *to = (nvmlMemory_v2_t){to->version, memory.total, memory.reserved, memory.free, memory.used};
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *to)
{
    struct place place;
    uint64_t used;
    TRY(place_of(device, &place));
    NEED_ARGUMENT(to);
    TRY(LIVE_FIELD(place.card, bar1_used, &used));
    const struct identity *identity = state_identity(place.card);
    uint64_t total = identity->bar1_total;
    if (place.is_mig) {
        /* Its share by slices, less what is kept of each. */
        struct gpu_instance instance;
        TRY(mig_gpu_instance(&place, &instance));
        total = total / identity->mig_slices * instance.size - (1 << 20);
        used = 0;
    }
    *to = (nvmlBAR1Memory_t){total, total - used, used};
    return NVML_SUCCESS;
}

/* Counters in the order of the state: [ever][DRAM][uncorrected]. */
struct ecc {
    uint64_t count[2][2][2];
};
_Static_assert(offsetof(struct live, ecc_dram_uncorrected_ever) -
                       offsetof(struct live, ecc_sram_corrected) + 8 ==
                   sizeof(struct ecc),
               "ECC");

static nvmlReturn_t ecc_of_card(uint card, struct ecc *ecc)
{
    uint mode;
    NEED(state_identity(card)->flags & FLAG_ECC, NVML_ERROR_NOT_SUPPORTED);
    TRY(LIVE_FIELD(card, ecc_mode, &mode));
    NEED(mode, NVML_ERROR_NOT_SUPPORTED);
    return live_copy(card, offsetof(struct live, ecc_sram_corrected), ecc, sizeof *ecc);
}

static nvmlReturn_t ecc_of(nvmlDevice_t device, struct ecc *ecc)
{
    uint card;
    TRY(card_of(device, &card));
    return ecc_of_card(card, ecc);
}

API nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, uint type, uint counter,
                                             ullong *count)
{
    struct ecc ecc;
    NEED_ARGUMENT(type < 2 && counter < 2 && count);
    TRY(ecc_of(device, &ecc));
    *count = ecc.count[counter][0][type] + ecc.count[counter][1][type];
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, uint type, uint counter,
                                                nvmlEccErrorCounts_t *counts)
{
    struct ecc ecc;
    NEED_ARGUMENT(type < 2 && counter < 2 && counts);
    TRY(ecc_of(device, &ecc));
    *counts =
        (nvmlEccErrorCounts_t){0, ecc.count[counter][0][type], ecc.count[counter][1][type], 0};
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, uint type, uint counter,
                                                 uint location, ullong *count)
{
    enum { DRAM = 2, SRAM = 7, LOCATIONS = 8 };
    struct ecc ecc;
    struct place place;
    uint is_cut;
    NEED_ARGUMENT(type < 2 && counter < 2 && location < LOCATIONS && count);
    TRY(place_of(device, &place));
    TRY(LIVE_FIELD(place.card, mig_mode, &is_cut));
    bool ever = counter, uncorrected = type;
    /* MIG devices know of errors outside of DRAM that weren't corrected; of the errors since the
     * driver was loaded, only they know. */
    NEED(place.is_mig ? uncorrected && !ever && location != DRAM : ever || !is_cut,
         NVML_ERROR_NOT_SUPPORTED);
    TRY(ecc_of_card(place.card, &ecc));
    *count = location == DRAM || location == SRAM ? ecc.count[counter][location == DRAM][type] : 0;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device,
                                                 nvmlEccSramErrorStatus_v1_t *to)
{
    struct ecc ecc;
    NEED_ARGUMENT(to);
    NEED_VERSION(to, nvmlEccSramErrorStatus_v1_t, 1);
    TRY(ecc_of(device, &ecc));
    *to = (nvmlEccSramErrorStatus_v1_t){
        .version = to->version,
        .aggregateUncSecDed = ecc.count[1][0][1],
        .aggregateCor = ecc.count[1][0][0],
        .volatileUncSecDed = ecc.count[0][0][1],
        .volatileCor = ecc.count[0][0][0],
        .aggregateUncBucket = {ecc.count[1][0][1]},
    };
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts(
    nvmlDevice_t device, nvmlEccSramUniqueUncorrectedErrorCounts_v1_t *to)
{
    enum { BLACKWELL = 10 };
    struct ecc ecc;
    uint card;
    NEED_ARGUMENT(to);
    NEED_VERSION(to, nvmlEccSramUniqueUncorrectedErrorCounts_v1_t, 1);
    TRY(ecc_of(device, &ecc));
    TRY(card_of(device, &card));
    NEED(state_identity(card)->architecture >= BLACKWELL, NVML_ERROR_NOT_SUPPORTED);
    to->entryCount = 0;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device, uint *mode)
{
    uint card;
    NEED_ARGUMENT(mode);
    TRY(card_of(device, &card));
    NEED(state_identity(card)->flags & FLAG_ECC, NVML_ERROR_NOT_SUPPORTED);
    *mode = 1;
    return NVML_SUCCESS;
}

struct remapped {
    uint32_t corrected, uncorrected, pending, failed, banks[5];
};
_Static_assert(offsetof(struct live, remap_banks) - offsetof(struct live, remapped_corrected) ==
                   offsetof(struct remapped, banks),
               "rows");

static nvmlReturn_t remapped_of(nvmlDevice_t device, struct remapped *rows)
{
    uint card;
    TRY(card_of(device, &card));
    NEED(state_identity(card)->flags & FLAG_ROW_REMAPPER, NVML_ERROR_NOT_SUPPORTED);
    return live_copy(card, offsetof(struct live, remapped_corrected), rows, sizeof *rows);
}

API nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, uint *corrected, uint *uncorrected,
                                           uint *pending, uint *failed)
{
    struct remapped rows;
    NEED_ARGUMENT(corrected && uncorrected && pending && failed);
    TRY(remapped_of(device, &rows));
    *corrected = rows.corrected;
    *uncorrected = rows.uncorrected;
    *pending = rows.pending;
    *failed = rows.failed;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetRemappedRows_v2(nvmlDevice_t device, nvmlRemappedRowsInfo_v2_t *to)
{
    struct remapped rows;
    NEED_ARGUMENT(to);
    TRY(remapped_of(device, &rows));
    *to = (nvmlRemappedRowsInfo_v2_t){rows.corrected, 0,          rows.uncorrected, 0,
                                      rows.pending,   rows.failed};
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device,
                                                   nvmlRowRemapperHistogramValues_t *to)
{
    struct remapped rows;
    NEED_ARGUMENT(to);
    TRY(remapped_of(device, &rows));
    *to = (nvmlRowRemapperHistogramValues_t){rows.banks[0], rows.banks[1], rows.banks[2],
                                             rows.banks[3], rows.banks[4]};
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t device, nvmlRepairStatus_v1_t *to)
{
    struct remapped rows;
    NEED_ARGUMENT(to);
    NEED_VERSION(to, nvmlRepairStatus_v1_t, 1);
    TRY(remapped_of(device, &rows));
    *to = (nvmlRepairStatus_v1_t){to->version, 0, 0};
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetUnrepairableMemoryFlag_v1(nvmlDevice_t device,
                                                        nvmlUnrepairableMemoryStatus_v1_t *to)
{
    struct remapped rows;
    NEED_ARGUMENT(to);
    TRY(remapped_of(device, &rows));
    to->bUnrepairableMemory = rows.failed;
    return NVML_SUCCESS;
}

/* Nobody needs the pages' addresses: they are made up. */
static nvmlReturn_t retired(nvmlDevice_t device, uint cause, uint *count, ullong *addresses,
                            ullong *times)
{
    struct {
        uint32_t by_cause[2];
    } pages;
    uint card;
    NEED_ARGUMENT(cause < 2 && count);
    TRY(card_of(device, &card));
    NEED(retires_pages(state_identity(card)), NVML_ERROR_NOT_SUPPORTED);
    TRY(live_copy(card, offsetof(struct live, retired_single), &pages, sizeof pages));
    uint room = *count;
    *count = pages.by_cause[cause];
    NEED(room >= *count, NVML_ERROR_INSUFFICIENT_SIZE);
    NEED_ARGUMENT(addresses || !*count);
    for (uint i = 0; i < *count; i++) {
        addresses[i] = (ullong)(i + 1 + cause * 4096) << 16;
        if (times)
            times[i] = state_header()->started;
    }
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, uint *pending)
{
    uint card;
    NEED_ARGUMENT(pending);
    TRY(card_of(device, &card));
    NEED(retires_pages(state_identity(card)), NVML_ERROR_NOT_SUPPORTED);
    return LIVE_FIELD(card, retired_pending, pending);
}

API nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, uint cause, uint *count,
                                           ullong *addresses)
{
    return retired(device, cause, count, addresses, NULL);
}

API nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, uint cause, uint *count,
                                              ullong *addresses, ullong *times)
{
    NEED_ARGUMENT(times);
    return retired(device, cause, count, addresses, times);
}
