#include "details.h"

static const struct {
    const char *name;
    uint part;
} parts[] = {
    {"MEMORY", IN_MEMORY},
    {"UTILIZATION", IN_UTILIZATION},
    {"ECC", IN_ECC},
    {"TEMPERATURE", IN_TEMPERATURE},
    {"POWER", IN_POWER},
    {"CLOCK", IN_CLOCK},
    {"COMPUTE", IN_COMPUTE},
    {"PIDS", IN_PIDS},
    {"PERFORMANCE", IN_PERFORMANCE},
    {"SUPPORTED_CLOCKS", IN_SUPPORTED_CLOCKS},
    {"PAGE_RETIREMENT", IN_PAGE_RETIREMENT},
    {"ACCOUNTING", IN_ACCOUNTING},
    {"ENCODER_STATS", IN_ENCODER_STATS},
    {"ROW_REMAPPER", IN_ROW_REMAPPER},
    {"VOLTAGE", IN_VOLTAGE},
    {"FBC_STATS", IN_FBC_STATS},
    {"RESET_STATUS", IN_RESET_STATUS},
};

static bool equal_in_any_case(const char *name, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char letter = text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] - 32) : text[i];
        if (name[i] != letter)
            return false;
    }
    return !name[length];
}

/* Reads the parts that -d names, none if it is NULL. */
static int read_parts(const char *text, uint *chosen)
{
    *chosen = 0;
    while (text && *text) {
        size_t length = 0;
        uint i = 0;
        while (text[length] && text[length] != ',')
            length++;
        while (i < COUNT_OF(parts) && !equal_in_any_case(parts[i].name, text, length))
            i++;
        *chosen = i < COUNT_OF(parts) ? *chosen | parts[i].part : 0;
        if (!*chosen)
            break;
        text += length + (text[length] == ',');
    }
    if (!text || *chosen)
        return EXIT_GOOD;
    print("Failed to parse --display/-d flags\n");
    return EXIT_USAGE;
}

void row_print(uint depth, const char *label, const char *text)
{
    uint indent = 4 * depth;
    if (text)
        print("%*s%-*s: %s\n", (int)indent, "", (int)(42 - indent), label, text);
    else
        print("%*s%s\n", (int)indent, "", label);
}

static bool is_wanted(const struct row *row, uint chosen)
{
    if (!chosen)
        return !(row->parts & (IN_SUPPORTED_CLOCKS | IN_SAMPLES));
    return row->parts & chosen & ~IN_SAMPLES;
}

static void show_card(nvmlDevice_t device, uint chosen)
{
    char text[FIELD_SIZE];
    uint skipped = 0; /* the depth of a heading whose rows are left out */
    field_show("pci.bus_id", device, text);
    print("GPU %s\n", text);
    for (uint i = 0; i < row_count; i++) {
        const struct row *row = &rows[i];
        if (skipped && row->depth > skipped)
            continue;
        skipped = 0;
        if (!is_wanted(row, chosen))
            continue;
        if (row->show) {
            row->show(device);
        } else if (row->limit && field_show(row->limit, device, text) == NVML_SUCCESS) {
            char label[FIELD_SIZE];
            text_print(label, sizeof label, "%s T.Limit Temp", row->label);
            row_print(row->depth, label, text);
        } else if (row->field) {
            char label[FIELD_SIZE];
            field_show(row->field, device, text);
            text_print(label, sizeof label, "%s%s", row->label, row->limit ? " Temp" : "");
            row_print(row->depth, label, text);
        } else if (row->needs && field_show(row->needs, device, text) == NVML_ERROR_NOT_SUPPORTED) {
            row_print(row->depth, row->label, text);
            skipped = row->depth;
        } else
            row_print(row->depth, row->label, NULL);
    }
    print("\n");
}

int details_show(const struct cards *cards, const char *sections)
{
    uint chosen;
    char text[FIELD_SIZE];
    int code = read_parts(sections, &chosen);
    if (code)
        return code;
    print("\n==============NVSMI LOG==============\n\n");
    field_show(".moment", NULL, text);
    row_print(0, "Timestamp", text);
    field_show("driver_version", NULL, text);
    row_print(0, "Driver Version", text);
    field_show(".cuda", NULL, text);
    row_print(0, "CUDA Version", text);
    field_show("count", NULL, text);
    print("\n");
    row_print(0, "Attached GPUs", text);
    for (uint i = 0; i < cards->count; i++)
        show_card(cards->card[i].device, chosen);
    return EXIT_GOOD;
}
