/* What nvidia-smi shows when it isn't told anything else. */
#include "smi.h"

#define WIDTH 89u /* between the bars at both ends */

static void rule(const char *corners, char dash, uint count, const uint *widths)
{
    for (uint i = 0; i < count; i++) {
        print("%c", i ? corners[1] : corners[0]);
        print_line(dash, widths[i]);
    }
    print("%c\n", corners[2]);
}

static const uint card_widths[] = {41, 24, 22}, mig_widths[] = {18, 34, 11, 23}, whole[] = {WIDTH};

static void line(const char *text) { print("| %-87s |\n", text); }

static void head(void)
{
    char driver[FIELD_SIZE], cuda[FIELD_SIZE], moment[FIELD_SIZE];
    field_show(".moment", NULL, moment);
    field_show("driver_version", NULL, driver);
    field_show(".cuda", NULL, cuda);
    print("%s       \n", moment);
    rule("+-+", '-', COUNT_OF(whole), whole);
    print("| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-8s |\n", driver, driver, cuda);
    rule("|++", '-', COUNT_OF(card_widths), card_widths);
    print("| GPU  Name                 Persistence-M | Bus-Id          Disp.A |"
          " Volatile Uncorr. ECC |\n"
          "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage |"
          " GPU-Util  Compute M. |\n"
          "|                                         |                        |"
          "               MIG M. |\n");
    rule("|+|", '=', COUNT_OF(card_widths), card_widths);
}

/* Reads a field for a narrow place: with a short unit right behind it, and cut at an end. */
static const char *narrow(const char *name, nvmlDevice_t device, const char *unit, char *to)
{
    const struct field *field = field_named(name, text_length(name));
    if (field_read(field, device, to) != NVML_SUCCESS)
        text_copy(to, FIELD_SIZE, "N/A");
    else
        text_copy(to + text_length(to), FIELD_SIZE - text_length(to), unit);
    return to;
}

static void cut_after(char *text, size_t most)
{
    if (text_length(text) > most)
        text_copy(text + most - 3, 4, "...");
}

/* Watts in full, without the fraction. */
static const char *watts(const char *name, nvmlDevice_t device, char *to)
{
    narrow(name, device, "", to);
    for (size_t i = 0; to[i]; i++)
        if (to[i] == '.')
            text_copy(to + i, 2, "W");
    return to;
}

static const char *on_off(const char *name, nvmlDevice_t device, char *to)
{
    narrow(name, device, "", to);
    return text_equal(to, "Enabled") ? "On" : text_equal(to, "Disabled") ? "Off" : to;
}

/* Errors that weren't corrected; MIG's are counted by device. */
static const char *errors(nvmlDevice_t device, char *to)
{
    const char *mode = on_off("ecc.mode.current", device, to);
    if (is_mig_on(device))
        return "On";
    if (!text_equal(mode, "On"))
        return mode;
    return narrow("ecc.errors.uncorrected.volatile.total", device, "", to);
}

static void show_card(const struct chosen *card)
{
    char name[FIELD_SIZE], text[5][FIELD_SIZE];
    nvmlDevice_t device = card->device;
    narrow("name", device, "", name);
    cut_after(name, 27);
    print("|%4u  %-30s %-3s |   %-16s %-3s | %20s |\n", card->index, name,
          on_off("persistence_mode", device, text[0]), narrow("pci.bus_id", device, "", text[1]),
          on_off("display_active", device, text[2]), errors(device, text[3]));
    const char *mode = narrow("compute_mode", device, "", text[4]);
    if (text_equal(mode, "Exclusive_Process"))
        mode = "E. Process";
    char use[FIELD_SIZE], power[2][FIELD_SIZE];
    print("|%4s %5s %5s %15s / %5s |%11s / %9s |%8s %12s |\n",
          narrow("fan.speed", device, "%", text[0]),
          narrow("temperature.gpu", device, "C", text[1]), narrow("pstate", device, "", text[2]),
          watts("power.draw", device, power[0]), watts("power.limit", device, power[1]),
          narrow("memory.used", device, "MiB", text[3]),
          narrow("memory.total", device, "MiB", name), narrow("utilization.gpu", device, "%", use),
          mode);
    print("| %39s | %22s | %20s |\n", "", "", narrow("mig.mode.current", device, "", text[0]));
    rule("+++", '-', COUNT_OF(card_widths), card_widths);
}

/* MIG devices. */

