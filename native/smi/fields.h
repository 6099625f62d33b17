/* All that a card shows, by the names that --query-gpu knows. */
#ifndef HAMI_MOCK_SMI_FIELDS_H
#define HAMI_MOCK_SMI_FIELDS_H

#include "calls.h"
#include "print.h"

#define FIELD_SIZE 128u

/* Where a field comes from. */
enum source {
    NUMBER,
    WIDE,
    FIRST, /* of a pair */
    SECOND,
    WHICH, /* a number of several, by the argument */
    TEXT,
    BY_ID,  /* a field value; the argument is its ID */
    PCI,    /* the argument says which part */
    REASON, /* the argument is a bit of why clocks are low */
    UTILIZATION,
    MEMORY,    /* the argument says which part: total, reserved, free, used */
    BAR1,      /* total, free, used */
    PROTECTED, /* likewise, of confidential computing */
    ENCODER,   /* sessions, frames per second, latency */
    FRAME_BUFFER_CAPTURE,
    ECC,  /* ECC_ARGUMENT */
    SRAM, /* a number of the record's */
    RETIRED,
    REMAPPED,
    HISTOGRAM,
    SPECIAL, /* a function of its own */
    ABSENT,  /* no card here has it */
};

/* How it is written. */
enum look {
    PLAIN,
    SIGNED, /* of 32 bits */
    WATTS,  /* from mW */
    MIB,    /* from bytes */
    SWITCH,
    ON_OFF,
    YES_NO,
    ACTIVE,
    STATE,
    COMPUTE_MODE,
    OPERATION_MODE,
    BRAND,
    ARCHITECTURE,
    VIRTUALIZATION,
    LANES,
    HEX_SMALL, /* with small letters */
    HEX1,      /* with so many digits */
    HEX2,
    HEX4,
    HEX8,
    HEX16,
};

typedef nvmlReturn_t special_call(nvmlDevice_t, char *);

struct field {
    const char *name, *alias, *unit; /* the unit may be NULL */
    enum source source;
    enum look look;
    uint argument;
    union {
        number_call *number;
        wide_call *wide;
        pair_call *pair;
        which_call *which;
        text_call *text;
        special_call *special;
    } ask;
};

/* Location 8 is the sum of all. */
#define ECC_ARGUMENT(uncorrected, ever, location) ((uncorrected) | (ever) << 1 | (location) << 2)

/* field_table.c: those that people can ask for, and others, whose names begin with a dot. */
extern const struct field fields[];
extern const uint field_count;

/* Finds a field, or NULL. */
const struct field *field_named(const char *name, size_t length);
/* Writes its value without the unit, FIELD_SIZE bytes at most; in case of an error the error. */
nvmlReturn_t field_read(const struct field *field, nvmlDevice_t device, char *to);
/* The same by name, and with its unit: for those who know that there is such a field. */
nvmlReturn_t field_show(const char *name, nvmlDevice_t device, char *to);

special_call show_timestamp, show_moment, show_cuda_version, show_driver_version, show_count,
    show_bus_id, show_compute_capability, show_margin, show_addressing_mode, show_c2c_mode,
    show_fabric_state, show_fabric_status, show_clique, show_cluster, show_gsp_firmware,
    show_inforom_oem, show_inforom_ecc, show_inforom_power, show_flush_time, show_flush_duration;

#endif
