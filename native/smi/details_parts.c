/* The parts of -q that have as many rows as the card has things. */
#include "details.h"

static void row_number(uint depth, const char *label, uint number)
{
    char text[24];
    text_print(text, sizeof text, "%u", number);
    row_print(depth, label, text);
}

static void row_field(uint depth, const char *label, const char *field, nvmlDevice_t device)
{
    char text[FIELD_SIZE];
    field_show(field, device, text);
    row_print(depth, label, text);
}

void show_mig_devices(nvmlDevice_t card)
{
    nvmlDevice_t migs[MOST_COMPUTE_INSTANCES];
    uint found = mig_devices(card, migs);
    if (is_mig_on(card) && !found)
        row_print(1, "MIG Device", "None");
    for (uint i = 0; i < found; i++) {
        uint gpu_instance = 0, compute_instance = 0;
        nvmlDeviceAttributes_v2_t has = {0};
        nvmlDeviceGetGpuInstanceId(migs[i], &gpu_instance);
        nvmlDeviceGetComputeInstanceId(migs[i], &compute_instance);
        nvmlDeviceGetAttributes_v2(migs[i], &has);
        row_print(1, "MIG Device", NULL);
        row_number(2, "Index", i);
        row_number(2, "GPU Instance ID", gpu_instance);
        row_number(2, "Compute Instance ID", compute_instance);
        row_print(2, "Device Attributes", NULL);
        row_print(3, "Shared", NULL);
        row_number(4, "Multiprocessor count", has.shared.multiprocessorCount);
        row_number(4, "Copy Engine count", has.shared.sharedCopyEngineCount);
        row_number(4, "Encoder count", has.shared.sharedEncoderCount);
        row_number(4, "Decoder count", has.shared.sharedDecoderCount);
        row_number(4, "OFA count", has.shared.sharedOfaCount);
        row_number(4, "JPG count", has.shared.sharedJpegCount);
        row_print(2, "ECC Errors", NULL);
        row_print(3, "Volatile", NULL);
        row_field(4, "SRAM Uncorrectable", "ecc.errors.uncorrected.volatile.sram", migs[i]);
        row_print(2, "FB Memory Usage", NULL);
        row_field(3, "Total", "memory.total", migs[i]);
        row_field(3, "Reserved", "memory.reserved", migs[i]);
        row_field(3, "Used", "memory.used", migs[i]);
        row_field(3, "Free", "memory.free", migs[i]);
        row_print(2, "BAR1 Memory", NULL);
        row_field(3, "Total", ".bar1.total", migs[i]);
        row_field(3, "Used", ".bar1.used", migs[i]);
        row_field(3, "Free", ".bar1.free", migs[i]);
    }
}

static void row_instance(const char *label, uint id)
{
    if (id == NO_INSTANCE)
        row_print(2, label, "N/A");
    else
        row_number(2, label, id);
}

void show_process_rows(nvmlDevice_t card)
{
    static struct running running[MOST_RUNNING];
    uint found = processes_of(card, running);
    row_print(1, "Processes", found ? NULL : "None");
    for (uint i = 0; i < found; i++) {
        char text[24];
        row_instance("GPU instance ID", running[i].process.gpuInstanceId);
        row_instance("Compute instance ID", running[i].process.computeInstanceId);
        row_number(2, "Process ID", running[i].process.pid);
        row_print(3, "Type", process_type(running[i].types));
        row_print(3, "Name", running[i].name);
        text_print(text, sizeof text, "%llu MiB", running[i].process.usedGpuMemory >> 20);
        row_print(3, "Used GPU Memory", text);
    }
}

void show_accounted(nvmlDevice_t card)
{
    uint pids[MOST_PROCESSES], count = MOST_PROCESSES;
    if (nvmlDeviceGetAccountingPids(card, &count, pids) != NVML_SUCCESS)
        count = 0;
    row_print(1, "Accounted Processes", count ? NULL : "None");
    for (uint i = 0; i < count; i++)
        row_number(2, "Process ID", pids[i]);
}

static void row_clock(uint depth, const char *label, uint clock)
{
    char text[24];
    text_print(text, sizeof text, "%u MHz", clock);
    row_print(depth, label, text);
}

void show_supported_clocks(nvmlDevice_t card)
{
    uint memory[MOST_MEMORY_CLOCKS], graphics[1024], memories = COUNT_OF(memory);
    if (nvmlDeviceGetSupportedMemoryClocks(card, &memories, memory) != NVML_SUCCESS || !memories) {
        row_print(1, "Supported Clocks", "N/A");
        return;
    }
    row_print(1, "Supported Clocks", NULL);
    for (uint i = 0; i < memories; i++) {
        uint count = COUNT_OF(graphics);
        row_clock(2, "Memory", memory[i]);
        if (nvmlDeviceGetSupportedGraphicsClocks(card, memory[i], &count, graphics) == NVML_SUCCESS)
            for (uint k = 0; k < count; k++)
                row_clock(3, "Graphics", graphics[k]);
    }
}

/* Samples: the library has one of each kind, so that it is the largest, the least and the mean. */
static void show_samples(nvmlDevice_t card, const char *label, uint kind, const char *unit)
{
    enum { IN_MILLIWATTS };
    nvmlSample_t sample;
    uint type, count = 1;
    char text[32];
    if (nvmlDeviceGetSamples(card, kind, 0, &type, &count, &sample) != NVML_SUCCESS) {
        row_print(1, label, "N/A");
        return;
    }
    uint value = sample.sampleValue.uiVal;
    if (kind == IN_MILLIWATTS)
        text_print(text, sizeof text, "%u.%02u %s", (value + 5) / 1000, (value + 5) % 1000 / 10,
                   unit);
    else
        text_print(text, sizeof text, "%u %s", value, unit);
    row_print(1, label, NULL);
    row_print(2, "Duration", "0.00 sec");
    row_number(2, "Number of Samples", count);
    row_print(2, "Max", text);
    row_print(2, "Min", text);
    row_print(2, "Avg", text);
}

void show_utilization_samples(nvmlDevice_t card)
{
    show_samples(card, "GPU Utilization Samples", 1, "%");
    show_samples(card, "Memory Utilization Samples", 2, "%");
    show_samples(card, "ENC Utilization Samples", 3, "%");
    show_samples(card, "DEC Utilization Samples", 4, "%");
    show_samples(card, "JPG Utilization Samples", 8, "%");
    show_samples(card, "OFA Utilization Samples", 9, "%");
}

void show_power_samples(nvmlDevice_t card) { show_samples(card, "Power Samples", 0, "W"); }

void show_clock_samples(nvmlDevice_t card)
{
    show_samples(card, "SM Clock Samples", 5, "MHz");
    show_samples(card, "Memory Clock Samples", 6, "MHz");
}
