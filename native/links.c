/* How cards reach each other: PCIe, NVLink, peer to peer, the fabric. */
#include "state.h"

/* Two whole cards. */
static nvmlReturn_t two_cards(nvmlDevice_t one, nvmlDevice_t other, uint cards[2])
{
    TRY(card_of(one, &cards[0]));
    return card_of(other, &cards[1]);
}

static uint level(uint one_card, uint other_card)
{
    const struct identity *one = state_identity(one_card), *other = state_identity(other_card);
    if (one_card == other_card || one->board_id == other->board_id)
        return TOPOLOGY_INTERNAL;
    if (one->pcie_switch && one->pcie_switch == other->pcie_switch)
        return TOPOLOGY_SINGLE;
    if (one->pcie_root == other->pcie_root)
        return TOPOLOGY_HOSTBRIDGE;
    return one->numa_node == other->numa_node ? TOPOLOGY_NODE : TOPOLOGY_SYSTEM;
}

API nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other,
                                                     uint *found)
{
    uint cards[2];
    TRY(two_cards(one, other, cards));
    NEED_ARGUMENT(found);
    *found = level(cards[0], cards[1]);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, uint wanted, uint *count,
                                                  nvmlDevice_t *devices)
{
    uint card, room, found = 0;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(count && wanted <= TOPOLOGY_SYSTEM && (devices || !*count));
    room = *count;
    for (uint i = 0; i < visible_count(); i++) {
        uint other = visible_card(i);
        if (other == card || level(card, other) != wanted)
            continue;
        if (devices && found < room)
            devices[found] = device_handle(other);
        found++;
    }
    *count = devices && found > room ? room : found;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlSystemGetTopologyGpuSet(uint cpu, uint *count, nvmlDevice_t *devices)
{
    NEED(state_ready(), NVML_ERROR_UNINITIALIZED);
    state_follow();
    NEED_ARGUMENT(count && cpu < 1024 && (devices || !*count));
    uint room = *count, found = 0;
    for (uint i = 0; i < visible_count(); i++) {
        uint card = visible_card(i);
        if (!(state_identity(card)->cpus[cpu / 64] >> cpu % 64 & 1))
            continue;
        if (devices && found < room)
            devices[found] = device_handle(card);
        found++;
    }
    *count = devices && found > room ? room : found;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t one, nvmlDevice_t other, int *same)
{
    uint cards[2];
    TRY(two_cards(one, other, cards));
    NEED_ARGUMENT(same);
    *same = state_identity(cards[0])->board_id == state_identity(cards[1])->board_id;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device, uint *shared)
{
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(shared);
    *shared = 0;
    for (uint other = 0; other < state_header()->card_count; other++)
        *shared |=
            other != card && state_identity(other)->board_id == state_identity(card)->board_id;
    return NVML_SUCCESS;
}

/* Is there an NVLink between them that works, or a switch that both have links to? */
static bool linked(uint one_card, uint other_card)
{
    enum { TO_SWITCH = 2 };
    const struct identity *one = state_identity(one_card), *other = state_identity(other_card);
    uint64_t down;
    if (LIVE_FIELD(one_card, links_down, &down) != NVML_SUCCESS)
        return false;
    for (uint i = 0; i < one->link_count && i < MOST_LINKS; i++) {
        const struct link *link = &one->links[i];
        if (down >> i & 1)
            continue;
        if (link->remote_type == TO_SWITCH
                ? other->link_count && other->links[0].remote_type == TO_SWITCH
                : link->remote_domain == other->pci_domain && link->remote_bus == other->pci_bus &&
                      link->remote_device == other->pci_device)
            return true;
    }
    return false;
}

API nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t other, uint kind,
                                        uint *status)
{
    uint cards[2];
    TRY(two_cards(one, other, cards));
    NEED_ARGUMENT(status && kind <= P2P_UNKNOWN);
    bool near = level(cards[0], cards[1]) <= TOPOLOGY_HOSTBRIDGE,
         by_link = linked(cards[0], cards[1]);
    bool can = kind == P2P_NVLINK || kind == P2P_ATOMICS ? by_link
               : kind == P2P_PCI                         ? near
                                                         : near || by_link;
    *status = can ? P2P_OK : P2P_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

static nvmlReturn_t link_of(nvmlDevice_t device, uint number, uint *card, const struct link **link)
{
    TRY(card_of(device, card));
    const struct identity *identity = state_identity(*card);
    NEED_ARGUMENT(number < MOST_LINKS);
    NEED(identity->link_count, NVML_ERROR_NOT_SUPPORTED);
    /* nvidia-smi's topology tries them all, and takes INVALID_ARGUMENT for a failure. */
    NEED(number < identity->link_count, NVML_ERROR_NOT_SUPPORTED);
    *link = &identity->links[number];
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, uint number, uint *active)
{
    uint card;
    const struct link *link;
    uint64_t down;
    TRY(link_of(device, number, &card, &link));
    NEED_ARGUMENT(active);
    TRY(LIVE_FIELD(card, links_down, &down));
    *active = !(down >> number & 1);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, uint number, uint *version)
{
    uint card;
    const struct link *link;
    TRY(link_of(device, number, &card, &link));
    NEED_ARGUMENT(version);
    *version = state_identity(card)->link_version;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, uint number, uint capability,
                                               uint *has)
{
    /* Peer to peer, system memory, the atomics of both, a bridge between two cards, valid. */
    static const uint capabilities[] = {1, 1, 1, 1, 0, 1};
    uint card;
    const struct link *link;
    TRY(link_of(device, number, &card, &link));
    NEED_ARGUMENT(has && capability < COUNT_OF(capabilities));
    *has = capabilities[capability];
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, uint number, uint *type)
{
    uint card;
    const struct link *link;
    TRY(link_of(device, number, &card, &link));
    NEED_ARGUMENT(type);
    *type = link->remote_type;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, uint number,
                                                     nvmlPciInfo_v3_t *to)
{
    uint card;
    const struct link *link;
    TRY(link_of(device, number, &card, &link));
    NEED_ARGUMENT(to);
    *to = (nvmlPciInfo_v3_t){
        {0}, link->remote_domain, link->remote_bus, link->remote_device, link->remote_pci_id, 0,
        {0}};
    text_format(to->busIdLegacy, sizeof to->busIdLegacy, "%4X:%2X:%2X.%u", to->domain, to->bus,
                to->device, link->remote_function);
    text_format(to->busId, sizeof to->busId, "%8X:%2X:%2X.%u", to->domain, to->bus, to->device,
                link->remote_function);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, uint number,
                                                  nvmlPciInfo_v2_t *to)
{
    nvmlPciInfo_v3_t found;
    NEED_ARGUMENT(to);
    TRY(nvmlDeviceGetNvLinkRemotePciInfo_v2(device, number, &found));
    *to = (nvmlPciInfo_v2_t){
        {0}, found.domain, found.bus, found.device, found.pciDeviceId, found.pciSubSystemId, {0}};
    text_copy(to->busId, sizeof to->busId, found.busIdLegacy);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, uint number, uint counter,
                                                 ullong *count)
{
    enum { REPLAY, RECOVERY, COUNTERS = 5 };
    uint card;
    const struct link *link;
    uint32_t errors[MOST_LINKS];
    TRY(link_of(device, number, &card, &link));
    NEED_ARGUMENT(count && counter < COUNTERS);
    TRY(LIVE_FIELD(card, link_errors, errors));
    *count = counter == REPLAY ? errors[number] : 0;
    return NVML_SUCCESS;
}

/* The fabric of cards behind switches. */

static nvmlReturn_t fabric_of(nvmlDevice_t device, nvmlGpuFabricInfo_v3_t *to)
{
    uint card;
    TRY(card_of(device, &card));
    const struct identity *identity = state_identity(card);
    bool is_in = identity->flags & FLAG_FABRIC;
    *to = (nvmlGpuFabricInfo_v3_t){.status = NVML_SUCCESS,
                                   .cliqueId = identity->fabric_clique,
                                   .state = is_in ? FABRIC_COMPLETED : FABRIC_NOT_SUPPORTED,
                                   .healthSummary = is_in ? FABRIC_HEALTHY : 0};
    for (uint i = 0; i < sizeof to->clusterUuid; i++)
        to->clusterUuid[i] = identity->fabric_cluster[i];
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *to)
{
    nvmlGpuFabricInfo_v3_t found;
    NEED_ARGUMENT(to);
    TRY(fabric_of(device, &found));
    *to = (nvmlGpuFabricInfo_t){
        .status = found.status, .cliqueId = found.cliqueId, .state = found.state};
    for (uint i = 0; i < sizeof to->clusterUuid; i++)
        to->clusterUuid[i] = found.clusterUuid[i];
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, void *to)
{
    nvmlGpuFabricInfo_v3_t found;
    NEED_ARGUMENT(to);
    uint version = *(const uint *)to;
    bool third = version == VERSION_OF(nvmlGpuFabricInfo_v3_t, 3);
    NEED(third || version == VERSION_OF(nvmlGpuFabricInfo_v2_t, 2),
         OTHERWISE(NVML_ERROR_ARGUMENT_VERSION_MISMATCH));
    TRY(fabric_of(device, &found));
    found.version = version;
    /* The second version is the third one without its last word. */
    for (uint i = 0; i < (third ? sizeof found : sizeof(nvmlGpuFabricInfo_v2_t)); i++)
        ((char *)to)[i] = ((const char *)&found)[i];
    return NVML_SUCCESS;
}

/* Of the cliques by kind, a card here is in the one that the older versions name. */
API nvmlReturn_t nvmlDeviceGetGpuFabricInfo_v4(nvmlDevice_t device, nvmlGpuFabricInfo_v4_t *to)
{
    enum { UNICAST_POINTER = 0 };
    nvmlGpuFabricInfo_v3_t found;
    NEED_ARGUMENT(to);
    TRY(fabric_of(device, &found));
    *to = (nvmlGpuFabricInfo_v4_t){.status = found.status,
                                   .cliques = {{UNICAST_POINTER, found.cliqueId}},
                                   .numCliques = found.state == FABRIC_COMPLETED,
                                   .state = found.state,
                                   .healthSummary = found.healthSummary};
    for (uint i = 0; i < sizeof to->clusterUuid; i++)
        to->clusterUuid[i] = found.clusterUuid[i];
    return NVML_SUCCESS;
}
