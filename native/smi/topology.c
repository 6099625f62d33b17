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

/* Prints the numbers of bits that are set, as 0-7,16-23. */
static void print_bits(const unsigned long *words, uint count)
{
    enum { BITS = 64 };
    bool any = false;
    for (uint bit = 0; bit < count * BITS; bit++) {
        if (!(words[bit / BITS] >> bit % BITS & 1))
            continue;
        uint last = bit;
        while (last + 1 < count * BITS && words[(last + 1) / BITS] >> (last + 1) % BITS & 1)
            last++;
        print("%s%u", any ? "," : "", bit);
        if (last > bit)
            print("-%u", last);
        any = true;
        bit = last;
    }
    if (!any)
        print("N/A");
}

/* Prints the CPUs and the NUMA node near a card. No card here is a NUMA node itself. */
static void print_affinities(nvmlDevice_t device)
{
    enum { WORDS = 16, OF_NODE = 0 };
    unsigned long cpus[WORDS] = {0}, nodes[WORDS] = {0};
    nvmlDeviceGetCpuAffinity(device, WORDS, cpus);
    nvmlDeviceGetMemoryAffinity(device, WORDS, nodes, OF_NODE);
    print_bits(cpus, WORDS);
    print("\t");
    print_bits(nodes, WORDS);
    print("\t\tN/A\n");
}

int topology_show(const struct cards *cards)
{
    /* Underlined, as on a terminal. */
    print("\t\033[4m");
    for (uint i = 0; i < cards->count; i++)
        print("GPU%u\t", cards->card[i].index);
    print("CPU Affinity\tNUMA Affinity\tGPU NUMA ID\033[0m\n");
    for (uint i = 0; i < cards->count; i++) {
        nvmlDevice_t device = cards->card[i].device;
        print("GPU%u\t", cards->card[i].index);
        for (uint k = 0; k < cards->count; k++) {
            if (i == k)
                print(" X ");
            else
                print_nearness(device, cards->card[k].device);
            print("\t");
        }
        print_affinities(device);
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
        uint active, working = 0;
        field_show("name", device, name);
        field_show("uuid", device, uuid);
        print("GPU %u: %s (UUID: %s)\n", cards->card[i].index, name, uuid);
        for (uint link = 0; nvmlDeviceGetNvLinkState(device, link, &active) == NVML_SUCCESS; link++)
            working += active;
        if (!working && nvmlDeviceGetNvLinkState(device, 0, &active) == NVML_SUCCESS) {
            print("NVML: Unable to retrieve NVLink information as all links are inActive\n");
            continue;
        }
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
