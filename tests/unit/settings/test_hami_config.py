import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.errors import UsageError
from hami_mock.settings.hami_config.device_config import DeviceConfig, parse
from hami_mock.vendors import Vendor
from hami_mock.vendors.hami_vendor import ResourceNames
from tests import makers
from tests.makers import ASCEND, BY_WORD

NVIDIA = """
nvidia:
  resourceCountName: nvidia.com/gpu
  resourceMemoryName: nvidia.com/gpumem
  resourceMemoryPercentageName: nvidia.com/gpumem-percentage
  resourceCoreName: nvidia.com/gpucores
  resourcePriorityName: nvidia.com/priority
  overwriteEnv: false
  defaultMemory: 0
  defaultCores: 10
  defaultGPUNum: 1
  preConfiguredDeviceMemory: 0
  memoryFactor: 4
  deviceSplitCount: 5
  deviceMemoryScaling: 1.5
  deviceCoreScaling: 2
  gpuCorePolicy: default
  libCudaLogLevel: 1
  runtimeClassName: ""
"""
OTHERS = """
cambricon:
  resourceCountName: cambricon.com/vmlu
  resourceMemoryName: cambricon.com/mlu.smlu.vmemory
  resourceCoreName: cambricon.com/mlu.smlu.vcore
hygon: {resourceCountName: hygon.com/dcunum, resourceMemoryName: hygon.com/dcumem, memoryFactor: 2}
metax:
  resourceCountName: "metax-tech.com/gpu"
  resourceVCountName: metax-tech.com/sgpu
  resourceVMemoryName: metax-tech.com/vmemory
  resourceVCoreName: metax-tech.com/vcore
  sgpuTopologyAware: false
enflame:
  resourceNameGCU: "enflame.com/gcu"
  resourceNameDRSGCU: enflame.com/drs-gcu
  resourceNameGCUMemory: enflame.com/gcu-memory
  resourceNameGCUCore: enflame.com/gcu-core
mthreads:
  resourceCountName: "mthreads.com/vgpu"
  resourceMemoryName: "mthreads.com/sgpu-memory"
  resourceCoreName: "mthreads.com/sgpu-core"
iluvatars:
- chipName: MR-V100
  commonWord: MR-V100
  resourceCountName: iluvatar.ai/MR-V100-vgpu
  resourceMemoryName: iluvatar.ai/MR-V100.vMem
  resourceCoreName: iluvatar.ai/MR-V100.vCore
kunlun:
  resourceCountName: kunlunxin.com/xpu
  resourceVCountName: kunlunxin.com/vxpu
  resourceVMemoryName: kunlunxin.com/vxpu-memory
awsneuron:
  resourceCountName: "aws.amazon.com/neuron"
  resourceCoreName: "aws.amazon.com/neuroncore"
amd:
  resourceCountName: "amd.com/gpu"
  resourceCoreName: "amd.com/gpucores"
  resourceMemoryName: "amd.com/gpumem"
vastai: {resourceCountName: vastaitech.com/va}
biren: {resourceCountName: birentech.com/gpu}
"""
CHIPS = """
  - chipName: 910B3
    commonWord: Ascend910B3
    resourceName: huawei.com/Ascend910B3
    resourceMemoryName: huawei.com/Ascend910B3-memory
    resourceCoreName: huawei.com/Ascend910B3-core
    memoryAllocatable: 65536
    memoryCapacity: 65536
    memoryFactor: 1
    aiCore: 20
    aiCPU: 7
    templates:
    - {name: vir05_1c_16g, memory: 16384, aiCore: 5, aiCPU: 1}
    - {name: vir10_3c_32g, memory: 32768, aiCore: 10, aiCPU: 3}
  - chipName: 910
    commonWord: Ascend910X
    resourceName: huawei.com/Ascend910X
    resourceMemoryName: huawei.com/Ascend910X-memory
    memoryAllocatable: 32768
    memoryCapacity: 32768
    aiCore: 30
"""
VNPUS_LIST = f"vnpus:{CHIPS}"
VNPUS_MAPPING = f"vnpus:\n  hamiVnpuCore: true\n  configs:{CHIPS}"


def problems_of(text: str) -> tuple[str, ...]:
    with pytest.raises(UsageError) as caught:
        parse(text, "device-config.yaml")
    return caught.value.problems


def names_in(config: DeviceConfig) -> dict[str, ResourceNames]:
    return {word: hami.resources for word, hami in config.vendors.items()}


def options(
    config: DeviceConfig, node: str = "", vendor: Vendor = makers.NVIDIA
) -> dict[str, object]:
    return {name: value for name, (value, _) in config.options(vendor, node).items()}


def test_nvidia() -> None:
    config = parse(NVIDIA, "f")
    assert names_in(config) == {
        "NVIDIA": ResourceNames(
            "nvidia.com/gpu",
            memory="nvidia.com/gpumem",
            memory_unit=4,
            cores="nvidia.com/gpucores",
            percentage="nvidia.com/gpumem-percentage",
        )
    }
    assert options(config) == {"split": 5, "memory-scaling": 1.5, "core-scaling": 2.0}


