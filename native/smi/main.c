/* What the user asks for. */
#include "smi.h"

struct options {
    const char *ids, *display, *query_gpu, *query_processes, *format, *groups;
    const char *seconds, *milliseconds, *count;
    const struct setting *setting;
    const char *value;
    bool list, list_excluded, details, xml, matrix, status;
    uint64_t pause; /* ns between two rounds; 0: one round only */
    uint rounds;    /* 0: until it is stopped */
};

static int refuse(const char *option, const char *why, int code)
{
    print("ERROR: Option %s %s. Please run 'nvidia-smi -h' for help.\n\n", option, why);
    return code;
}

static int unknown_option(const char *command, const char *option)
{
    if (*command) {
        print("Option \"%s\" is not recognized.\n", option);
        return EXIT_USAGE;
    }
    print("ERROR: Option %s is not recognized. Please run 'nvidia-smi -h'.\n\n", option);
    return EXIT_BAD_OPTION;
}

static bool starts_with(const char *text, const char *start)
{
    size_t length = text_length(start);
    return text_length(text) >= length && text_equal_part(start, text, length);
}

/* What value_of returns where the value is missing. */
static const char missing[] = "";

/* Options with a value: -i 0, -i=0, --id=0 or --id 0. Returns NULL if it is another one. */
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
        if (!*rest)
            return *at + 1 < count && arguments[*at + 1][0] != '-' ? arguments[++*at] : missing;
    }
    return NULL;
}

/* Reads one option; returns what the program should if it can't be. */
static int read_option(int count, char **arguments, int *at, const char *command,
                       struct options *options)
{
    bool is_monitor = text_equal(command, "dmon") || text_equal(command, "pmon");
    bool repeats = is_monitor || options->seconds || options->milliseconds;
    const struct {
        const char *name, *long_name, **to;
        const char *otherwise; /* what a missing value is */
    } valued[] = {
        {"-i", "--id", &options->ids, NULL},
        {is_monitor ? NULL : "-d", "--display", &options->display, NULL},
        {"--query-gpu", NULL, &options->query_gpu, NULL},
        {"--query-compute-apps", NULL, &options->query_processes, NULL},
        {"--format", NULL, &options->format, NULL},
        {is_monitor ? "-s" : NULL, is_monitor ? "--select" : NULL, &options->groups, NULL},
        {"-lms", "--loop-ms", &options->milliseconds, NULL},
        {is_monitor ? "-d" : "-l", "--loop", &options->seconds, "5"},
        {repeats ? "-c" : NULL, repeats ? "--count" : NULL, &options->count, NULL},
    };
    const struct {
        const char *name, *long_name;
        bool *to;
    } flags[] = {
        {"-L", "--list-gpus", &options->list},
        {"-B", "--list-excluded-gpus", &options->list_excluded},
        {"-q", "--query", &options->details},
        {"-x", "--xml-format", &options->xml},
        {"-m", "--matrix", &options->matrix},
        {"-s", "--status", &options->status},
    };
    const char *option = arguments[*at], *value;
    for (uint i = 0; i < COUNT_OF(valued); i++) {
        value = value_of(valued[i].name, valued[i].long_name, count, arguments, at);
        if (value == missing && !valued[i].otherwise)
            return refuse(option, "is missing its value", EXIT_BAD_OPTION);
        if (value) {
            *valued[i].to = value == missing ? valued[i].otherwise : value;
            return EXIT_GOOD;
        }
    }
    for (uint i = 0; i < COUNT_OF(flags); i++)
        if (text_equal(option, flags[i].name) || text_equal(option, flags[i].long_name)) {
            *flags[i].to = true;
            return EXIT_GOOD;
        }
    for (uint i = 0; i < setting_count; i++) {
        value = value_of(settings[i].option, settings[i].long_option, count, arguments, at);
        if (value == missing)
            return refuse(option, "is missing its value", EXIT_BAD_OPTION);
        if (value && options->setting) {
            print("Invalid combination of input arguments. Only one device modification may be "
                  "done at a time.\n\n");
            return EXIT_USAGE;
        }
        if (value) {
            options->setting = &settings[i];
            options->value = value;
            return EXIT_GOOD;
        }
    }
    return unknown_option(command, option);
}

static bool read_positive(const char *text, uint64_t most, uint64_t *value)
{
    const char *end = text_number(text, 10, value);
    return end && !*end && *value && *value <= most;
}

