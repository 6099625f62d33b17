/* dmon: a line of numbers for each card, again and again. */
#include "smi.h"

static const struct {
    char group;
    const char *head, *unit, *field;
} columns[] = {
    {'p', "pwr", "W", "power.draw"},
    {'p', "gtemp", "C", "temperature.gpu"},
    {'p', "mtemp", "C", "temperature.memory"},
    {'u', "sm", "%", "utilization.gpu"},
    {'u', "mem", "%", "utilization.memory"},
    {'u', "enc", "%", "utilization.encoder"},
    {'u', "dec", "%", "utilization.decoder"},
    {'u', "jpg", "%", "utilization.jpeg"},
    {'u', "ofa", "%", "utilization.ofa"},
    {'c', "mclk", "MHz", "clocks.mem"},
    {'c', "pclk", "MHz", "clocks.gr"},
    {'m', "fb", "MB", "memory.used"},
    {'m', "bar1", "MB", ".bar1.used"},
    {'m', "ccpm", "MB", "protected_memory.used"},
    {'e', "sbecc", "errs", "ecc.errors.corrected.volatile.total"},
    {'e', "dbecc", "errs", "ecc.errors.uncorrected.volatile.total"},
    {'e', "pci", "errs", ".replays"},
    {'t', "rxpci", "KB/s", ".received"},
    {'t', "txpci", "KB/s", ".sent"},
};

static bool is_in(const char *groups, char group)
{
    while (*groups && *groups != group)
        groups++;
    return *groups;
}

static void print_value(const char *name, nvmlDevice_t device)
{
    char text[FIELD_SIZE];
    if (field_read(field_named(name, text_length(name)), device, text) != NVML_SUCCESS)
        text_copy(text, sizeof text, "-");
    size_t whole = 0;
    while (text[whole] && text[whole] != '.')
        whole++;
    text[whole] = 0;
    print("%6s ", text);
}

int monitor_cards(const struct cards *cards, const char *groups, uint round)
{
    static const char known[] = "pucmet";
    for (size_t i = 0; groups[i]; i++)
        if (!is_in(known, groups[i])) {
            print("There is no group %c of columns; -s knows %s\n", groups[i], known);
            return EXIT_USAGE;
        }
    if (round % 20 == 0) {
        print("# gpu ");
        for (uint i = 0; i < COUNT_OF(columns); i++)
            if (is_in(groups, columns[i].group))
                print("%6s ", columns[i].head);
        print("\n# Idx ");
        for (uint i = 0; i < COUNT_OF(columns); i++)
            if (is_in(groups, columns[i].group))
                print("%6s ", columns[i].unit);
        print("\n");
    }
    for (uint k = 0; k < cards->count; k++) {
        print("%5u ", cards->card[k].index);
        for (uint i = 0; i < COUNT_OF(columns); i++)
            if (is_in(groups, columns[i].group))
                print_value(columns[i].field, cards->card[k].device);
        print("\n");
    }
    return EXIT_GOOD;
}