def test_hamis_own_names_are_the_vendors_defaults() -> None:
    found = names_in(parse(OTHERS, "f"))
    assert found.pop("DCU") == ResourceNames(
        "hygon.com/dcunum", memory="hygon.com/dcumem", memory_unit=2
    )
    assert len(found) == 13
    assert found == {word: BY_WORD[word].resources for word in found}


def test_a_chip_of_iluvatar_brings_its_vendor() -> None:
    assert parse(OTHERS, "f").vendors["MR-V100"] == BY_WORD["MR-V100"]


def test_vnpus_are_a_list_or_a_mapping() -> None:
    old, new = parse(VNPUS_LIST, "f"), parse(VNPUS_MAPPING, "f")
    assert old.configured == new.configured
    assert options(old, vendor=ASCEND) == {}
    assert options(new, vendor=ASCEND) == {"mode": "hami-core"}
    chip, unknown = new.configured
    assert chip.hami == replace(BY_WORD["Ascend910B3"], memory=65536, cores=20)
    assert (chip.chip_name, unknown.chip_name) == ("910B3", "910")
    assert unknown.hami.slots == 1
    assert unknown.hami.node.register == "hami.io/node-register-Ascend910X"
    assert unknown.hami.resources.memory == "huawei.com/Ascend910X-memory"


def test_mig_has_geometries_or_profiles() -> None:
    text = """
    nvidia:
      knownMigGeometries:
      - models: ["A30"]
        allowedGeometries:
        -
          - {name: 1g.6gb, core: 25, memory: 6144, count: 4}
        - [{name: 2g.12gb, memory: 12288, count: 2}]
      migProfileAllowlist:
      - models: [A100-SXM4-40GB, A100-40GB-PCIe]
        profiles: [1g.5gb, 7g.40gb]
    """
    assert options(parse(text, "f")) == {}


CONFIG_JSON = """{
\t"nodeconfig": [
\t\t{
\t\t\t"name": "gpu-1",
\t\t\t"operatingmode": "mig",
\t\t\t"devicememoryscaling": 1.8,
\t\t\t"devicesplitcount": 3,
\t\t\t"preConfiguredDeviceMemory": 1024,
\t\t\t"devicecorescaling": 0,
\t\t\t"migstrategy": "none",
\t\t\t"filterdevices": {"uuid": ["GPU-1"], "index": [0, 2]},
\t\t\t"enablegetpreferredallocation": false
\t\t},
\t\t{"name": "gpu-1", "devicesplitcount": 4}
\t]
}"""


def test_nodes_differ_in_the_plugins_json() -> None:
    config = parse(CONFIG_JSON, "config.json")
    assert options(config, "gpu-1") == {"split": 4, "memory-scaling": 1.8, "mode": "mig"}
    assert options(config, "gpu-2") == {}


def test_json_is_not_read_as_yaml() -> None:
    config = parse('{"nodeconfig": [{"name": "a", "devicememoryscaling": 2e0}]}', "f")
    assert options(config, "a") == {"memory-scaling": 2}


def test_nodes_can_differ_in_the_yaml() -> None:
    config = parse(NVIDIA + "nodeconfig: [{name: gpu-1, devicesplitcount: 7}]", "f")
    assert options(config, "gpu-1") == {"split": 7, "memory-scaling": 1.5, "core-scaling": 2.0}


def test_helm_writes_large_numbers_with_an_exponent() -> None:
    assert options(parse("nvidia: {deviceSplitCount: 1.0e+03}", "f")) == {"split": 1000}


def test_null_is_the_default() -> None:
    text = "nvidia: {resourceCountName: a/b, deviceSplitCount: null, deviceMemoryScaling: }"
    assert options(parse(text + "\nvnpus:\nmetax:\niluvatars:", "f")) == {}


def test_unknown_keys_are_passed_over() -> None:
    text = NVIDIA + "  new: [1]\nnewvendor: {a: 1}\n"
    assert parse(text, "f").configured == parse(NVIDIA, "f").configured


