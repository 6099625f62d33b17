/* Clocks, power, heat and fans. */
#include "state.h"

/* Reads all numbers of a card's live part. */
static nvmlReturn_t numbers_of(nvmlDevice_t device, uint *card, struct live *live)
{
    TRY(card_of(device, card));
    return live_copy(*card, 0, live, LIVE_NUMBERS);
}

API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, uint type, uint *clock)
{
    static const size_t offsets[] = {
        offsetof(struct live, graphics_clock),
        offsetof(struct live, sm_clock),
        offsetof(struct live, memory_clock),
        offsetof(struct live, video_clock),
    };
    NEED_ARGUMENT(clock && type < CLOCK_COUNT);
    return live_of(device, offsets[type], clock, sizeof *clock);
}

static uint most(const struct identity *identity, uint type)
{
    const uint clocks[] = {identity->graphics_clock_most, identity->sm_clock_most,
                           identity->memory_clock_most, identity->video_clock_most};
    return clocks[type];
}

API nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, uint type, uint *clock)
{
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(clock && type < CLOCK_COUNT);
    *clock = most(state_identity(card), type);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, uint type, uint *clock)
{
    return nvmlDeviceGetMaxClockInfo(device, type, clock);
}

API nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, uint type, uint *clock)
{
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(clock && type < CLOCK_COUNT);
    NEED(type != CLOCK_VIDEO, NVML_ERROR_NOT_SUPPORTED);
    const struct identity *identity = state_identity(card);
    *clock =
        type == CLOCK_MEMORY ? identity->memory_clock_default : identity->graphics_clock_default;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, uint type, uint *clock)
{
    uint card, set;
    TRY(nvmlDeviceGetDefaultApplicationsClock(device, type, clock));
    TRY(card_of(device, &card));
    TRY(live_copy(card,
                  type == CLOCK_MEMORY ? offsetof(struct live, memory_clock_set)
                                       : offsetof(struct live, graphics_clock_set),
                  &set, sizeof set));
    if (set)
        *clock = set;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, uint type, uint which, uint *clock)
{
    switch (which) {
    case CLOCK_CURRENT: return nvmlDeviceGetClockInfo(device, type, clock);
    case CLOCK_TARGET: return nvmlDeviceGetApplicationsClock(device, type, clock);
    case CLOCK_DEFAULT: return nvmlDeviceGetDefaultApplicationsClock(device, type, clock);
    case CLOCK_BOOST_MOST: return nvmlDeviceGetMaxClockInfo(device, type, clock);
    default: return OTHERWISE(NVML_ERROR_INVALID_ARGUMENT);
    }
}

API nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, uint *count, uint *clocks)
{
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(count);
    const struct identity *identity = state_identity(card);
    uint found = 0, room = *count;
    while (found < MOST_MEMORY_CLOCKS && identity->memory_clocks[found])
        found++;
    *count = found;
    NEED(room >= found, NVML_ERROR_INSUFFICIENT_SIZE);
    NEED_ARGUMENT(clocks || !found);
    for (uint i = 0; i < found; i++)
        clocks[i] = identity->memory_clocks[i];
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, uint memory_clock,
                                                      uint *count, uint *clocks)
{
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(count);
    const struct identity *identity = state_identity(card);
    bool known = false;
    for (uint i = 0; i < MOST_MEMORY_CLOCKS; i++)
        known |= memory_clock && identity->memory_clocks[i] == memory_clock;
    NEED(known, NVML_ERROR_NOT_FOUND);
    uint step = identity->graphics_clock_step ? identity->graphics_clock_step : 15;
    uint high = identity->graphics_clock_most, low = identity->graphics_clock_least;
    uint found = high >= low ? (high - low) / step + 1 : 0, room = *count;
    *count = found;
    NEED(room >= found, NVML_ERROR_INSUFFICIENT_SIZE);
    NEED_ARGUMENT(clocks || !found);
    for (uint i = 0; i < found; i++)
        clocks[i] = high - i * step;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMinMaxClockOfPState(nvmlDevice_t device, uint type, uint state,
                                                  uint *low, uint *high)
{
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(low && high && type < CLOCK_COUNT && state <= 15);
    const struct identity *identity = state_identity(card);
    *high = most(identity, type);
    *low = type == CLOCK_MEMORY ? *high : identity->graphics_clock_least;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetSupportedPerformanceStates(nvmlDevice_t device, uint *states,
                                                         uint size)
{
    enum { UNKNOWN_STATE = 32 };
    static const uint all[] = {0, 2, 8};
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(states);
    NEED(size / sizeof *states >= COUNT_OF(all), NVML_ERROR_INSUFFICIENT_SIZE);
    for (uint i = 0; i < size / sizeof *states; i++)
        states[i] = i < COUNT_OF(all) ? all[i] : UNKNOWN_STATE;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device, ullong *reasons)
{
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(reasons);
    *reasons = 0x1ff;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device, ullong *reasons)
{
    return nvmlDeviceGetSupportedClocksEventReasons(device, reasons);
}

API nvmlReturn_t nvmlDeviceGetDynamicPstatesInfo(nvmlDevice_t device,
                                                 nvmlGpuDynamicPstatesInfo_t *to)
{
    uint card;
    struct live live;
    NEED_ARGUMENT(to);
    TRY(numbers_of(device, &card, &live));
    const uint use[] = {live.gpu, live.memory, live.decoder, 0};
    *to = (nvmlGpuDynamicPstatesInfo_t){.flags = 0};
    for (uint i = 0; i < COUNT_OF(use); i++) {
        to->utilization[i].bIsPresent = 1;
        to->utilization[i].percentage = use[i];
    }
    return NVML_SUCCESS;
}

/* The first is all states that can be, the second what is now, as text. */
API nvmlReturn_t nvmlDeviceGetPerformanceModes(nvmlDevice_t device, nvmlDeviceClockText_v1_t *to)
{
    uint card;
    NEED_ARGUMENT(to);
    NEED_VERSION(to, nvmlDeviceClockText_v1_t, 1);
    TRY(card_of(device, &card));
    const struct identity *identity = state_identity(card);
    text_format(to->str, sizeof to->str,
                "perf=0, nvclock=%u, nvclockmin=%u, nvclockmax=%u, memclock=%u, memclockmin=%u, "
                "memclockmax=%u",
                identity->graphics_clock_most, identity->graphics_clock_least,
                identity->graphics_clock_most, identity->memory_clock_most,
                identity->memory_clock_most, identity->memory_clock_most);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetCurrentClockFreqs(nvmlDevice_t device, nvmlDeviceClockText_v1_t *to)
{
    uint card;
    struct live live;
    NEED_ARGUMENT(to);
    NEED_VERSION(to, nvmlDeviceClockText_v1_t, 1);
    TRY(numbers_of(device, &card, &live));
    text_format(to->str, sizeof to->str,
                "perf=%u, nvclock=%u, memclock=%u, smclock=%u, videoclock=%u",
                live.performance_state, live.graphics_clock, live.memory_clock, live.sm_clock,
                live.video_clock);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, uint policy,
                                              nvmlViolationTime_t *to)
{
    enum { LAST_POLICY = 5, FIRST_TOTAL = 10 };
    uint card;
    struct live live;
    TRY(numbers_of(device, &card, &live));
    NEED_ARGUMENT(to && policy < COUNT_OF(live.violations));
    NEED_ARGUMENT(policy <= LAST_POLICY || policy >= FIRST_TOTAL);
    *to = (nvmlViolationTime_t){live.timestamp, live.violations[policy]};
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, uint sensor, uint *temperature)
{
    NEED_ARGUMENT(temperature && sensor == 0);
    return live_of(device, offsetof(struct live, temperature), temperature, sizeof *temperature);
}

API nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_v1_t *to)
{
    NEED_ARGUMENT(to);
    NEED_VERSION(to, nvmlTemperature_v1_t, 1);
    uint found;
    TRY(nvmlDeviceGetTemperature(device, to->sensorType, &found));
    to->temperature = (int)found;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device, nvmlMarginTemperature_v1_t *to)
{
    NEED_ARGUMENT(to);
    NEED_VERSION(to, nvmlMarginTemperature_v1_t, 1);
    uint card, now;
    TRY(nvmlDeviceGetTemperature(device, 0, &now));
    TRY(card_of(device, &card));
    NEED(has_temperature_margin(state_identity(card)), NVML_ERROR_NOT_SUPPORTED);
    to->marginTemperature = (int)state_identity(card)->threshold_gpu_most - (int)now;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, uint which,
                                                   uint *temperature)
{
    enum { THRESHOLDS = 8 };
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(temperature && which < THRESHOLDS);
    const struct identity *identity = state_identity(card);
    const uint known[THRESHOLDS] = {identity->threshold_shutdown, identity->threshold_slowdown,
                                    identity->threshold_memory_most, identity->threshold_gpu_most};
    NEED(known[which], NVML_ERROR_NOT_SUPPORTED);
    *temperature = known[which];
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetThermalSettings(nvmlDevice_t device, uint sensor,
                                              nvmlGpuThermalSettings_t *to)
{
    enum { INSIDE = 1, OF_GPU = 1, ALL_SENSORS = 15 };
    uint now, card;
    NEED_ARGUMENT(to && (sensor == 0 || sensor == ALL_SENSORS));
    TRY(nvmlDeviceGetTemperature(device, 0, &now));
    TRY(card_of(device, &card));
    *to = (nvmlGpuThermalSettings_t){
        1, {{INSIDE, 0, (int)state_identity(card)->threshold_shutdown, (int)now, OF_GPU}}};
    return NVML_SUCCESS;
}

static nvmlReturn_t fan_of(nvmlDevice_t device, uint fan, uint *card)
{
    TRY(card_of(device, card));
    NEED(state_identity(*card)->flags & FLAG_FAN, NVML_ERROR_NOT_SUPPORTED);
    NEED_ARGUMENT(fan < state_identity(*card)->fans);
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, uint fan, uint *speed)
{
    uint card;
    TRY(fan_of(device, fan, &card));
    NEED_ARGUMENT(speed);
    return LIVE_FIELD(card, fan, speed);
}

API nvmlReturn_t nvmlDeviceGetTargetFanSpeed(nvmlDevice_t device, uint fan, uint *speed)
{
    return nvmlDeviceGetFanSpeed_v2(device, fan, speed);
}

API nvmlReturn_t nvmlDeviceGetFanSpeedRPM(nvmlDevice_t device, nvmlFanSpeedInfo_v1_t *to)
{
    uint card;
    NEED_ARGUMENT(to);
    NEED_VERSION(to, nvmlFanSpeedInfo_v1_t, 1);
    TRY(fan_of(device, to->fan, &card));
    return LIVE_FIELD(card, fan_rpm, &to->speed);
}

API nvmlReturn_t nvmlDeviceGetFanControlPolicy_v2(nvmlDevice_t device, uint fan, uint *policy)
{
    uint card;
    TRY(fan_of(device, fan, &card));
    NEED_ARGUMENT(policy);
    *policy = 0;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetCoolerInfo(nvmlDevice_t device, nvmlCoolerInfo_v1_t *to)
{
    enum { VARIABLE = 2, COOLS_GPU = 2 };
    uint card;
    NEED_ARGUMENT(to);
    NEED_VERSION(to, nvmlCoolerInfo_v1_t, 1);
    TRY(fan_of(device, to->index, &card));
    to->signalType = VARIABLE;
    to->target = COOLS_GPU;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, uint *mode)
{
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(mode);
    *mode = 1;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, uint counter, uint *rate)
{
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(rate && counter < 2);
    return live_copy(
        card, counter ? offsetof(struct live, pcie_received) : offsetof(struct live, pcie_sent),
        rate, sizeof *rate);
}

API nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t device, uint *speed)
{
    uint card, generation;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(speed);
    TRY(LIVE_FIELD(card, pcie_generation, &generation));
    /* MT/s of a lane: 2500, 5000, and from the third generation on 8000 and twice as much each
     * time. */
    *speed = generation > 2 ? 1000u << generation : generation * 2500;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetPcieLinkMaxSpeed(nvmlDevice_t device, uint *speed)
{
    uint card;
    TRY(card_of(device, &card));
    NEED_ARGUMENT(speed);
    *speed = state_identity(card)->pcie_generation_most; /* NVML counts them alike */
    return NVML_SUCCESS;
}
