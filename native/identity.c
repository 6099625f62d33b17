/* Who a card is: names, PCI, the CPUs near it, and what it consists of. */
#include "mig.h"
#include "state.h"

/* The texts of whole cards. */
static nvmlReturn_t find_text(nvmlDevice_t device, size_t offset, char *to, uint size)
{
    uint card;
    TRY(card_of(device, &card));
    const char *text = (const char *)state_identity(card) + offset;
    NEED(*text, NVML_ERROR_NOT_SUPPORTED);
    return give_text(to, size, text);
}

static nvmlReturn_t identity_text(nvmlDevice_t device, size_t offset, char *to, uint size)
{
    return IN_ONE_FILE(find_text(device, offset, to, size));
}

#define TEXT(name, field) \
    API nvmlReturn_t name(nvmlDevice_t device, char *text, uint size) \
    { \
        return identity_text(device, offsetof(struct identity, field), text, size); \
    }
TEXT(nvmlDeviceGetSerial, serial)
TEXT(nvmlDeviceGetBoardPartNumber, board_part_number)
TEXT(nvmlDeviceGetVbiosVersion, vbios)
TEXT(nvmlDeviceGetInforomImageVersion, inforom_image)

API nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t device, uint object, char *text,
                                             uint size)
{
    static const size_t offsets[] = {
        offsetof(struct identity, inforom_oem),
        offsetof(struct identity, inforom_ecc),
        offsetof(struct identity, inforom_power),
    };
    NEED_ARGUMENT(object < COUNT_OF(offsets));
    return identity_text(device, offsets[object], text, size);
}

API nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *text)
{
    return identity_text(device, offsetof(struct identity, gsp_firmware), text, 64);
}

API nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t device, uint *enabled, uint *by_default)
{
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(enabled && by_default);
    *enabled = *by_default = *state_identity(card)->gsp_firmware != 0;
    return NVML_SUCCESS;
}

static nvmlReturn_t find_name(nvmlDevice_t device, char *name, uint size)
{
    struct place place;
    TRY(place_of(device, &place));
    uint lost;
    TRY(LIVE_FIELD(place.card, lost, &lost));
    const char *product = state_identity(place.card)->name;
    if (!place.is_mig)
        return give_text(name, size, product);
    struct compute_instance instance;
    struct gpu_instance parent;
    const struct mig_profile *profile;
    TRY(mig_compute_instance(&place, &instance));
    TRY(mig_gpu_instance(&place, &parent));
    TRY(mig_profile(place.card, parent.profile, &profile));
    char part[48], text[160];
    mig_name(part, sizeof part, profile, instance.slices);
    text_format(text, sizeof text, "%s MIG %s", product, part);
    return give_text(name, size, text);
}

API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, uint size)
{
    return IN_ONE_FILE(find_name(device, name, size));
}

/* These four answer for a lost card too: whoever learns of its loss must be able to say which it
 * is. */

static nvmlReturn_t find_uuid(nvmlDevice_t device, char *uuid, uint size)
{
    struct place place;
    TRY(place_of(device, &place));
    if (!place.is_mig)
        return give_text(uuid, size, state_identity(place.card)->uuid);
    struct compute_instance instance;
    TRY(mig_compute_instance(&place, &instance));
    return give_text(uuid, size, instance.uuid);
}

API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, uint size)
{
    return IN_ONE_FILE(find_uuid(device, uuid, size));
}

static nvmlReturn_t find_index(nvmlDevice_t device, uint *index)
{
    struct place place;
    TRY(place_of(device, &place));
    NEED_ARGUMENT(index);
    if (place.is_mig)
        return mig_index(&place, index);
    *index = visible_index(place.card);
    return *index == NO_INSTANCE ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, uint *index)
{
    return IN_ONE_FILE(find_index(device, index));
}

static nvmlReturn_t find_minor(nvmlDevice_t device, uint *minor)
{
    struct place place;
    TRY(place_of(device, &place));
    NEED_ARGUMENT(minor);
    NEED(!place.is_mig, NVML_ERROR_NOT_SUPPORTED);
    *minor = state_identity(place.card)->minor;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, uint *minor)
{
    return IN_ONE_FILE(find_minor(device, minor));
}

/* As they stand in the identity. */
struct pci {
    uint pci_domain, pci_bus, pci_device, pci_function, pci_id, pci_subsystem_id, pci_class;
};
_Static_assert(offsetof(struct identity, pci_class) - offsetof(struct identity, pci_domain) ==
                   offsetof(struct pci, pci_class),
               "PCI");

static nvmlReturn_t find_pci(nvmlDevice_t device, const void *to, struct pci *found)
{
    struct place place;
    TRY(place_of(device, &place));
    NEED_ARGUMENT(to);
    *found = *(const struct pci *)&state_identity(place.card)->pci_domain;
    return NVML_SUCCESS;
}

static nvmlReturn_t pci(nvmlDevice_t device, const void *to, struct pci *found)
{
    return IN_ONE_FILE(find_pci(device, to, found));
}