/* Reads how often and how many times something is shown. */
static int read_rounds(struct options *options)
{
    enum { LONGEST = 1000000000 };
    uint64_t number;
    const char *loop = options->milliseconds ? options->milliseconds : options->seconds;
    if (loop && !read_positive(loop, LONGEST, &number)) {
        print("Provided [-l(ms) | --loop(-ms)=] value is incorrect. Loop frequency must be greater "
              "than 0.\n\n");
        return EXIT_USAGE;
    }
    if (loop)
        options->pause = number * (options->milliseconds ? 1000000 : 1000000000);
    if (options->count && !read_positive(options->count, UINT32_MAX, &number))
        return refuse("-c", "needs a number of rounds", EXIT_USAGE);
    options->rounds = options->count ? (uint)number : 0;
    return EXIT_GOOD;
}

/* Refuses options that mean nothing without others, or beside them. */
static int check_together(const struct options *options, int count, char **arguments)
{
    for (int i = 0; options->list && i < count; i++)
        if (!text_equal(arguments[i], "-L") && !text_equal(arguments[i], "--list-gpus"))
            return refuse(arguments[i], "is not valid for this command", EXIT_USAGE);
    if (options->format && !options->query_gpu && !options->query_processes)
        return unknown_option("", "--format");
    if (options->xml && options->display && options->details) {
        print("Invalid combination of input arguments: --display/-d flags can not be combined with "
              "-x/--xml-format flags.\n");
        return EXIT_USAGE;
    }
    if ((options->display || options->xml) && !options->details) {
        print("Invalid combination of input arguments. Specify -q/--query and %s query.  Please "
              "run 'nvidia-smi -h' for help.\n\n",
              options->display ? "-d/--display to run a filtered"
                               : "-x/--xml-format to run an XML");
        return EXIT_USAGE;
    }
    return EXIT_GOOD;
}

/* NVML can't say why somebody lacks the right to set something; here there are two reasons. */
static int explain(int code)
{
    static const char why[] =
        "hami-mock: only root can set this, and only while an agent runs on this driver root: start "
        "it with\n'hami-mock run --driver on --driver-root DIR'\n";
    if (code == NVML_ERROR_NO_PERMISSION) {
        print_flush();
        sys_write(2, why, sizeof why - 1);
    }
    return code;
}

/* Shows a view of the options once. */
static int show(const char *command, const struct options *options, uint round)
{
    struct cards cards;
    if (options->list)
        return cards_list();
    if (options->list_excluded) {
        print("No excluded devices found.\n");
        return EXIT_GOOD;
    }
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
        return explain(settings_apply(&cards, options->setting, options->value));
    if (options->query_gpu)
        return query_show(&cards, options->query_gpu, options->format, !round);
    if (options->query_processes)
        return processes_query(&cards, options->query_processes, options->format, !round);
    if (options->xml)
        return xml_show(&cards);
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
        if ((value = value_of("-i", "--id", count, arguments, &i)) == missing)
            return refuse("-i", "is missing its value", EXIT_BAD_OPTION);
        else if (value)
            ids = value;
        else
            arguments[kept++] = arguments[i];
    int code = cards_choose(ids, &cards);
    return code ? code : explain(mig_command(&cards, kept, arguments));
}

int run(int count, char **arguments)
{
    static const char *const commands[] = {"dmon", "pmon", "topo", "nvlink", "mig"};
    struct options options = {.groups = "puc"};
    const char *command = "";
    int at = 1, first;
    for (uint i = 0; count > 1 && i < COUNT_OF(commands); i++)
        if (text_equal(arguments[1], commands[i]))
            command = arguments[at++];
    for (int i = at; i < count; i++)
        if (text_equal(arguments[i], "-h") || text_equal(arguments[i], "--help"))
            return help_show();
        else if (text_equal(arguments[i], "--help-query-gpu"))
            return query_names();
        else if (text_equal(arguments[i], "--help-query-compute-apps"))
            return processes_names();
    nvmlReturn_t result = nvmlInit_v2();
    if (result != NVML_SUCCESS)
        return no_driver(result);
    if (count == 2 && text_equal(arguments[1], "--version"))
        return version_show();
    if (text_equal(command, "mig"))
        return run_mig(count - at, arguments + at);
    if (text_equal(command, "dmon") || text_equal(command, "pmon"))
        options.seconds = "1";
    for (first = at; at < count; at++) {
        int code = read_option(count, arguments, &at, command, &options);
        if (code)
            return code;
    }
    if ((text_equal(command, "topo") && !options.matrix) ||
        (text_equal(command, "nvlink") && !options.status))
        return help_show();
    int code = check_together(&options, count - first, arguments + first);
    if (!code)
        code = read_rounds(&options);
    return code ? code : show_rounds(command, &options);
}
