/*
 * The table behind the interface that nvidia-smi asks for. Only what NVIDIA publishes of it in its
 * own mock (k8s-test-infra) is known here: its name, and what five of its entries do. The others
 * accept what is asked of no card, and of a card they say NOT_SUPPORTED: whoever is told that it
 * went well goes on with what nobody wrote.
 */
#include "state.h"

enum {
    HANDLE_BY_INDEX = 81,
    COMPUTE = 213,
    GRAPHICS = 214,
    MPS = 215,
    HOST_PCIE_GENERATION = 230,
    ENTRIES = 256
};
enum { BY_INDEX = 0x22, LEAST_POINTER = 0x100000 };

static const unsigned char table_name[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                             0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};

struct internal_process {
    uint pid;
    ullong memory;
    uint gpu_instance, compute_instance;
    ullong protected_memory;
    char name[4096];
};

API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(uint index, nvmlDevice_t *device);

/* The types of processes that an entry lists; 0: it is no list. */
static uint listed_type(uint entry)
{
    return entry == COMPUTE    ? PROCESS_COMPUTE
           : entry == GRAPHICS ? PROCESS_GRAPHICS
           : entry == MPS      ? PROCESS_MPS
                               : 0;
}

static uint list_processes(const struct place *place, uint type, struct internal_process *to,
                           uint room)
{
    struct live live;
    if (live_copy(place->card, 0, &live, offsetof(struct live, gpu_instances)) != NVML_SUCCESS)
        return 0;
    uint count = 0;
    for (uint i = 0; i < live.process_count && i < MOST_PROCESSES && count < room; i++) {
        const struct process *each = &live.processes[i];
        if (!(each->type & type) || !is_inside(each, place))
            continue;
        to[count].pid = each->pid;
        to[count].memory = each->memory;
        to[count].gpu_instance = each->gpu_instance;
        to[count].compute_instance = each->compute_instance;
        to[count].protected_memory = 0;
        text_copy(to[count].name, sizeof to[count].name, each->name);
        count++;
    }
    return count;
}

__attribute__((noinline)) static nvmlReturn_t answer(uint entry, void *first, void *second,
                                                     void *third)
{
    if (entry == HANDLE_BY_INDEX && (uintptr_t)first < MOST_CARDS && (uintptr_t)third == BY_INDEX &&
        second)
        return nvmlDeviceGetHandleByIndex_v2((uint)(uintptr_t)first, second);
    struct place place;
    if (!second || place_of(first, &place) != NVML_SUCCESS)
        return NVML_SUCCESS;
    uint *count = second;
    if (listed_type(entry) && (uintptr_t)third > LEAST_POINTER && *count && *count <= 65536)
        *count = list_processes(&place, listed_type(entry), third, *count);
    else if (entry == HOST_PCIE_GENERATION)
        *count = state_identity(place.card)->pcie_generation_most;
    else
        return NVML_ERROR_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

/* A function for each entry, which says which one it is: 256 of them, 16 times 16. */
#define ROW(DO, n) \
    DO(n##0) \
    DO(n##1) \
    DO(n##2) DO(n##3) DO(n##4) DO(n##5) DO(n##6) DO(n##7) DO(n##8) DO(n##9) DO(n##a) DO(n##b) \
        DO(n##c) DO(n##d) DO(n##e) DO(n##f)
#define ALL(DO) \
    ROW(DO, 0x0) \
    ROW(DO, 0x1) \
    ROW(DO, 0x2) ROW(DO, 0x3) ROW(DO, 0x4) ROW(DO, 0x5) ROW(DO, 0x6) ROW(DO, 0x7) ROW(DO, 0x8) \
        ROW(DO, 0x9) ROW(DO, 0xa) ROW(DO, 0xb) ROW(DO, 0xc) ROW(DO, 0xd) ROW(DO, 0xe) ROW(DO, 0xf)
#define DEFINE(n) \
    static nvmlReturn_t entry_##n(void *first, void *second, void *third) \
    { \
        return answer(n, first, second, third); \
    }
#define ADDRESS(n) (const void *)entry_##n,
ALL(DEFINE)

API nvmlReturn_t nvmlInternalGetExportTable(const void **table, const unsigned char *name)
{
    /* Its first entry is a size, larger than anybody looks. */
    static const void *entries[ENTRIES] = {ALL(ADDRESS)};
    NEED(table && name, NVML_ERROR_INVALID_ARGUMENT);
    for (uint i = 0; i < sizeof table_name; i++)
        NEED(name[i] == table_name[i], NVML_ERROR_NOT_SUPPORTED);
    entries[0] = (const void *)0x1000;
    *table = entries;
    return NVML_SUCCESS;
}