static void long_bus_id(char to[32], const struct pci *card)
{
    text_format(to, 32, "%8X:%2X:%2X.%u", card->pci_domain, card->pci_bus, card->pci_device,
                card->pci_function);
}

static void short_bus_id(char to[16], const struct pci *card)
{
    text_format(to, 16, "%4X:%2X:%2X.%u", card->pci_domain, card->pci_bus, card->pci_device,
                card->pci_function);
}

API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_v3_t *to)
{
    struct pci card;
    TRY(pci(device, to, &card));
    *to = (nvmlPciInfo_v3_t){{0},
                             card.pci_domain,
                             card.pci_bus,
                             card.pci_device,
                             card.pci_id,
                             card.pci_subsystem_id,
                             {0}};
    short_bus_id(to->busIdLegacy, &card);
    long_bus_id(to->busId, &card);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_v2_t *to)
{
    struct pci card;
    TRY(pci(device, to, &card));
    *to = (nvmlPciInfo_v2_t){{0},
                             card.pci_domain,
                             card.pci_bus,
                             card.pci_device,
                             card.pci_id,
                             card.pci_subsystem_id,
                             {0}};
    short_bus_id(to->busId, &card);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_v1_t *to)
{
    struct pci card;
    TRY(pci(device, to, &card));
    *to = (nvmlPciInfo_v1_t){{0}, card.pci_domain, card.pci_bus, card.pci_device, card.pci_id};
    short_bus_id(to->busId, &card);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_v1_t *to)
{
    struct pci card;
    TRY(pci(device, to, &card));
    NEED_VERSION(to, nvmlPciInfoExt_v1_t, 1);
    *to = (nvmlPciInfoExt_v1_t){to->version,
                                card.pci_domain,
                                card.pci_bus,
                                card.pci_device,
                                card.pci_id,
                                card.pci_subsystem_id,
                                card.pci_class >> 16 & 0xff,
                                card.pci_class >> 8 & 0xff,
                                {0}};
    long_bus_id(to->busId, &card);
    return NVML_SUCCESS;
}

/* The node that a card's own memory is, where the CPU can address it. None of ours is that near. */
API nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, uint *node)
{
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(node);
    return NVML_ERROR_NOT_SUPPORTED;
}

API nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, uint words, unsigned long *cpus)
{
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(cpus && words);
    const struct identity *identity = state_identity(card);
    for (uint i = 0; i < words; i++)
        cpus[i] = i < COUNT_OF(identity->cpus) ? identity->cpus[i] : 0;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, uint words,
                                                     unsigned long *cpus, uint scope)
{
    NEED_ARGUMENT(scope < 2);
    return nvmlDeviceGetCpuAffinity(device, words, cpus);
}

/* Lets the calling thread run on some CPUs only. */
static nvmlReturn_t run_on(nvmlDevice_t device, bool near)
{
    uint card;
    uint64_t cpus[COUNT_OF(((struct identity *)0)->cpus)];
    TRY(card_of(device, &card));
    for (uint i = 0; i < COUNT_OF(cpus); i++)
        cpus[i] = near ? state_identity(card)->cpus[i] : ~0ull;
    return sys_run_on(cpus, sizeof cpus) == 0 ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

API nvmlReturn_t nvmlDeviceSetCpuAffinity(nvmlDevice_t device) { return run_on(device, true); }
API nvmlReturn_t nvmlDeviceClearCpuAffinity(nvmlDevice_t device) { return run_on(device, false); }

API nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, uint words, unsigned long *nodes,
                                             uint scope)
{
    uint card;
    NEED_ARGUMENT(nodes && words && scope < 2);
    TRY(card_of(device, &card));
    NEED(state_identity(card)->numa_node >= 0, NVML_ERROR_NOT_SUPPORTED);
    uint node = (uint)state_identity(card)->numa_node;
    for (uint i = 0; i < words; i++)
        nodes[i] = node / 64 == i ? 1ul << node % 64 : 0;
    return NVML_SUCCESS;
}

/* A MIG device's; a whole card has none. */
static nvmlReturn_t attributes(nvmlDevice_t device, nvmlDeviceAttributes_v2_t *to)
{
    struct place place;
    TRY(place_of(device, &place));
    NEED(place.is_mig, NVML_ERROR_NOT_SUPPORTED);
    struct gpu_instance parent;
    struct compute_instance instance;
    const struct mig_profile *profile;
    TRY(mig_gpu_instance(&place, &parent));
    TRY(mig_compute_instance(&place, &instance));
    TRY(mig_profile(place.card, parent.profile, &profile));
    *to = (nvmlDeviceAttributes_v2_t){{profile->multiprocessors * instance.slices / profile->slices,
                                       profile->copy_engines, profile->decoders, profile->encoders,
                                       profile->jpegs, profile->ofas},
                                      profile->slices,
                                      instance.slices,
                                      profile->memory};
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_v2_t *to)
{
    NEED_ARGUMENT(to);
    return attributes(device, to);
}

API nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_v1_t *to)
{
    nvmlDeviceAttributes_v2_t all;
    NEED_ARGUMENT(to);
    TRY(attributes(device, &all));
    *to = all.shared;
    return NVML_SUCCESS;
}
