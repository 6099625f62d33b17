/* Setting what a card has one of: persistence, power, compute mode, MIG mode. */
#include "smi.h"

static int invalid(const char *what, const char *value)
{
    print("Invalid %s: %s\n", what, value);
    return EXIT_USAGE;
}

static const char *bus_id(const struct chosen *card)
{
    static char text[FIELD_SIZE];
    field_show("pci.bus_id", card->device, text);
    return text;
}

static bool read_choice(const char *value, uint most, uint *choice)
{
    uint64_t number;
    const char *end = text_number(value, 10, &number);
    *choice = (uint)number;
    return end && !*end && number <= most;
}

static int set_persistence(const struct chosen *card, const char *value)
{
    static const char *const states[] = {"Disabled", "Enabled"};
    uint mode, before;
    if (!read_choice(value, 1, &mode))
        return invalid("persistence mode", value);
    nvmlReturn_t result = nvmlDeviceGetPersistenceMode(card->device, &before);
    if (result == NVML_SUCCESS && before == mode) {
        print("Persistence mode is already %s for GPU %s.\n", states[mode], bus_id(card));
        return EXIT_GOOD;
    }
    if (result == NVML_SUCCESS)
        result = nvmlDeviceSetPersistenceMode(card->device, mode);
    if (result == NVML_SUCCESS)
        print("%s persistence mode for GPU %s.\n", states[mode], bus_id(card));
    else
        print("Unable to set persistence mode for GPU %s: %s\n", bus_id(card),
              nvmlErrorString(result));
    return (int)result;
}

static int set_power(const struct chosen *card, const char *value)
{
    uint64_t watts = 0, fraction = 0;
    uint least, most, before = 0, digits = 0;
    const char *end = text_number(value, 10, &watts);
    if (end && *end == '.')
        for (end++; *end >= '0' && *end <= '9'; end++)
            if (digits++ < 3)
                fraction = fraction * 10 + (uint64_t)(*end - '0');
    for (; digits < 3; digits++)
        fraction *= 10;
    if (!end || *end || watts > 100000)
        return invalid("power limit", value);
    uint limit = (uint)(watts * 1000 + fraction);
    nvmlReturn_t result = nvmlDeviceGetPowerManagementLimitConstraints(card->device, &least, &most);
    if (result == NVML_SUCCESS && (limit < least || limit > most)) {
        print("Provided power limit %u.%02u W is not a valid power limit which should be between "
              "%u.%02u W and %u.%02u W for GPU %s\n",
              limit / 1000, limit % 1000 / 10, least / 1000, least % 1000 / 10, most / 1000,
              most % 1000 / 10, bus_id(card));
        return EXIT_USAGE;
    }
    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetPowerManagementLimit(card->device, &before);
    if (result == NVML_SUCCESS)
        result = nvmlDeviceSetPowerManagementLimit(card->device, limit);
    if (result == NVML_SUCCESS)
        print("Power limit for GPU %s was set to %u.%02u W from %u.%02u W.\n", bus_id(card),
              limit / 1000, limit % 1000 / 10, before / 1000, before % 1000 / 10);
    else
        print("Failed to set power management limit for GPU %s: %s\n", bus_id(card),
              nvmlErrorString(result));
    return (int)result;
}

static int set_compute_mode(const struct chosen *card, const char *value)
{
    static const char *const names[] = {"DEFAULT", "EXCLUSIVE_THREAD", "PROHIBITED",
                                        "EXCLUSIVE_PROCESS"};
    enum { EXCLUSIVE_THREAD = 1, EXCLUSIVE_PROCESS = 3 };
    uint mode = 0;
    if (!read_choice(value, EXCLUSIVE_PROCESS, &mode))
        for (mode = 0; mode < COUNT_OF(names) && !text_equal(names[mode], value);)
            mode++;
    if (mode >= COUNT_OF(names))
        return invalid("compute mode", value);
    if (mode == EXCLUSIVE_THREAD)
        mode = EXCLUSIVE_PROCESS; /* as drivers do since there is no such mode any more */
    nvmlReturn_t result = nvmlDeviceSetComputeMode(card->device, mode);
    if (result == NVML_SUCCESS)
        print("Set compute mode to %s for GPU %s.\n", names[mode], bus_id(card));
    else
        print("Unable to set the compute mode for GPU %s: %s\n", bus_id(card),
              nvmlErrorString(result));
    return (int)result;
}

static int set_mig(const struct chosen *card, const char *value)
{
    static const char *const verbs[] = {"disable", "enable"}, *const states[] = {"Disabled",
                                                                                 "Enabled"};
    uint mode;
    nvmlReturn_t activation;
    if (!read_choice(value, 1, &mode))
        return invalid("MIG mode", value);
    nvmlReturn_t result = nvmlDeviceSetMigMode(card->device, mode, &activation);
    if (result != NVML_SUCCESS)
        print("Unable to %s MIG Mode for GPU %s: %s\n", verbs[mode], bus_id(card),
              nvmlErrorString(result));
    else if (activation != NVML_SUCCESS)
        print("Warning: MIG mode is in pending %s state for GPU %s:%s\n", verbs[mode], bus_id(card),
              nvmlErrorString(activation));
    else
        print("%s MIG Mode for GPU %s\n", states[mode], bus_id(card));
    return (int)result;
}

const struct setting settings[] = {
    {"-pm", "--persistence-mode", set_persistence},
    {"-pl", "--power-limit", set_power},
    {"-c", "--compute-mode", set_compute_mode},
    {"-mig", "--multi-instance-gpu", set_mig},
};
const uint setting_count = COUNT_OF(settings);

int settings_apply(const struct cards *cards, const struct setting *setting, const char *value)
{
    for (uint i = 0; i < cards->count; i++) {
        int code = setting->set(&cards->card[i], value);
        if (code) {
            print("Terminating early due to previous errors.\n");
            return code;
        }
    }
    print("All done.\n");
    return EXIT_GOOD;
}
