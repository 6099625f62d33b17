"""Print what nvidia-ml-py sees: a line for each card, its fields parted by tabs."""

import pynvml as nvml

nvml.nvmlInit()
for index in range(nvml.nvmlDeviceGetCount()):
    card = nvml.nvmlDeviceGetHandleByIndex(index)
    uuid = nvml.nvmlDeviceGetUUID(card)
    memory = nvml.nvmlDeviceGetMemoryInfo(card)
    found = (
        nvml.nvmlDeviceGetIndex(nvml.nvmlDeviceGetHandleByUUID(uuid)),
        uuid,
        nvml.nvmlDeviceGetName(card),
        memory.total,
        memory.used,
        nvml.nvmlDeviceGetUtilizationRates(card).gpu,
        nvml.nvmlDeviceGetPowerUsage(card),
        nvml.nvmlDeviceGetTemperature(card, nvml.NVML_TEMPERATURE_GPU),
    )
    print(*found, sep="\t")
nvml.nvmlShutdown()
