/* Who uses the cards: all views of processes. */
#include "smi.h"

static const struct {
    processes_call *list;
    uint type;
} lists[] = {
    {nvmlDeviceGetComputeRunningProcesses_v3, PROCESS_COMPUTE},
    {nvmlDeviceGetGraphicsRunningProcesses_v3, PROCESS_GRAPHICS},
    {nvmlDeviceGetMPSComputeRunningProcesses_v3, PROCESS_MPS},
};

static uint add(struct running *to, uint count, const nvmlProcessInfo_v2_t *process, uint type)
{
    for (uint i = 0; i < count; i++)
        if (to[i].process.pid == process->pid &&
            to[i].process.gpuInstanceId == process->gpuInstanceId &&
            to[i].process.computeInstanceId == process->computeInstanceId) {
            to[i].types |= type;
            return count;
        }
    if (count == MOST_RUNNING)
        return count;
    to[count] = (struct running){*process, type, {0}};
    if (nvmlSystemGetProcessName(process->pid, to[count].name, sizeof to->name) != NVML_SUCCESS)
        text_copy(to[count].name, sizeof to->name, "[Not Found]");
    return count + 1;
}

/* Adds those that a device lists; of a card that is cut, those that have no part of it. */
static uint add_all(nvmlDevice_t device, bool no_parts, struct running *to, uint count)
{
    for (uint i = 0; i < COUNT_OF(lists); i++) {
        nvmlProcessInfo_v2_t found[MOST_PROCESSES];
        uint found_count = MOST_PROCESSES;
        if (lists[i].list(device, &found_count, found) != NVML_SUCCESS)
            continue;
        for (uint k = 0; k < found_count; k++)
            if (!no_parts || found[k].gpuInstanceId == NO_INSTANCE)
                count = add(to, count, &found[k], lists[i].type);
    }
    return count;
}

/* Those in parts of a cut card are asked of its MIG devices: a container may see only some of them.
 * Whoever was given the card before it was cut holds all of it. */
uint processes_of(nvmlDevice_t card, struct running to[MOST_RUNNING])
{
    nvmlDevice_t migs[MOST_COMPUTE_INSTANCES];
    bool is_cut = is_mig_on(card);
    uint count = add_all(card, is_cut, to, 0), found = is_cut ? mig_devices(card, migs) : 0;
    for (uint i = 0; i < found; i++)
        count = add_all(migs[i], false, to, count);
    return count;
}

const char *process_type(uint types)
{
    static const char *const names[] = {"-", "C", "G", "C+G", "M+C", "M+C", "M+G", "M+C+G"};
    return names[types % COUNT_OF(names)];
}

/* --query-compute-apps */

enum column { OF_CARD, PID, NAME, USED };

static const struct {
    const char *name, *alias;
    enum column column; /* OF_CARD: the card's field of that name */
} columns[] = {
    {"timestamp", NULL, OF_CARD},   {"gpu_name", NULL, OF_CARD},
    {"gpu_bus_id", NULL, OF_CARD},  {"gpu_serial", NULL, OF_CARD},
    {"gpu_uuid", NULL, OF_CARD},    {"pid", NULL, PID},
    {"process_name", "name", NAME}, {"used_gpu_memory", "used_memory", USED},
};
#define MOST_COLUMNS 64u

static int read_columns(const char *names, uint to[MOST_COLUMNS], uint *count)
{
    for (*count = 0; *names && *count < MOST_COLUMNS; ++*count) {
        size_t length = 0;
        uint found = 0;
        while (names[length] && names[length] != ',')
            length++;
        while (found < COUNT_OF(columns) && !text_equal_part(columns[found].name, names, length) &&
               !(columns[found].alias && text_equal_part(columns[found].alias, names, length)))
            found++;
        if (found == COUNT_OF(columns))
            return unknown_field(names, length);
        to[*count] = found;
        names += length + (names[length] == ',');
    }
    return EXIT_GOOD;
}

