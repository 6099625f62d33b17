/* Field values: numbers that tools ask for by an ID, many at a time. */
#include "state.h"

enum source {
    FROM_LIVE,     /* the field of the live record at the offset */
    FROM_IDENTITY, /* the same of the identity */
    OF_LINK, /* an element of the live record's array: the link of the scope, or the sum of all */
    ZERO,    /* what is counted never happens here */
    ONE,
    COMPUTED,
};

/* What a field may need besides the FLAG_… of a card. */
enum { NEEDS_PAGES = 1 << 13, NEEDS_LINKS = 1 << 14, NEEDS_MARGIN = 1 << 15 };

/* IDs from the first to the last are numbers that stand one after the other. */
struct row {
    uint16_t first, last;
    uint8_t source, size;
    uint16_t offset, needs;
};

#define LIVE_ROW(first, last, field, needs) \
    { \
        first, last, FROM_LIVE, sizeof((struct live *)0)->field, offsetof(struct live, field), \
            needs \
    }
#define FIXED_ROW(id, field) \
    { \
        id, id, FROM_IDENTITY, 4, offsetof(struct identity, field), 0 \
    }
#define LINK_ROW(id, field) \
    { \
        id, id, OF_LINK, sizeof((struct live *)0)->field / MOST_LINKS, \
            offsetof(struct live, field), NEEDS_LINKS \
    }

enum {
    ECC_TOTALS = 3,
    ECC_TOTALS_END = 6,
    VIOLATIONS = 74,
    VIOLATIONS_END = 79,
    APPLICATION_CLOCKS = 80,
    BASE_CLOCKS = 81,
    LINK_SPEED_FIRST = 84,
    LINK_SPEED_COMMON = 90,
    PENDING_SINGLE = 92,
    PENDING_DOUBLE = 93,
    LINK_SPEED_SEVENTH = 132,
    LINK_SPEED_TWELFTH = 137,
    REMOTE_LINK = 146,
    SWITCH_LINKS = 147,
    LINK_SPEED = 164,
    LINK_STATE = 165,
    LINK_VERSION = 166,
    POWER_AVERAGE = 185,
    ENERGY = 191,
    POWER_REQUESTED = 192,
    LIMIT_SHUTDOWN = 193,
    LIMIT_SLOWDOWN = 194,
    LIMIT_MEMORY = 195,
    LIMIT_GPU = 196,
    LINK_SENT_BYTES = 202,
    LINK_RECEIVED_BYTES = 204,
    NEEDS_RESET = 226,
    NEEDS_DRAIN = 227,
    HELD_BY_HEAT = 269,
    ALL_LINKS = 0xffffffff,
};