static void show_mig(uint card, uint index, nvmlDevice_t device)
{
    char text[4][FIELD_SIZE], memory[64];
    uint gpu_instance = 0, compute_instance = 0;
    nvmlDeviceAttributes_v2_t has = {0};
    nvmlDeviceGetGpuInstanceId(device, &gpu_instance);
    nvmlDeviceGetComputeInstanceId(device, &compute_instance);
    nvmlDeviceGetAttributes_v2(device, &has);
    text_print(memory, sizeof memory, "%s / %8s", narrow("memory.used", device, "MiB", text[0]),
               narrow("memory.total", device, "MiB", text[1]));
    print("|%3u %4u %3u %3u  |%30s    |%3u %6s |%3u %3u %4u %4u %4u |\n", card, gpu_instance,
          compute_instance, index, memory, has.shared.multiprocessorCount,
          narrow("ecc.errors.uncorrected.volatile.sram", device, "", text[2]),
          has.shared.sharedCopyEngineCount, has.shared.sharedEncoderCount,
          has.shared.sharedDecoderCount, has.shared.sharedOfaCount, has.shared.sharedJpegCount);
    text_print(memory, sizeof memory, "%s / %8s", narrow(".bar1.used", device, "MiB", text[0]),
               narrow(".bar1.total", device, "MiB", text[1]));
    print("|%18s|%32s  |%11s|%23s|\n", "", memory, "", "");
    rule("+++", '-', COUNT_OF(mig_widths), mig_widths);
}

static void show_migs(const struct cards *cards)
{
    uint shown = 0;
    print("\n");
    rule("+-+", '-', COUNT_OF(whole), whole);
    line("MIG devices:");
    rule("+++", '-', COUNT_OF(mig_widths), mig_widths);
    print("| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|"
          "      Shared           |\n"
          "|      ID  ID  Dev |                       BAR1-Usage | SM     Unc|"
          " CE ENC DEC OFA JPG    |\n"
          "|                  |                                  |        ECC|"
          "                       |\n");
    rule("|+|", '=', COUNT_OF(mig_widths), mig_widths);
    for (uint i = 0; i < cards->count; i++) {
        nvmlDevice_t migs[MOST_COMPUTE_INSTANCES];
        uint found = mig_devices(cards->card[i].device, migs);
        for (uint k = 0; k < found; k++, shown++)
            show_mig(cards->card[i].index, k, migs[k]);
    }
    if (!shown) {
        line(" No MIG devices found");
        rule("+-+", '-', COUNT_OF(whole), whole);
    }
}

/* Processes. */

static void show_instance(uint id)
{
    if (id == NO_INSTANCE)
        print("N/A");
    else
        print("%2u ", id);
}

static void show_process(uint card, const struct running *each)
{
    enum { ROOM = 38 };
    char name[FIELD_SIZE], memory[24];
    size_t length = text_length(each->name);
    if (length > ROOM)
        text_print(name, sizeof name, "...%s", each->name + length - (ROOM - 3));
    else
        text_copy(name, sizeof name, each->name);
    text_print(memory, sizeof memory, "%lluMiB", each->process.usedGpuMemory >> 20);
    print("|%5u   ", card);
    show_instance(each->process.gpuInstanceId);
    print("  ");
    show_instance(each->process.computeInstanceId);
    print("%10u%7s   %-38s%14s |\n", each->process.pid, process_type(each->types), name, memory);
}

static void show_processes(const struct cards *cards)
{
    uint shown = 0;
    print("%89s\n", "");
    rule("+-+", '-', COUNT_OF(whole), whole);
    line("Processes:");
    line(" GPU   GI   CI        PID   Type   Process name                              GPU Memory");
    line("       ID   ID                                                               Usage");
    rule("|=|", '=', COUNT_OF(whole), whole);
    for (uint i = 0; i < cards->count; i++) {
        static struct running running[MOST_RUNNING];
        uint found = processes_of(cards->card[i].device, running);
        for (uint k = 0; k < found; k++, shown++)
            show_process(cards->card[i].index, &running[k]);
    }
    if (!shown)
        line(" No running processes found");
    rule("+-+", '-', COUNT_OF(whole), whole);
}

int table_show(const struct cards *cards)
{
    bool any_mig = false;
    head();
    for (uint i = 0; i < cards->count; i++) {
        show_card(&cards->card[i]);
        any_mig |= is_mig_on(cards->card[i].device);
    }
    if (any_mig)
        show_migs(cards);
    show_processes(cards);
    return EXIT_GOOD;
}
