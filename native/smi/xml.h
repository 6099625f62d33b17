/* What -q -x shows: rows. */
#ifndef HAMI_MOCK_SMI_XML_H
#define HAMI_MOCK_SMI_XML_H

#include "smi.h"

struct xml_row {
    uint depth;
    const char *tag;
    const char *field; /* NULL: a row with others inside, or … */
    const char *limit; /* a field that newer cards have instead: how far they are from it */
    void (*show)(nvmlDevice_t); /* … what prints its rows by itself */
};

extern const struct xml_row xml_rows[];
extern const uint xml_row_count;

void xml_begin(uint depth, const char *tag);
void xml_end(uint depth, const char *tag);
void xml_text(uint depth, const char *tag, const char *text);

void xml_mig_devices(nvmlDevice_t card);
void xml_retired_pages(nvmlDevice_t card);
void xml_supported_clocks(nvmlDevice_t card);
void xml_processes(nvmlDevice_t card);
void xml_accounted_processes(nvmlDevice_t card);

#endif
