/* How cards reach each other: topo -m, nvlink -s. */
#include "smi.h"

/* Counts the NVLinks from one card to another, directly or by switches that all have links to. */
static uint links_between(nvmlDevice_t one, nvmlDevice_t other)
{
    enum { TO_SWITCH = 2 };
    uint found = 0, active, type;
    nvmlPciInfo_v3_t remote;
    char bus_id[FIELD_SIZE];
    field_show("pci.bus_id", other, bus_id);
    bool other_has_links = nvmlDeviceGetNvLinkState(other, 0, &active) == NVML_SUCCESS;
    for (uint link = 0; nvmlDeviceGetNvLinkState(one, link, &active) == NVML_SUCCESS; link++) {
        if (!active || nvmlDeviceGetNvLinkRemoteDeviceType(one, link, &type) != NVML_SUCCESS ||
            nvmlDeviceGetNvLinkRemotePciInfo_v2(one, link, &remote) != NVML_SUCCESS)
            continue;
        found += type == TO_SWITCH ? other_has_links : text_equal(remote.busId, bus_id);
    }
    return found;
}

static void print_nearness(nvmlDevice_t one, nvmlDevice_t other)
{
    static const char *const levels[] = {"PIX", "PIX", "PXB", "PHB", "NODE", "SYS"};
    uint links = links_between(one, other), level;
    if (links)
        print("NV%u", links);
    else if (nvmlDeviceGetTopologyCommonAncestor(one, other, &level) == NVML_SUCCESS)
        print("%s", levels[level / 10 % COUNT_OF(levels)]);
    else
        print("N/A");
}

/* Prints the CPUs near a card, as 0-7,16-23. */
static void print_cpus(nvmlDevice_t device)
{
    enum { WORDS = 16, BITS = 64 };
    unsigned long cpus[WORDS];
    bool any = false;
    if (nvmlDeviceGetCpuAffinity(device, WORDS, cpus) != NVML_SUCCESS)
        cpus[0] = 0;
    for (uint cpu = 0; cpu < WORDS * BITS; cpu++) {
        if (!(cpus[cpu / BITS] >> cpu % BITS & 1))
            continue;
        uint last = cpu;
        while (last + 1 < WORDS * BITS && cpus[(last + 1) / BITS] >> (last + 1) % BITS & 1)
            last++;
        print(last > cpu ? "%s%u-%u" : "%s%u", any ? "," : "", cpu, last);
        any = true;
        cpu = last;
    }
    if (!any)
        print("N/A");
}

int topology_show(const struct cards *cards)
{
    /* Underlined, as on a terminal. */
    print("\t\033[4m");
    for (uint i = 0; i < cards->count; i++)
        print("GPU%u\t", cards->card[i].index);
    print("CPU Affinity\tNUMA Affinity\tGPU NUMA ID\033[0m\n");
    for (uint i = 0; i < cards->count; i++) {
        uint node;
        nvmlDevice_t device = cards->card[i].device;
        print("GPU%u\t", cards->card[i].index);
        for (uint k = 0; k < cards->count; k++) {
            if (i == k)
                print(" X ");
            else
                print_nearness(device, cards->card[k].device);
            print("\t");
        }
        print_cpus(device);
        if (nvmlDeviceGetNumaNodeId(device, &node) == NVML_SUCCESS)
            print("\t%u\t\tN/A\n", node);
        else
            print("\tN/A\t\tN/A\n");
    }
    print("\nLegend:\n\n"
          "  X    = the card itself\n"
          "  SYS  = by PCIe and the link between the CPUs of two NUMA nodes\n"
          "  NODE = by PCIe and the link between two host bridges of a NUMA node\n"
          "  PHB  = by PCIe and a host bridge\n"
          "  PXB  = by several PCIe bridges, and no host bridge\n"
          "  PIX  = by one PCIe bridge\n"
          "  NV#  = by # NVLinks\n");
    return EXIT_GOOD;
}

int links_show(const struct cards *cards)
{
    enum { SPEED = 164 }; /* the field value's ID; MB/s */
    for (uint i = 0; i < cards->count; i++) {
        char name[FIELD_SIZE], uuid[FIELD_SIZE];
        nvmlDevice_t device = cards->card[i].device;
        uint active;
        field_show("name", device, name);
        field_show("uuid", device, uuid);
        print("GPU %u: %s (UUID: %s)\n", cards->card[i].index, name, uuid);
        for (uint link = 0; nvmlDeviceGetNvLinkState(device, link, &active) == NVML_SUCCESS;
             link++) {
            nvmlFieldValue_t speed = {.fieldId = SPEED, .scopeId = link};
            nvmlReturn_t result = nvmlDeviceGetFieldValues(device, 1, &speed);
            uint rate = speed.value.uiVal;
            if (!active || result != NVML_SUCCESS || speed.nvmlReturn != NVML_SUCCESS)
                print("\t Link %u: <inactive>\n", link);
            else if (rate % 1000)
                print("\t Link %u: %u.%03u GB/s\n", link, rate / 1000, rate % 1000);
            else
                print("\t Link %u: %u GB/s\n", link, rate / 1000);
        }
    }
    return EXIT_GOOD;
}
