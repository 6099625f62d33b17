/* The parts of -q -x that have as many rows as the card has things. */
#include "xml.h"

static void number(uint depth, const char *tag, uint value, const char *unit)
{
    char text[32];
    text_print(text, sizeof text, "%u%s", value, unit);
    xml_text(depth, tag, text);
}

static void field(uint depth, const char *tag, const char *name, nvmlDevice_t device)
{
    char text[FIELD_SIZE];
    field_show(name, device, text);
    xml_text(depth, tag, text);
}

static void mig_device(uint index, nvmlDevice_t device)
{
    uint gpu_instance = 0, compute_instance = 0;
    nvmlDeviceAttributes_v2_t has = {0};
    nvmlDeviceGetGpuInstanceId(device, &gpu_instance);
    nvmlDeviceGetComputeInstanceId(device, &compute_instance);
    nvmlDeviceGetAttributes_v2(device, &has);
    xml_begin(2, "mig_device");
    number(3, "index", index, "");
    number(3, "gpu_instance_id", gpu_instance, "");
    number(3, "compute_instance_id", compute_instance, "");
    xml_begin(3, "device_attributes");
    xml_begin(4, "shared");
    number(5, "multiprocessor_count", has.shared.multiprocessorCount, "");
    number(5, "copy_engine_count", has.shared.sharedCopyEngineCount, "");
    number(5, "encoder_count", has.shared.sharedEncoderCount, "");
    number(5, "decoder_count", has.shared.sharedDecoderCount, "");
    number(5, "ofa_count", has.shared.sharedOfaCount, "");
    number(5, "jpg_count", has.shared.sharedJpegCount, "");
    xml_end(4, "shared");
    xml_end(3, "device_attributes");
    xml_begin(3, "ecc_error_count");
    xml_begin(4, "volatile_count");
    field(5, "sram_uncorrectable", "ecc.errors.uncorrected.volatile.sram", device);
    xml_end(4, "volatile_count");
    xml_end(3, "ecc_error_count");
    xml_begin(3, "fb_memory_usage");
    field(4, "total", "memory.total", device);
    field(4, "reserved", "memory.reserved", device);
    field(4, "used", "memory.used", device);
    field(4, "free", "memory.free", device);
    xml_end(3, "fb_memory_usage");
    xml_begin(3, "bar1_memory_usage");
    field(4, "total", ".bar1.total", device);
    field(4, "used", ".bar1.used", device);
    field(4, "free", ".bar1.free", device);
    xml_end(3, "bar1_memory_usage");
    xml_end(2, "mig_device");
}

void xml_mig_devices(nvmlDevice_t card)
{
    nvmlDevice_t migs[MOST_COMPUTE_INSTANCES];
    uint found = mig_devices(card, migs);
    xml_begin(2, "mig_devices");
    if (!found)
        print("\t\t\tNone\n");
    for (uint i = 0; i < found; i++)
        mig_device(i, migs[i]);
    xml_end(2, "mig_devices");
}

static void retired(const char *tag, const char *name, nvmlDevice_t card)
{
    char count[FIELD_SIZE];
    bool is_known = field_show(name, card, count) == NVML_SUCCESS;
    xml_begin(3, tag);
    xml_text(4, "retired_count", count);
    if (is_known) {
        xml_begin(4, "retired_pagelist");
        xml_end(4, "retired_pagelist");
    } else
        xml_text(4, "retired_pagelist", count);
    xml_end(3, tag);
}

void xml_retired_pages(nvmlDevice_t card)
{
    xml_begin(2, "retired_pages");
    retired("multiple_single_bit_retirement", "retired_pages.single_bit_ecc.count", card);
    retired("double_bit_retirement", "retired_pages.double_bit.count", card);
    field(3, "pending_blacklist", "retired_pages.pending", card);
    field(3, "pending_retirement", "retired_pages.pending", card);
    xml_end(2, "retired_pages");
}

void xml_supported_clocks(nvmlDevice_t card)
{
    uint memory[MOST_MEMORY_CLOCKS], graphics[1024], memories = COUNT_OF(memory);
    if (nvmlDeviceGetSupportedMemoryClocks(card, &memories, memory) != NVML_SUCCESS || !memories) {
        xml_text(2, "supported_clocks", "N/A");
        return;
    }
    xml_begin(2, "supported_clocks");
    for (uint i = 0; i < memories; i++) {
        uint count = COUNT_OF(graphics);
        xml_begin(3, "supported_mem_clock");
        number(4, "value", memory[i], " MHz");
        if (nvmlDeviceGetSupportedGraphicsClocks(card, memory[i], &count, graphics) == NVML_SUCCESS)
            for (uint k = 0; k < count; k++)
                number(4, "supported_graphics_clock", graphics[k], " MHz");
        xml_end(3, "supported_mem_clock");
    }
    xml_end(2, "supported_clocks");
}

static void instance(const char *tag, uint id)
{
    if (id == NO_INSTANCE)
        xml_text(4, tag, "N/A");
    else
        number(4, tag, id, "");
}

void xml_processes(nvmlDevice_t card)
{
    static struct running running[MOST_RUNNING];
    uint found = processes_of(card, running);
    xml_begin(2, "processes");
    for (uint i = 0; i < found; i++) {
        const nvmlProcessInfo_v2_t *process = &running[i].process;
        xml_begin(3, "process_info");
        instance("gpu_instance_id", process->gpuInstanceId);
        instance("compute_instance_id", process->computeInstanceId);
        number(4, "pid", process->pid, "");
        xml_text(4, "type", process_type(running[i].types));
        xml_text(4, "process_name", running[i].name);
        number(4, "used_memory", (uint)(process->usedGpuMemory >> 20), " MiB");
        xml_end(3, "process_info");
    }
    xml_end(2, "processes");
}

void xml_accounted_processes(nvmlDevice_t card)
{
    uint pids[MOST_PROCESSES], count = MOST_PROCESSES;
    if (nvmlDeviceGetAccountingPids(card, &count, pids) != NVML_SUCCESS)
        count = 0;
    xml_begin(2, "accounted_processes");
    for (uint i = 0; i < count; i++) {
        xml_begin(3, "accounted_process_info");
        number(4, "pid", pids[i], "");
        xml_end(3, "accounted_process_info");
    }
    xml_end(2, "accounted_processes");
}
