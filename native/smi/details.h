/* What -q shows: rows, and parts that -d chooses. */
#ifndef HAMI_MOCK_SMI_DETAILS_H
#define HAMI_MOCK_SMI_DETAILS_H

#include "smi.h"

enum part {
    ALWAYS = 0, /* only where no parts are named */
    IN_MEMORY = 1 << 0,
    IN_UTILIZATION = 1 << 1,
    IN_ECC = 1 << 2,
    IN_TEMPERATURE = 1 << 3,
    IN_POWER = 1 << 4,
    IN_CLOCK = 1 << 5,
    IN_COMPUTE = 1 << 6,
    IN_PIDS = 1 << 7,
    IN_PERFORMANCE = 1 << 8,
    IN_SUPPORTED_CLOCKS = 1 << 9, /* nowhere else */
    IN_PAGE_RETIREMENT = 1 << 10,
    IN_ACCOUNTING = 1 << 11,
    IN_ENCODER_STATS = 1 << 12,
    IN_ROW_REMAPPER = 1 << 13,
    IN_VOLTAGE = 1 << 14,
    IN_FBC_STATS = 1 << 15,
    IN_RESET_STATUS = 1 << 16,
    IN_SAMPLES = 1 << 17, /* with one of the above: only where that is named */
};

struct row {
    uint depth;
    uint parts;
    const char *label;
    const char *field;          /* NULL: a heading, or … */
    void (*show)(nvmlDevice_t); /* … what prints its rows by itself */
    const char *needs;          /* of a heading: without that field it is a row that says N/A */
    const char *limit; /* a field that newer cards have instead: how far they are from it */
};

extern const struct row rows[];
extern const uint row_count;

/* Prints a row; a text of NULL makes it a heading. */
void row_print(uint depth, const char *label, const char *text);

void show_mig_devices(nvmlDevice_t device);
void show_process_rows(nvmlDevice_t device);
void show_accounted(nvmlDevice_t device);
void show_supported_clocks(nvmlDevice_t device);
void show_utilization_samples(nvmlDevice_t device);
void show_power_samples(nvmlDevice_t device);
void show_clock_samples(nvmlDevice_t device);

#endif
