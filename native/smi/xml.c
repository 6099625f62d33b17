#include "xml.h"

static void indent(uint depth) { print_line('\t', depth); }

static void print_escaped(const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&': print("&amp;"); break;
        case '<': print("&lt;"); break;
        case '>': print("&gt;"); break;
        default: print("%c", *text);
        }
}

void xml_begin(uint depth, const char *tag)
{
    indent(depth);
    print("<%s>\n", tag);
}

void xml_end(uint depth, const char *tag)
{
    indent(depth);
    print("</%s>\n", tag);
}

void xml_text(uint depth, const char *tag, const char *text)
{
    indent(depth);
    print("<%s>", tag);
    print_escaped(text);
    print("</%s>\n", tag);
}

static bool starts_with(const char *text, const char *start)
{
    size_t length = text_length(start);
    return text_length(text) >= length && text_equal_part(start, text, length);
}

static void show_field(const struct xml_row *row, nvmlDevice_t device)
{
    static const char ending[] = "_threshold";
    char text[FIELD_SIZE], tag[FIELD_SIZE];
    size_t base = text_copy(tag, sizeof tag, row->tag);
    if (row->limit && field_show(row->limit, device, text) == NVML_SUCCESS)
        text_print(tag + base - (sizeof ending - 1), sizeof tag - base, "_tlimit%s", ending);
    else
        field_show(row->field, device, text);
    /* PCI's numbers have no 0x here. */
    xml_text(row->depth, tag,
             starts_with(tag, "pci_") && starts_with(text, "0x") ? text + 2 : text);
}

static void show_card(nvmlDevice_t device)
{
    enum { INSIDE = 2, DEEPEST = 8 };
    const char *open[DEEPEST] = {NULL};
    uint depth = INSIDE; /* of the next row, if nothing ends before it */
    char bus_id[FIELD_SIZE];
    field_show("pci.bus_id", device, bus_id);
    print("\t<gpu id=\"%s\">\n", bus_id);
    for (uint i = 0; i < xml_row_count; i++) {
        const struct xml_row *row = &xml_rows[i];
        for (; depth > row->depth; depth--)
            xml_end(depth - 1, open[depth - 1]);
        if (row->show)
            row->show(device);
        else if (row->field)
            show_field(row, device);
        else {
            xml_begin(row->depth, row->tag);
            open[depth++] = row->tag;
        }
    }
    for (; depth > INSIDE; depth--)
        xml_end(depth - 1, open[depth - 1]);
    print("\t</gpu>\n\n");
}

int xml_show(const struct cards *cards)
{
    static const struct {
        const char *tag, *field;
    } about[] = {{"timestamp", ".moment"},
                 {"driver_version", "driver_version"},
                 {"cuda_version", ".cuda"},
                 {"attached_gpus", "count"}};
    char text[FIELD_SIZE];
    print("<?xml version=\"1.0\" ?>\n"
          "<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n"
          "<nvidia_smi_log>\n");
    for (uint i = 0; i < COUNT_OF(about); i++) {
        field_show(about[i].field, NULL, text);
        xml_text(1, about[i].tag, text);
    }
    for (uint i = 0; i < cards->count; i++)
        show_card(cards->card[i].device);
    print("</nvidia_smi_log>\n");
    return EXIT_GOOD;
}