static const struct row rows[] = {
    LIVE_ROW(1, 1, ecc_mode, FLAG_ECC),
    LIVE_ROW(2, 2, ecc_mode_pending, FLAG_ECC),
    {ECC_TOTALS, ECC_TOTALS_END, COMPUTED, 8, 0, FLAG_ECC},
    {7, 10, ZERO, 8, 0, FLAG_ECC},
    LIVE_ROW(11, 11, ecc_dram_corrected, FLAG_ECC),
    LIVE_ROW(12, 12, ecc_dram_uncorrected, FLAG_ECC),
    {13, 21, ZERO, 8, 0, FLAG_ECC},
    LIVE_ROW(22, 22, ecc_dram_corrected_ever, FLAG_ECC),
    LIVE_ROW(23, 23, ecc_dram_uncorrected_ever, FLAG_ECC),
    {24, 28, ZERO, 8, 0, FLAG_ECC},
    LIVE_ROW(29, 29, retired_single, NEEDS_PAGES),
    LIVE_ROW(30, 30, retired_double, NEEDS_PAGES),
    LIVE_ROW(31, 31, retired_pending, NEEDS_PAGES),
    {32, 51, ZERO, 8, 0, NEEDS_LINKS},
    LINK_ROW(52, link_errors),
    {53, 59, ZERO, 8, 0, NEEDS_LINKS},
    {VIOLATIONS, BASE_CLOCKS, COMPUTED, 8, 0, 0},
    LIVE_ROW(82, 82, memory_temperature, FLAG_MEMORY_TEMPERATURE),
    LIVE_ROW(83, 83, energy, 0),
    {LINK_SPEED_FIRST, LINK_SPEED_COMMON, COMPUTED, 4, 0, NEEDS_LINKS},
    FIXED_ROW(91, link_count),
    {PENDING_SINGLE, PENDING_DOUBLE, COMPUTED, 4, 0, NEEDS_PAGES},
    LIVE_ROW(94, 94, pcie_replays, 0),
    {95, 95, ZERO, 8, 0, 0},
    {96, 119, ZERO, 8, 0, NEEDS_LINKS},
    {LINK_SPEED_SEVENTH, LINK_SPEED_TWELFTH, COMPUTED, 4, 0, NEEDS_LINKS},
    LINK_ROW(138, links_sent),
    LINK_ROW(139, links_received),
    LINK_ROW(140, links_sent),
    LINK_ROW(141, links_received),
    LIVE_ROW(142, 145, remapped_corrected, FLAG_ROW_REMAPPER),
    {REMOTE_LINK, SWITCH_LINKS, COMPUTED, 4, 0, NEEDS_LINKS},
    {148, 160, ZERO, 8, 0, NEEDS_LINKS},
    LINK_ROW(161, link_errors),
    {162, 163, ZERO, 8, 0, NEEDS_LINKS},
    {LINK_SPEED, LINK_VERSION, COMPUTED, 4, 0, NEEDS_LINKS},
    {169, 170, ZERO, 4, 0, 0},
    {173, 183, ZERO, 4, 0, 0},
    {184, 184, ONE, 4, 0, FLAG_MIG},
    LIVE_ROW(POWER_AVERAGE, POWER_AVERAGE, power_average, 0),
    LIVE_ROW(186, 186, power, 0),
    FIXED_ROW(187, power_limit_least),
    FIXED_ROW(188, power_limit_most),
    FIXED_ROW(189, power_limit_default),
    LIVE_ROW(190, 190, power_limit_enforced, 0),
    LIVE_ROW(ENERGY, ENERGY, energy, 0),
    LIVE_ROW(POWER_REQUESTED, POWER_REQUESTED, power_limit, 0),
    {LIMIT_SHUTDOWN, LIMIT_GPU, COMPUTED, 4, 0, NEEDS_MARGIN},
    {199, 199, ONE, 4, 0, FLAG_MIG},
    {LINK_SENT_BYTES, LINK_SENT_BYTES, COMPUTED, 8, 0, NEEDS_LINKS},
    {LINK_RECEIVED_BYTES, LINK_RECEIVED_BYTES, COMPUTED, 8, 0, NEEDS_LINKS},
    {205, 215, ZERO, 8, 0, NEEDS_LINKS},
    {NEEDS_RESET, NEEDS_DRAIN, COMPUTED, 4, 0, 0},
    LIVE_ROW(230, 230, recovery_action, 0),
    {HELD_BY_HEAT, HELD_BY_HEAT, COMPUTED, 8, 0, 0},
    {270, 271, ZERO, 8, 0, 0},
    {301, 302, ZERO, 4, 0, FLAG_ROW_REMAPPER},
};

static const struct row *row_of(uint id)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (id >= rows[i].first && id <= rows[i].last)
            return &rows[i];
    return NULL;
}

static uint64_t number_at(const void *record, size_t offset, size_t size)
{
    const char *at = (const char *)record + offset;
    return size == 8 ? *(const uint64_t *)at : *(const uint32_t *)at;
}

static nvmlReturn_t of_links(const struct identity *identity, const struct live *live, uint scope,
                             size_t offset, size_t size, uint64_t *value)
{
    NEED_ARGUMENT(scope == ALL_LINKS || scope < identity->link_count);
    *value = 0;
    for (uint i = 0; i < identity->link_count && i < MOST_LINKS; i++)
        if (scope == ALL_LINKS || scope == i)
            *value += number_at(live, offset + i * size, size);
    return NVML_SUCCESS;
}

static nvmlReturn_t of_one_link(const struct identity *identity, const struct live *live, uint id,
                                uint scope, uint64_t *value)
{
    uint link = scope;
    if (id >= LINK_SPEED_FIRST && id < LINK_SPEED_COMMON)
        link = id - LINK_SPEED_FIRST;
    else if (id >= LINK_SPEED_SEVENTH && id <= LINK_SPEED_TWELFTH)
        link = id - LINK_SPEED_SEVENTH + 6;
    else if (id == LINK_SPEED_COMMON || scope == ALL_LINKS)
        link = 0;
    NEED_ARGUMENT(link < identity->link_count);
    bool down = live->links_down >> link & 1;
    switch (id) {
    case REMOTE_LINK: *value = identity->links[link].remote_link; break;
    case LINK_STATE: *value = !down; break;
    case LINK_VERSION: *value = identity->link_version; break;
    default: *value = down ? 0 : identity->links[link].speed; break;
    }
    return NVML_SUCCESS;
}

