/* GPM: what newer cards count of themselves from one look to the next. */
#include "mig.h"

#define MOST_SAMPLES 1024u

struct gpm_sample {
    uint32_t used;
    bool is_filled;
    uint handle, gpu_instance; /* whose: the number of the card's handle, and NO_INSTANCE or … */
    uint links, decoders, jpegs, ofas;
    uint64_t time;                                             /* ns */
    double busy, tensor, dram;                                 /* percent */
    double decoder, jpeg, ofa;                                 /* percent */
    double sent, received;                                     /* MiB/s over PCIe */
    uint64_t link_sent[MOST_LINKS], link_received[MOST_LINKS]; /* KiB so far */
};

static struct gpm_sample samples[MOST_SAMPLES];
static uint32_t touched; /* none from there on was ever used: their memory isn't there yet */

static bool is_sample(nvmlGpmSample_t sample)
{
    uintptr_t offset = (uintptr_t)sample - (uintptr_t)samples;
    return offset < sizeof samples && offset % sizeof *samples == 0 && sample->used;
}

API nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
    NEED(state_ready(), NVML_ERROR_UNINITIALIZED);
    NEED_ARGUMENT(sample);
    for (uint i = 0; i < MOST_SAMPLES; i++) {
        uint32_t unused = 0;
        if (!__atomic_compare_exchange_n(&samples[i].used, &unused, 1, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        if (__atomic_load_n(&touched, __ATOMIC_RELAXED) <= i)
            __atomic_store_n(&touched, i + 1, __ATOMIC_RELAXED);
        samples[i].is_filled = false;
        *sample = &samples[i];
        return NVML_SUCCESS;
    }
    return NVML_ERROR_MEMORY;
}

API nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
    NEED(state_ready(), NVML_ERROR_UNINITIALIZED);
    NEED_ARGUMENT(is_sample(sample));
    __atomic_store_n(&sample->used, 0, __ATOMIC_RELEASE);
    return NVML_SUCCESS;
}

void gpm_forget(void)
{
    for (uint i = 0; i < __atomic_load_n(&touched, __ATOMIC_RELAXED); i++)
        __atomic_store_n(&samples[i].used, 0, __ATOMIC_RELEASE);
}

static bool counts(uint card)
{
    enum { HOPPER = 9 };
    return state_identity(card)->architecture >= HOPPER;
}

API nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *to)
{
    struct place place;
    NEED_ARGUMENT(to);
    NEED(to->version == 1, OTHERWISE(NVML_ERROR_ARGUMENT_VERSION_MISMATCH));
    TRY(place_of(device, &place));
    to->isSupportedDevice = counts(place.card);
    return NVML_SUCCESS;
}

/* How busy a GPU instance is: its compute instances, by their parts of it. */
static nvmlReturn_t instance_busy(const struct place *place, double *busy)
{
    struct gpu_instance instance;
    const struct mig_profile *profile;
    struct compute_instance all[MOST_COMPUTE_INSTANCES];
    TRY(mig_gpu_instance(place, &instance));
    TRY(mig_profile(place->card, instance.profile, &profile));
    TRY(LIVE_FIELD(place->card, compute_instances, all));
    *busy = 0;
    for (uint i = 0; i < MOST_COMPUTE_INSTANCES; i++)
        if (all[i].used && all[i].gpu_instance == place->gpu_instance)
            *busy += (double)all[i].sm * all[i].slices / profile->slices;
    return NVML_SUCCESS;
}

static double mebibytes(uint32_t kilobytes) { return kilobytes * 1000.0 / (1 << 20); }

static nvmlReturn_t fill(const struct place *place, nvmlGpmSample_t to)
{
    struct live live;
    NEED_ARGUMENT(is_sample(to));
    NEED(counts(place->card), NVML_ERROR_NOT_SUPPORTED);
    TRY(live_copy(place->card, 0, &live, LIVE_NUMBERS));
    const struct identity *identity = state_identity(place->card);
    *to = (struct gpm_sample){.used = 1,
                              .is_filled = true,
                              .handle = handle_number(place->card),
                              .gpu_instance = place->gpu_instance,
                              .links = identity->link_count,
                              .decoders = identity->decoders,
                              .jpegs = identity->jpegs,
                              .ofas = identity->ofas,
                              .time = sys_monotonic(),
                              .busy = live.gpu,
                              .tensor = live.tensor / 100.0,
                              .dram = live.dram / 100.0,
                              .decoder = live.decoder,
                              .jpeg = live.jpeg,
                              .ofa = live.ofa,
                              .sent = mebibytes(live.pcie_sent),
                              .received = mebibytes(live.pcie_received)};
    for (uint i = 0; i < MOST_LINKS; i++) {
        to->link_sent[i] = live.links_sent[i];
        to->link_received[i] = live.links_received[i];
    }
    return place->is_mig ? instance_busy(place, &to->busy) : NVML_SUCCESS;
}

API nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
    struct place place;
    TRY(place_of(device, &place));
    return fill(&place, sample);
}

API nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, uint gpu_instance, nvmlGpmSample_t sample)
{
    struct place place = {0, true, gpu_instance, NO_INSTANCE};
    struct gpu_instance found;
    TRY(card_of(device, &place.card));
    TRY(mig_gpu_instance(&place, &found));
    return fill(&place, sample);
}

/* MiB/s over the links from one to another. */
static double link_rate(nvmlGpmSample_t one, nvmlGpmSample_t other, uint first, uint end, bool sent)
{
    uint64_t carried = 0, time = other->time - one->time;
    for (uint i = first; i < end && i < MOST_LINKS; i++)
        carried += sent ? other->link_sent[i] - one->link_sent[i]
                        : other->link_received[i] - one->link_received[i];
    return time ? (double)carried / 1024 / ((double)time / 1e9) : 0;
}

/* The numbers are of the second look; only what counts on is of the time between the two. */
static nvmlReturn_t metric(nvmlGpmSample_t one, nvmlGpmSample_t other, uint id, double *value)
{
    enum {
        BUSY = 1,
        TENSOR = 5,
        DRAM = 10,
        PCIE_SENT = 20,
        PCIE_RECEIVED = 21,
        DECODERS = 30,
        JPEGS = 40,
        OFAS = 50,
        LINKS_RECEIVED = 60,
        LINKS_SENT = 61,
        LINKS = 62,
        LINKS_END = 98,
        METRICS = 477
    };
    const struct {
        uint first, count;
        double value;
    } known[] = {
        {BUSY, 1, other->busy},
        {TENSOR, 1, other->tensor},
        {DRAM, 1, other->dram},
        {PCIE_SENT, 1, other->sent},
        {PCIE_RECEIVED, 1, other->received},
        {DECODERS, other->decoders, other->decoder},
        {JPEGS, other->jpegs, other->jpeg},
        {OFAS, other->ofas, other->ofa},
    };
    NEED_ARGUMENT(id && id < METRICS);
    /* The state says of an instance only how busy it is. */
    NEED(id == BUSY || other->gpu_instance == NO_INSTANCE, NVML_ERROR_NOT_SUPPORTED);
    for (uint i = 0; i < COUNT_OF(known); i++)
        if (id >= known[i].first && id - known[i].first < known[i].count) {
            *value = known[i].value;
            return NVML_SUCCESS;
        }
    NEED(id >= LINKS_RECEIVED && id < LINKS_END && other->links, NVML_ERROR_NOT_SUPPORTED);
    if (id < LINKS) {
        *value = link_rate(one, other, 0, other->links, id == LINKS_SENT);
        return NVML_SUCCESS;
    }
    uint link = (id - LINKS) / 2;
    NEED(link < other->links, NVML_ERROR_NOT_SUPPORTED);
    *value = link_rate(one, other, link, link + 1, (id - LINKS) % 2);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *asked)
{
    NEED(state_ready(), NVML_ERROR_UNINITIALIZED);
    NEED_ARGUMENT(asked);
    NEED(asked->version == 1, OTHERWISE(NVML_ERROR_ARGUMENT_VERSION_MISMATCH));
    nvmlGpmSample_t one = asked->sample1, other = asked->sample2;
    NEED_ARGUMENT(is_sample(one) && is_sample(other) && one->is_filled && other->is_filled);
    NEED_ARGUMENT(one->handle == other->handle && one->gpu_instance == other->gpu_instance &&
                  one->time <= other->time && asked->numMetrics <= COUNT_OF(asked->metrics));
    for (uint i = 0; i < asked->numMetrics; i++) {
        nvmlGpmMetric_t *each = &asked->metrics[i];
        uint id = each->metricId;
        *each = (nvmlGpmMetric_t){.metricId = id};
        each->nvmlReturn = metric(one, other, id, &each->value);
    }
    return NVML_SUCCESS;
}
