/* Lists for programs: --query-gpu. */
#include "smi.h"

#define MOST_ASKED 256u

int unknown_field(const char *name, size_t length)
{
    print("Field \"%.*s\" is not a valid field to query.\n\n", (int)length, name);
    return EXIT_USAGE;
}

int format_read(const char *text, struct format *format)
{
    static const char *const words[] = {"csv", "noheader", "nounits"};
    bool seen[COUNT_OF(words)] = {false}, given = text;
    while (text && *text) {
        size_t length = 0;
        uint word = 0;
        while (text[length] && text[length] != ',')
            length++;
        while (word < COUNT_OF(words) && !text_equal_part(words[word], text, length))
            word++;
        if (word == COUNT_OF(words)) {
            print("Format modifier is not recognized.\n");
            return EXIT_USAGE;
        }
        seen[word] = true;
        text += length + (text[length] == ',');
    }
    *format = (struct format){!seen[1], !seen[2]};
    if (seen[0])
        return EXIT_GOOD;
    print(given ? "Format modifier --format=csv is mandatory.\n"
                : "\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help.\n\n");
    return EXIT_USAGE;
}

static int read_names(const char *names, const struct field *to[MOST_ASKED], uint *count)
{
    for (*count = 0; *names && *count < MOST_ASKED; ++*count) {
        size_t length = 0;
        while (*names == ' ')
            names++;
        while (names[length] && names[length] != ',' && names[length] != ' ')
            length++;
        /* Names that begin with a dot are the program's own. */
        to[*count] = *names == '.' ? NULL : field_named(names, length);
        if (!to[*count])
            return unknown_field(names, length);
        for (names += length; *names == ' ';)
            names++;
        names += *names == ',';
    }
    return EXIT_GOOD;
}

static void print_value(const struct field *field, nvmlDevice_t device, bool units)
{
    char text[FIELD_SIZE];
    if (field_read(field, device, text) != NVML_SUCCESS)
        print("[%s]", text);
    else
        print("%s%s%s", text, units && field->unit ? " " : "",
              units && field->unit ? field->unit : "");
}

int query_show(const struct cards *cards, const char *names, const char *format_text, bool is_first)
{
    const struct field *asked[MOST_ASKED];
    struct format format;
    uint count;
    int code = read_names(names, asked, &count);
    if (code || (code = format_read(format_text, &format)))
        return code;
    for (uint i = 0; is_first && format.header && i < count; i++) {
        bool unit = asked[i]->unit; /* it stays there with nounits too */
        print("%s%s%s%s%s", asked[i]->name, unit ? " [" : "", unit ? asked[i]->unit : "",
              unit ? "]" : "", i + 1 < count ? ", " : "\n");
    }
    for (uint i = 0; i < cards->count; i++)
        for (uint k = 0; k < count; k++) {
            print_value(asked[k], cards->card[i].device, format.units);
            print(k + 1 < count ? ", " : "\n");
        }
    return EXIT_GOOD;
}

/* In quotes, with an empty line before each: so programs find them. */
void name_print(const char *name, const char *alias, const char *unit)
{
    print("\n\"%s\"", name);
    if (alias)
        print(" or \"%s\"", alias);
    print("\n");
    if (unit)
        print("In %s.\n", unit);
}

int query_names(void)
{
    print("Fields for the switch \"--query-gpu\", separated by commas:\n");
    for (uint i = 0; i < field_count; i++)
        if (*fields[i].name != '.')
            name_print(fields[i].name, fields[i].alias, fields[i].unit);
    return EXIT_GOOD;
}