static void print_column(uint column, const struct chosen *card, const struct running *each,
                         bool units)
{
    char text[FIELD_SIZE];
    switch (columns[column].column) {
    case PID: print("%u", each->process.pid); break;
    case NAME: print("%s", each->name); break;
    case USED: print(units ? "%llu MiB" : "%llu", each->process.usedGpuMemory >> 20); break;
    default: field_show(columns[column].name, card->device, text); print("%s", text);
    }
}

int processes_query(const struct cards *cards, const char *names, const char *format_text,
                    bool is_first)
{
    uint chosen[MOST_COLUMNS], count;
    struct format format;
    int code = format_read(format_text, &format);
    if (code || (code = read_columns(names, chosen, &count)))
        return code;
    for (uint i = 0; is_first && format.header && i < count; i++)
        print("%s%s%s", columns[chosen[i]].name, columns[chosen[i]].column == USED ? " [MiB]" : "",
              i + 1 < count ? ", " : "\n");
    for (uint i = 0; i < cards->count; i++) {
        static struct running running[MOST_RUNNING];
        uint found = processes_of(cards->card[i].device, running);
        for (uint k = 0; k < found; k++) {
            if (!(running[k].types & (PROCESS_COMPUTE | PROCESS_MPS)))
                continue;
            for (uint c = 0; c < count; c++) {
                print_column(chosen[c], &cards->card[i], &running[k], format.units);
                print(c + 1 < count ? ", " : "\n");
            }
        }
    }
    return EXIT_GOOD;
}

int processes_names(void)
{
    print("Fields for the switch \"--query-compute-apps\", separated by commas:\n");
    for (uint i = 0; i < COUNT_OF(columns); i++)
        name_print(columns[i].name, columns[i].alias, columns[i].column == USED ? "MiB" : NULL);
    return EXIT_GOOD;
}

/* pmon */

static void monitor_line(uint index, const struct running *each,
                         const nvmlProcessUtilizationInfo_v1_t *use)
{
    const uint percents[] = {use->smUtil,  use->memUtil, use->encUtil,
                             use->decUtil, use->jpgUtil, use->ofaUtil};
    print("%5u %10u %5s", index, each->process.pid, process_type(each->types));
    for (uint i = 0; i < COUNT_OF(percents); i++)
        if (use->pid && (percents[i] || i < 2))
            print(" %6u", percents[i]);
        else
            print(" %6s", "-");
    print("    %-15s\n", each->name);
}

int monitor_processes(const struct cards *cards, uint index_of_round)
{
    if (index_of_round % 20 == 0)
        print(
            "# gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command \n"
            "# Idx           #    C/G      %%      %%      %%      %%      %%      %%    name \n");
    for (uint i = 0; i < cards->count; i++) {
        static struct running running[MOST_RUNNING];
        nvmlProcessUtilizationInfo_v1_t use[MOST_PROCESSES];
        nvmlProcessesUtilizationInfo_v1_t asked = {VERSION_OF(nvmlProcessesUtilizationInfo_v1_t, 1),
                                                   MOST_PROCESSES, 0, use};
        nvmlDevice_t device = cards->card[i].device;
        if (nvmlDeviceGetProcessesUtilizationInfo(device, &asked) != NVML_SUCCESS)
            asked.processSamplesCount = 0;
        uint count = processes_of(device, running);
        for (uint k = 0; k < count; k++) {
            nvmlProcessUtilizationInfo_v1_t none = {0}, *found = &none;
            for (uint u = 0; u < asked.processSamplesCount; u++)
                if (use[u].pid == running[k].process.pid)
                    found = &use[u];
            monitor_line(cards->card[i].index, &running[k], found);
        }
        if (!count)
            print("%5u %10s %5s %6s %6s %6s %6s %6s %6s    %-15s\n", cards->card[i].index, "-", "-",
                  "-", "-", "-", "-", "-", "-", "-");
    }
    return EXIT_GOOD;
}
