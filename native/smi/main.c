/* What the user asks for. */
#include "smi.h"

struct options {
    const char *ids, *display, *query_gpu, *query_processes, *format, *groups;
    const struct setting *setting;
    const char *value;
    bool list, details, matrix, status;
    uint64_t pause; /* ns between two rounds; 0: one round only */
    uint rounds;    /* 0: until it is stopped */
};

static int refuse(const char *option, const char *why)
{
    print("ERROR: Option %s %s. Please run 'nvidia-smi -h'%s\n\n", option, why,
          text_equal(why, "is not recognized") ? "." : " for help.");
    return text_equal(why, "is not recognized") ? EXIT_BAD_OPTION : EXIT_USAGE;
}

static bool starts_with(const char *text, const char *start)
{
    size_t length = text_length(start);
    return text_length(text) >= length && text_equal_part(start, text, length);
}

/* Options with a value: -i 0, -i=0, --id=0 or --id 0. */
static const char *value_of(const char *name, const char *long_name, int count, char **arguments,
                            int *at)
{
    const char *names[] = {name, long_name};
    for (uint i = 0; i < COUNT_OF(names); i++) {
        if (!names[i] || !starts_with(arguments[*at], names[i]))
            continue;
        const char *rest = arguments[*at] + text_length(names[i]);
        if (*rest == '=')
            return rest + 1;
        if (!*rest && *at + 1 < count)
            return arguments[++*at];
        if (!*rest)
            return "";
    }
    return NULL;
}

static bool read_uint(const char *text, uint64_t *value)
{
    const char *end = text_number(text, 10, value);
    return end && !*end;
}

/* Reads one option; returns what the program should if it can't be. */
static int read_option(int count, char **arguments, int *at, bool is_monitor,
                       struct options *options)
{
    const struct {
        const char *name, *long_name, **to;
    } texts[] = {
        {"-i", "--id", &options->ids},
        {is_monitor ? NULL : "-d", "--display", &options->display},
        {"--query-gpu", NULL, &options->query_gpu},
        {"--query-compute-apps", NULL, &options->query_processes},
        {"--format", NULL, &options->format},
        {is_monitor ? "-s" : NULL, is_monitor ? "--select" : NULL, &options->groups},
    };
    const char *option = arguments[*at], *value;
    uint64_t number;
    for (uint i = 0; i < COUNT_OF(texts); i++)
        if ((value = value_of(texts[i].name, texts[i].long_name, count, arguments, at))) {
            *texts[i].to = value;
            return EXIT_GOOD;
        }
    if ((value = value_of("-lms", "--loop-ms", count, arguments, at))) {
        if (!read_uint(value, &number) || !number)
            return refuse(option, "needs milliseconds");
        options->pause = number * 1000000;
    } else if ((value = value_of(is_monitor ? "-d" : "-l", "--loop", count, arguments, at))) {
        if (!read_uint(value, &number) || !number)
            return refuse(option, "needs seconds");
        options->pause = number * 1000000000;
    } else if ((is_monitor || options->pause) &&
               (value = value_of("-c", "--count", count, arguments, at))) {
        if (!read_uint(value, &number) || !number || number > UINT32_MAX)
            return refuse(option, "needs a number of rounds");
        options->rounds = (uint)number;
    } else if (text_equal(option, "-L") || text_equal(option, "--list-gpus")) {
        options->list = true;
    } else if (text_equal(option, "-q") || text_equal(option, "--query")) {
        options->details = true;
    } else if (text_equal(option, "-m") || text_equal(option, "--matrix")) {
        options->matrix = true;
    } else if (text_equal(option, "-s") || text_equal(option, "--status")) {
        options->status = true;
    } else {
        for (uint i = 0; i < setting_count; i++)
            if ((value =
                     value_of(settings[i].option, settings[i].long_option, count, arguments, at))) {
                options->setting = &settings[i];
                options->value = value;
                return EXIT_GOOD;
            }
        return refuse(option, "is not recognized");
    }
    return EXIT_GOOD;
}

/* Shows a view of the options once. */
static int show(const char *command, const struct options *options, uint round)
{
    struct cards cards;
    if (options->list)
        return cards_list();
    int code = cards_choose(options->ids, &cards);
    if (code)
        return code;
    if (text_equal(command, "dmon"))
        return monitor_cards(&cards, options->groups, round);
    if (text_equal(command, "pmon"))
        return monitor_processes(&cards, round);
    if (text_equal(command, "topo"))
        return topology_show(&cards);
    if (text_equal(command, "nvlink"))
        return links_show(&cards);
    if (options->setting)
        return settings_apply(&cards, options->setting, options->value);
    if (options->query_gpu)
        return query_show(&cards, options->query_gpu, options->format, !round);
    if (options->query_processes)
        return processes_query(&cards, options->query_processes, options->format);
    return options->details ? details_show(&cards, options->display) : table_show(&cards);
}

static int show_rounds(const char *command, const struct options *options)
{
    for (uint round = 0;; round++) {
        int code = show(command, options, round);
        if (code || !options->pause || (options->rounds && round + 1 >= options->rounds))
            return code;
        print_flush();
        sys_sleep(options->pause);
    }
}

/* mig has options of its own, beside -i. */
static int run_mig(int count, char **arguments)
{
    struct cards cards;
    const char *ids = NULL, *value;
    int kept = 0;
    for (int i = 0; i < count; i++)
        if ((value = value_of("-i", "--id", count, arguments, &i)))
            ids = value;
        else
            arguments[kept++] = arguments[i];
    int code = cards_choose(ids, &cards);
    return code ? code : mig_command(&cards, kept, arguments);
}

int run(int count, char **arguments)
{
    static const char *const commands[] = {"dmon", "pmon", "topo", "nvlink", "mig"};
    struct options options = {.groups = "puc"};
    const char *command = "";
    int at = 1;
    for (uint i = 0; count > 1 && i < COUNT_OF(commands); i++)
        if (text_equal(arguments[1], commands[i]))
            command = arguments[at++];
    bool is_monitor = text_equal(command, "dmon") || text_equal(command, "pmon");
    if (is_monitor)
        options.pause = 1000000000;
    for (int i = at; i < count; i++)
        if (text_equal(arguments[i], "-h") || text_equal(arguments[i], "--help"))
            return help_show();
        else if (text_equal(arguments[i], "--help-query-gpu"))
            return query_names();
    nvmlReturn_t result = nvmlInit_v2();
    if (result != NVML_SUCCESS)
        return no_driver(result);
    if (count == 2 && text_equal(arguments[1], "--version"))
        return version_show();
    if (text_equal(command, "mig"))
        return run_mig(count - at, arguments + at);
    for (; at < count; at++) {
        int code = read_option(count, arguments, &at, is_monitor, &options);
        if (code)
            return code;
    }
    if (options.list && options.ids)
        return refuse("-i", "is not valid for this command");
    if (options.display && !options.details)
        return refuse("-d", "is not valid for this command");
    return show_rounds(command, &options);
}
