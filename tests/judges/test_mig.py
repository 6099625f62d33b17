"""Cards cut by MIG, as NVIDIA's own programs see them: strategies none, single and mixed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.driver.state_file import StateFile, cut, live, mig_uuid
from tests.integration.grpcio_kubelet import GrpcioKubelet
from tests.judges.conftest import Have, MakeRoot
from tests.judges.driver_root import DriverRoot
from tests.judges.namespace import need_namespaces
from tests.judges.real_plugin import plugin
from tests.judges.test_feature_discovery import discovered

CARDS = 2
Invented = Callable[[int], tuple[DriverRoot, StateFile]]


def cut_alike(index: int) -> dict[str, object]:
    """All instances of one kind, as the strategy `single` wants them: two of 1g.5gb."""
    values = cut(index)
    instances = [{**values["gpu_instances"][0], "id": 7 + n, "start": n} for n in range(2)]
    parts = [
        {**values["compute_instances"][0], "gpu_instance": 7 + n, "uuid": mig_uuid(index, 7 + n)}
        for n in range(2)
    ]
    return values | {"gpu_instances": instances, "compute_instances": parts}


@pytest.fixture
def mixed(invented: Invented) -> DriverRoot:
    root, file = invented(CARDS)
    for index in range(CARDS):
        file.set(index, cut(index))
    return root


@pytest.fixture
def single(invented: Invented) -> DriverRoot:
    root, file = invented(CARDS)
    for index in range(CARDS):
        file.set(index, cut_alike(index))
    return root


@pytest.fixture
def capabilities(root_of: MakeRoot) -> Path:
    """What /proc/driver has on a node with MIG: which node gives access to which instance."""
    return root_of("A100-SXM4-40GB", CARDS).folder / "proc/driver"


@pytest.fixture
def kubelet(socket_folder: Path, google_messages: ModuleType) -> Iterator[GrpcioKubelet]:
    with GrpcioKubelet(socket_folder, google_messages) as kubelet:
        yield kubelet


def registered(
    have: Have, root: DriverRoot, kubelet: GrpcioKubelet, capabilities: Path, strategy: str
) -> dict[str, set[str]]:
    """Return the resources that NVIDIA's plugin registers, each with its devices."""
    program = have("nvidia-device-plugin", need_namespaces)
    places = {"/proc/driver": capabilities}
    wanted = {
        "none": {"nvidia.com/gpu"},
        "single": {"nvidia.com/gpu"},
        # The plugin takes the 2c.3g.20gb for a 3g.20gb.
        "mixed": {"nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb"},
    }[strategy]
    with plugin(program, root, kubelet, f"--mig-strategy={strategy}", places=places) as real:
        try:
            kubelet.wait_for_lists(wanted)
        except AssertionError as error:
            raise AssertionError(real.log.read_text()[-3000:]) from error
        return {name: set(kubelet.devices(name)) for name in wanted}


def test_plugin_with_strategy_none(
    have: Have, mixed: DriverRoot, kubelet: GrpcioKubelet, capabilities: Path
) -> None:
    found = registered(have, mixed, kubelet, capabilities, "none")
    assert found == {"nvidia.com/gpu": {card.uuid for card in mixed.cards}}


def test_plugin_with_strategy_single(
    have: Have, single: DriverRoot, kubelet: GrpcioKubelet, capabilities: Path
) -> None:
    found = registered(have, single, kubelet, capabilities, "single")
    assert found == {
        "nvidia.com/gpu": {mig_uuid(index, 7 + n) for index in range(CARDS) for n in range(2)}
    }


def test_plugin_with_strategy_mixed(
    have: Have, mixed: DriverRoot, kubelet: GrpcioKubelet, capabilities: Path
) -> None:
    found = registered(have, mixed, kubelet, capabilities, "mixed")
    assert found == {
        "nvidia.com/mig-1g.5gb": {mig_uuid(index, 7) for index in range(CARDS)},
        "nvidia.com/mig-3g.20gb": {mig_uuid(index, 2) for index in range(CARDS)},
    }


def test_plugin_and_discovery_see_how_users_cut_cards(
    have: Have, kubelet: GrpcioKubelet, root_of: MakeRoot, tmp_path: Path
) -> None:
    root = root_of("A100-SXM4-40GB", CARDS, "--nvidia-mig=3g.20gb,1g.5gb,1g.5gb")
    program = have("nvidia-device-plugin", need_namespaces)
    places = {"/proc/driver": root.folder / "proc/driver"}
    names = {"nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb"}
    with plugin(program, root, kubelet, "--mig-strategy=mixed", places=places):
        kubelet.wait_for_lists(names)
        counts = {name: len(kubelet.devices(name)) for name in names}
    assert counts == {"nvidia.com/mig-1g.5gb": 2 * CARDS, "nvidia.com/mig-3g.20gb": CARDS}
    found = discovered(have("gpu-feature-discovery"), root, tmp_path, "--mig-strategy=mixed")
    assert found["nvidia.com/mig-1g.5gb.count"] == str(2 * CARDS)
    assert found["nvidia.com/mig-3g.20gb.multiprocessors"] == "42"