static uint64_t ecc_total(const struct live *live, uint which)
{
    const uint64_t totals[] = {
        live->ecc_sram_corrected + live->ecc_dram_corrected,
        live->ecc_sram_uncorrected + live->ecc_dram_uncorrected,
        live->ecc_sram_corrected_ever + live->ecc_dram_corrected_ever,
        live->ecc_sram_uncorrected_ever + live->ecc_dram_uncorrected_ever,
    };
    return totals[which];
}

static nvmlReturn_t compute(const struct identity *identity, const struct live *live, uint id,
                            uint scope, uint64_t *value)
{
    int gpu_most = (int)identity->threshold_gpu_most;
    switch (id) {
    case ECC_TOTALS ... ECC_TOTALS_END: *value = ecc_total(live, id - ECC_TOTALS); break;
    case VIOLATIONS ... VIOLATIONS_END: *value = live->violations[id - VIOLATIONS]; break;
    case APPLICATION_CLOCKS: *value = live->violations[10]; break;
    case BASE_CLOCKS: *value = live->violations[11]; break;
    case PENDING_SINGLE: *value = live->retired_pending && live->retired_single; break;
    case PENDING_DOUBLE: *value = live->retired_pending && live->retired_double; break;
    case HELD_BY_HEAT: *value = live->violations[1]; break;
    case SWITCH_LINKS:
        *value = identity->links[0].remote_type == 2 ? identity->link_count : 0;
        break;
    /* Degrees that are left until the card's own limit: below it they are negative. */
    case LIMIT_SHUTDOWN: *value = (uint32_t)(gpu_most - (int)identity->threshold_shutdown); break;
    case LIMIT_SLOWDOWN: *value = (uint32_t)(gpu_most - (int)identity->threshold_slowdown); break;
    case LIMIT_MEMORY:
    case LIMIT_GPU: *value = 0; break;
    case NEEDS_RESET: *value = live->recovery_action == 1; break;
    case NEEDS_DRAIN: *value = live->recovery_action == 4; break;
    case LINK_SENT_BYTES:
    case LINK_RECEIVED_BYTES: {
        size_t offset = id == LINK_SENT_BYTES ? offsetof(struct live, links_sent)
                                              : offsetof(struct live, links_received);
        TRY(of_links(identity, live, scope, offset, 8, value));
        *value *= 1024;
        break;
    }
    default: return of_one_link(identity, live, id, scope, value);
    }
    return NVML_SUCCESS;
}

static uint features(const struct identity *identity)
{
    return identity->flags | (retires_pages(identity) ? NEEDS_PAGES : 0) |
           (identity->link_count ? NEEDS_LINKS : 0) |
           (has_temperature_margin(identity) ? NEEDS_MARGIN : 0);
}

static nvmlReturn_t find(const struct identity *identity, const struct live *live, uint id,
                         uint scope, uint64_t *value, uint *type)
{
    const struct row *row = row_of(id);
    NEED(row && (features(identity) & row->needs) == row->needs, NVML_ERROR_NOT_SUPPORTED);
    /* Other scopes of power are memory and modules with a CPU. */
    bool is_power = id >= POWER_AVERAGE && id <= POWER_REQUESTED && id != ENERGY;
    NEED(!is_power || scope == 0, NVML_ERROR_NOT_SUPPORTED);
    bool is_signed = id >= LIMIT_SHUTDOWN && id <= LIMIT_GPU;
    *type = is_signed ? VALUE_INT : row->size == 8 ? VALUE_ULLONG : VALUE_UINT;
    size_t offset = row->offset + (id - row->first) * row->size;
    switch (row->source) {
    case FROM_LIVE: *value = number_at(live, offset, row->size); break;
    case FROM_IDENTITY: *value = number_at(identity, offset, row->size); break;
    case OF_LINK: return of_links(identity, live, scope, offset, row->size, value);
    case COMPUTED: return compute(identity, live, id, scope, value);
    default: *value = row->source == ONE; break;
    }
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    uint card;
    struct live live;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(values && count > 0);
    TRY(live_copy(card, 0, &live, LIVE_NUMBERS));
    for (int i = 0; i < count; i++) {
        nvmlFieldValue_t *each = &values[i];
        uint64_t value = 0;
        each->nvmlReturn = find(state_identity(card), &live, each->fieldId, each->scopeId, &value,
                                &each->valueType);
        each->value.ullVal = value;
        each->timestamp = (long long)live.timestamp;
        each->latencyUsec = 0;
    }
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceClearFieldValues(nvmlDevice_t device, int count,
                                            nvmlFieldValue_t *values)
{
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(values && count > 0);
    for (int i = 0; i < count; i++)
        values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    return NVML_SUCCESS;
}