def test_all_mistakes_are_said_at_once() -> None:
    text = """
    nvidia:
      resourceCountName: [a]
      deviceSplitCount: ten
      deviceMemoryScaling: -1
      disableCoreLimit: "false"
    hygon: hygon.com/dcunum
    vnpus:
      hamiVnpuCore: 1
      configs:
      - commonWord: ""
        aiCore: 1.5
        templates: [{name: vir01, memory: 0}]
    nodeconfig: [{devicesplitcount: true}]
    """
    most = 2**31 - 1
    assert set(problems_of(text)) == {
        "device-config.yaml: nvidia.resourceCountName: ['a'] is not allowed: it must be a text",
        "device-config.yaml: nvidia.deviceSplitCount: 'ten' is not allowed: it must be a whole "
        f"number from 0 to {most}",
        "device-config.yaml: nvidia.deviceMemoryScaling: -1 is not allowed: it must be a number "
        f"from 0 to {most}",
        "device-config.yaml: nvidia.disableCoreLimit: 'false' is not allowed: it must be true or "
        "false",
        "device-config.yaml: hygon: 'hygon.com/dcunum' is not allowed: it must be a mapping",
        "device-config.yaml: vnpus.hamiVnpuCore: 1 is not allowed: it must be true or false",
        "device-config.yaml: vnpus.configs[0].commonWord: '' is not allowed: it must be text "
        "that isn't empty",
        "device-config.yaml: vnpus.configs[0].aiCore: 1.5 is not allowed: it must be a whole "
        f"number from 0 to {most}",
        "device-config.yaml: vnpus.configs[0].templates[0].memory: 0 is not allowed: it must be a "
        f"whole number from 1 to {most}",
        "device-config.yaml: nodeconfig[0].devicesplitcount: True is not allowed: it must be a "
        f"whole number from 0 to {most}",
        "device-config.yaml: nodeconfig[0].name: is missing: it must be text that isn't empty",
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("vnpus: x", "vnpus: 'x' is not allowed: it must be a mapping"),
        ("vnpus: [x]", "vnpus[0]: 'x' is not allowed: it must be a mapping"),
        ("vnpus: {configs: {}}", "vnpus.configs: {} is not allowed: it must be a list"),
        ("iluvatars: [{}]", "iluvatars[0].commonWord: is missing: it must be text that"),
        ("metax: []", "metax: [] is not allowed: it must be a mapping"),
        ("nvidia: {deviceSplitCount: 2147483648}", "nvidia.deviceSplitCount: 2147483648 is not"),
        ("nvidia: {deviceSplitCount: -1}", "nvidia.deviceSplitCount: -1 is not allowed"),
        ("nvidia: {deviceCoreScaling: .nan}", "nvidia.deviceCoreScaling: nan is not allowed"),
        ("nvidia: {deviceCoreScaling: .inf}", "nvidia.deviceCoreScaling: inf is not allowed"),
        ("nvidia: {deviceCoreScaling: true}", "nvidia.deviceCoreScaling: True is not allowed"),
        (
            "nvidia: {knownMigGeometries: [{models: A30}]}",
            "nvidia.knownMigGeometries[0].models: 'A30' is not allowed: it must be a list",
        ),
        (
            "nvidia: {knownMigGeometries: [{models: [A30], allowedGeometries: [{}]}]}",
            "nvidia.knownMigGeometries[0].allowedGeometries[0]: {} is not allowed: it must be a",
        ),
        (
            "nvidia: {knownMigGeometries: [{allowedGeometries: [[{name: a, count: x}]]}]}",
            "nvidia.knownMigGeometries[0].allowedGeometries[0][0].count: 'x' is not allowed",
        ),
        (
            "nvidia: {migProfileAllowlist: [{models: [A30], profiles: []}]}",
            "nvidia.migProfileAllowlist[0].profiles: [] is not allowed: it must be a list that",
        ),
        (
            "nvidia: {migProfileAllowlist: [{profiles: [1g.5gb]}]}",
            "nvidia.migProfileAllowlist[0].models: is missing: it must be a list that isn't empty",
        ),
        (
            "nvidia: {migProfileAllowlist: [{models: [A30], profiles: [1g.6gb, g.6gb]}]}",
            "nvidia.migProfileAllowlist[0].profiles[1]: 'g.6gb' is not allowed: it must be like",
        ),
        (
            "nodeconfig: [{name: a, filterdevices: {index: [x]}}]",
            "nodeconfig[0].filterdevices.index[0]: 'x' is not allowed: it must be a whole number",
        ),
        ("", "the file configures no devices"),
        ("newvendor: {a: 1}", "the file configures no devices"),
        ("- a", "the file must be a mapping, not ['a']"),
        ("a: [", "not valid YAML: "),
        ("a: 1\na: 2", "not valid YAML: the key 'a' appears twice"),
        ('{"a": ', "not valid YAML: "),
    ],
)
def test_a_mistake_has_its_place(text: str, problem: str) -> None:
    (found,) = problems_of(text)
    assert found.startswith(f"device-config.yaml: {problem}")


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
KEYS = ("nvidia", "metax", "iluvatars", "vnpus", "nodeconfig")
INNER = ("deviceSplitCount", "deviceMemoryScaling", "configs", "knownMigGeometries", "commonWord")


@given(
    st.dictionaries(
        st.sampled_from(KEYS), anything | st.dictionaries(st.sampled_from(INNER), anything)
    )
)
def test_anything_is_read_or_refused(document: dict[str, Any]) -> None:
    try:
        config = parse(json.dumps(document), "f")
    except UsageError:
        return
    assert any(document.values())
    assert len(config.vendors) <= len(config.configured)