def test_discovery_with_strategy_single(have: Have, single: DriverRoot, tmp_path: Path) -> None:
    found = discovered(have("gpu-feature-discovery"), single, tmp_path, "--mig-strategy=single")
    assert found["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"
    assert found["nvidia.com/gpu.count"] == "4"
    assert found["nvidia.com/gpu.memory"] == "4864"
    assert found["nvidia.com/mig.strategy"] == "single"


def test_discovery_with_strategy_mixed(have: Have, mixed: DriverRoot, tmp_path: Path) -> None:
    found = discovered(have("gpu-feature-discovery"), mixed, tmp_path, "--mig-strategy=mixed")
    assert found["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-40GB"
    assert found["nvidia.com/mig-1g.5gb.count"] == "2"
    assert found["nvidia.com/mig-1g.5gb.memory"] == "4864"


@pytest.mark.parametrize("branch", [535, 550])
def test_nvidia_smi(have: Have, mixed: DriverRoot, branch: int) -> None:
    program = have(f"nvidia-smi-{branch}")
    told = mixed.ask(program, "-L")
    assert re.findall(r"MIG (\S+) +Device +(\d+): \(UUID: (\S+)\)", told) == [
        (name, str(n), mig_uuid(index, instance))
        for index in range(CARDS)
        for n, (name, instance) in enumerate((("1g.5gb", 7), ("2c.3g.20gb", 2)))
    ]
    table = mixed.ask(program)
    # Card, GPU instance, compute instance, index; memory; multiprocessors.
    parts = re.findall(
        r"\| +(\d+) +(\d+) +(\d+) +(\d+) +\| +(\d+)MiB / +(\d+)MiB +\| +(\d+) ", table
    )
    assert parts == [
        row
        for card in map(str, range(CARDS))
        for row in (
            (card, "7", "0", "0", "0", "4864", "14"),
            (card, "2", "0", "1", "100", "19968", "28"),
        )
    ]
    assert len(re.findall(r"N/A +Default \|\n.*Enabled \|", table)) == CARDS


def test_nvidia_ml_py_finds_instances(have: Have, mixed: DriverRoot) -> None:
    script = (
        "import pynvml as n; n.nvmlInit()\n"
        "for i in range(n.nvmlDeviceGetCount()):\n"
        "    card = n.nvmlDeviceGetHandleByIndex(i)\n"
        "    for k in range(n.nvmlDeviceGetMaxMigDeviceCount(card)):\n"
        "        try: part = n.nvmlDeviceGetMigDeviceHandleByIndex(card, k)\n"
        "        except n.NVMLError_NotFound: continue\n"
        "        memory = n.nvmlDeviceGetMemoryInfo(part).total >> 20\n"
        "        found = n.nvmlDeviceGetUUID(part), n.nvmlDeviceGetGpuInstanceId(part), memory\n"
        "        print(i, n.nvmlDeviceGetIndex(part), *found)\n"
    )
    told = mixed.ask(have("nvidia-ml-py"), "-c", script)
    assert told.splitlines() == [
        f"{index} {n} {mig_uuid(index, instance)} {instance} {memory}"
        for index in range(CARDS)
        for n, (instance, memory) in enumerate(((7, 4864), (2, 19968)))
    ]


def test_an_uncut_card_beside_a_cut_one(
    have: Have, invented: Invented, kubelet: GrpcioKubelet, capabilities: Path
) -> None:
    root, file = invented(CARDS)
    file.set(0, cut_alike(0))
    file.set(1, live(1))
    program = have("nvidia-device-plugin", need_namespaces)
    names = {"nvidia.com/gpu", "nvidia.com/mig-1g.5gb"}
    places = {"/proc/driver": capabilities}
    with plugin(program, root, kubelet, "--mig-strategy=mixed", places=places):
        kubelet.wait_for_lists(names)
        assert set(kubelet.devices("nvidia.com/gpu")) == {root.cards[1].uuid}
        assert set(kubelet.devices("nvidia.com/mig-1g.5gb")) == {mig_uuid(0, 7), mig_uuid(0, 8)}
