"""What a node shows when no flag is given: the table of the README."""

DEFAULT_COUNTS = {
    "nvidia.com/gpu": 20,
    "nvidia.com/gpucores": 200,
    "nvidia.com/gpumem": 65536,
    "nvidia.com/gpumem-percentage": 200,
    "cambricon.com/vmlu": 20,
    "iluvatar.ai/vgpu": 20,
    "iluvatar.ai/MR-V100.vCore": 200,
    "huawei.com/Ascend910-memory": 131072,
}
