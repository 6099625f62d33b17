import pytest

from hami_mock.doctor import naming
from hami_mock.doctor.pod_object import PodObject
from tests.unit.doctor.patients import case, config, node, pod

RENAMED = config("nvidia: {resourceCountName: x.com/gpu, resourceMemoryName: x.com/gpumem}")


@pytest.mark.parametrize(
    "name",
    [
        "rdma/hca",
        "nvidia.com/mig-1g.5gb",
        "nvidia.com/gpu.shared",
        "cambricon.com/real-mlu-counts",
        "huawei.com/Ascend910",
        "huawei.com/Ascend910-memory",
        "iluvatar.ai/vgpu",
        "hugepages-2Mi",
    ],
)
def test_names_that_are_nobodys_mistake(name: str) -> None:
    assert list(naming.node_names(case(node(resources={name: "1"})))) == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("nvidia.com/gpumen", "nvidia.com/gpumem"),
        ("nvidia.com/GPU", "nvidia.com/gpu"),
        ("hygon.com/dcu-num", "hygon.com/dcunum"),
        ("huawei.com/Ascend910B3_memory", "huawei.com/Ascend910B3-memory"),
    ],
)
def test_names_that_are_almost_known(name: str, meant: str) -> None:
    (finding,) = naming.node_names(case(node(resources={name: "1"})))
    assert (finding.severity, finding.where) == ("warning", name)
    assert finding.advice.startswith(f"did you mean {meant}?")
    (finding,) = naming.pod_names(PodObject.read(pod({name: "1"})), None)
    assert (finding.severity, finding.where) == ("error", "container c0")
    assert name in finding.what


def test_names_that_the_configuration_changed() -> None:
    names = {finding.where for finding in naming.node_names(case(node(), config=RENAMED))}
    assert names == {
        "nvidia.com/gpu",
        "nvidia.com/gpumem",
        "nvidia.com/gpucores",
        "nvidia.com/gpumem-percentage",
    }
    (finding,) = naming.pod_names(PodObject.read(pod({"nvidia.com/gpu": "1"})), RENAMED)
    assert finding.advice == "use the names from the device configuration"


def test_the_names_of_the_configuration_are_right() -> None:
    asked = PodObject.read(pod({"x.com/gpu": "1", "x.com/gpumem": "1", "cpu": "1"}))
    assert list(naming.pod_names(asked, RENAMED)) == []
