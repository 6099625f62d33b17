import pytest

from hami_mock.cli.demo import pod_kinds
from hami_mock.cli.main import main
from tests.unit.builders import laid_out


def test_a_pod_of_each_vendor_wants_a_slot_half_a_cards_memory_and_some_compute() -> None:
    assert pod_kinds(laid_out()) == {
        "nvidia": {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 30, "nvidia.com/gpumem": 16384},
        "mlu": {"cambricon.com/vmlu": 1},
        "iluvatar": {"iluvatar.ai/vgpu": 1, "iluvatar.ai/MR-V100.vCore": 30},
        "ascend": {"huawei.com/Ascend910-memory": 32768},
    }


def test_a_pod_wants_no_more_than_a_small_card_has() -> None:
    node = laid_out(nvidia_core_scaling=0.1, nvidia_memory=1)
    nvidia = pod_kinds(node)["nvidia"]
    assert nvidia["nvidia.com/gpucores"] == 10
    assert nvidia["nvidia.com/gpumem"] == 1


def test_there_is_no_demo_without_device_plugins(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--device-plugins=off"]) == 2
    assert "--device-plugins: the demo shows what ours register" in capsys.readouterr().err
