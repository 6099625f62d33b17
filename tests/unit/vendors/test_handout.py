import pytest

from hami_mock.hami.assignment import AssignedDevice
from hami_mock.hami.errors import Malformed
from hami_mock.vendors.handout import Container, hand_out, has_claims, next_claim, variables
from tests.makers import BY_WORD

DEVICES = (AssignedDevice("GPU-1", "NVIDIA", 3000, 30), AssignedDevice("GPU-2", "NVIDIA", 500, 10))


def given(
    word: str,
    visible: tuple[str, ...] = ("1",),
    annotations: dict[str, str] | None = None,
    *,
    oversubscribed: bool = False,
    **words: str,
) -> dict[str, str]:
    """The variables of a container with both devices."""
    container = Container(
        BY_WORD[word],
        annotations or {},
        0,
        DEVICES,
        visible,
        unique="x",
        is_oversubscribed=oversubscribed,
        words=words,
    )
    return hand_out(container).variables


def test_nvidia_limits_each_card_and_the_cores_of_all() -> None:
    assert given("NVIDIA", ("GPU-1", "GPU-2")) == {
        "NVIDIA_VISIBLE_DEVICES": "GPU-1,GPU-2",
        "CUDA_DEVICE_MEMORY_LIMIT_0": "3000m",
        "CUDA_DEVICE_MEMORY_LIMIT_1": "500m",
        "CUDA_DEVICE_SM_LIMIT": "30",
        "CUDA_DEVICE_MEMORY_SHARED_CACHE": "/usr/local/vgpu/x.cache",
        "LIBCUDA_LOG_LEVEL": "1",
    }


def test_hamis_configuration_has_a_word_in_nvidias_variables() -> None:
    said = given("NVIDIA", log_level="4", core_policy="disable")
    assert said["LIBCUDA_LOG_LEVEL"] == "4"
    assert said["GPU_CORE_UTILIZATION_POLICY"] == "disable"
    assert "LIBCUDA_LOG_LEVEL" not in given("NVIDIA", log_level="")


def test_a_card_of_two_devices_is_named_once() -> None:
    assert set(given("MR-V100", ("GPU-1", "GPU-1")).values()) == {"GPU-1"}


def test_oversubscription_is_said() -> None:
    assert given("NVIDIA", oversubscribed=True)["CUDA_OVERSUBSCRIBE"] == "true"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ('[{"UUID":"GPU-2","temp":"vir02"}]', {"ASCEND_VNPU_SPECS": "vir02"}),
        ('[{"UUID":"GPU-1","memory":65536}]', {}),
        ('[{"UUID":"other","temp":"vir02"}]', {}),
    ],
    ids=["template", "whole", "another's"],
)
def test_ascend_says_the_template(told: str, expected: dict[str, str]) -> None:
    found = given("Ascend910B3", annotations={"huawei.com/Ascend910B3": told})
    assert found == {"ASCEND_VISIBLE_DEVICES": "1", **expected}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            '[{"UUID":"GPU-1","memory":3000,"core":30},{"UUID":"GPU-2","memory":500,"core":10}]',
            {"NPU_MEM_QUOTA": "3000", "NPU_PRIORITY": "30"},
        ),
        ('[{"UUID":"GPU-1","memory":3000}]', {"NPU_MEM_QUOTA": "3000"}),
        (
            # Two containers of a pod on one card: the plugin keeps the last.
            '[{"UUID":"GPU-1","memory":3000,"core":30},{"UUID":"GPU-1","memory":4000,"core":40}]',
            {"NPU_MEM_QUOTA": "4000", "NPU_PRIORITY": "40"},
        ),
        ("[]", {}),
    ],
    ids=["memory and cores", "memory only", "the last of a card", "neither"],
)
def test_hamis_library_on_ascend_has_quotas_and_paths(told: str, expected: dict[str, str]) -> None:
    annotations = {"huawei.com/vnpu-mode": "hami-core", "huawei.com/Ascend910B3": told}
    assert given("Ascend910B3", ("5", "6"), annotations) == {
        "ASCEND_VISIBLE_DEVICES": "5,6",
        "NPU_GLOBAL_SHM_PATH": "/hami-shared-region/5_global_registry",
        "NPU_LOCAL_SHM_PATH": "/hami-vnpu-shmem/vnpu_local_shmem",
        **expected,
    }


def test_ascends_plugin_needs_what_hamis_scheduler_writes() -> None:
    with pytest.raises(Malformed, match=r"the annotation huawei\.com/Ascend910B3 is missing"):
        given("Ascend910B3")


def test_a_template_of_ascend_that_is_no_text_is_refused() -> None:
    text = '[{"UUID":"GPU-1","temp":5}]'
    with pytest.raises(Malformed, match="device 0: temp: 5 must be a string"):
        given("Ascend910B3", annotations={"huawei.com/Ascend910B3": text})


@pytest.mark.parametrize("word", ["DCU", "XPU", "Vastai", "Metax-SGPU"])
def test_of_some_plugins_no_variables_are_known(word: str) -> None:
    assert given(word) == {}


def test_the_annotation_is_emptied_container_by_container() -> None:
    gpu = BY_WORD["NVIDIA"]
    a = gpu.pods.to_allocate
    annotations = {a: ";G,N,1,2:;G,N,1,2:H,N,1,2:;"}
    first = next_claim(gpu, annotations, 1)
    assert first is not None
    assert (first.position, first.size, first.taken) == (1, 1, {a: ";;G,N,1,2:H,N,1,2:;"})
    second = next_claim(gpu, {**annotations, **first.taken}, 1)
    assert second is not None
    assert (second.position, second.size, second.taken) == (2, 2, {a: ";;;"})
    assert next_claim(gpu, {**annotations, **second.taken}, 1) is None


def test_who_is_not_locked_for_takes_what_the_kubelet_says() -> None:
    idle = {word for word, hami in BY_WORD.items() if not has_claims(hami)}
    assert idle == {"kunlun", "GCU", "Mthreads", "Metax-GPU", "AWSNeuron"}


def test_a_name_with_a_number_is_set_for_each_device_and_others_for_the_first() -> None:
    templates = (("LIMIT_{i}", "{memory}m"), ("CORES", "{cores}"), ("CACHE", "/{unique}.cache"))
    assert variables(templates, DEVICES, unique="x") == {
        "LIMIT_0": "3000m",
        "LIMIT_1": "500m",
        "CORES": "30",
        "CACHE": "/x.cache",
    }


def test_what_would_be_empty_is_not_set() -> None:
    assert variables((("SPECS", "{template}"),), DEVICES, template="") == {}
    assert variables((("LIMIT_{i}", "{memory}m"), ("CORES", "{cores}")), []) == {}
