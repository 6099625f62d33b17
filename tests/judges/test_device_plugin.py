"""NVIDIA's own device plugin registers our cards, and drops the one that has a Xid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.driver.state_file import StateFile
from tests.integration.grpcio_kubelet import GrpcioKubelet
from tests.judges.conftest import Have, MakeRoot
from tests.judges.driver_root import DriverRoot
from tests.judges.namespace import need_namespaces
from tests.judges.nodes import NODES
from tests.judges.real_plugin import plugin

RESOURCE = "nvidia.com/gpu"
Invented = Callable[[int], tuple[DriverRoot, StateFile]]


@pytest.fixture
def program(have: Have) -> Path:
    return have("nvidia-device-plugin", need_namespaces)


@pytest.fixture
def kubelet(socket_folder: Path, google_messages: ModuleType) -> Iterator[GrpcioKubelet]:
    with GrpcioKubelet(socket_folder, google_messages) as kubelet:
        yield kubelet


@pytest.mark.parametrize(("model", "cards"), NODES)
def test_registers_all_cards(
    program: Path, kubelet: GrpcioKubelet, root_of: MakeRoot, model: str, cards: int
) -> None:
    root = root_of(model, cards)
    with plugin(program, root, kubelet):
        kubelet.wait_for_lists({RESOURCE})
        assert kubelet.devices(RESOURCE) == {card.uuid: "Healthy" for card in root.cards}
        assert len(root.cards) == cards
        chosen = [card.uuid for card in root.cards[:2]]
        (answer,) = kubelet.plugin(RESOURCE).allocate(chosen)
        assert sorted(answer.envs["NVIDIA_VISIBLE_DEVICES"].split(",")) == sorted(chosen)


@pytest.mark.parametrize("cards", [8, 16, 128])
def test_a_xid_makes_exactly_that_card_unhealthy(
    program: Path, kubelet: GrpcioKubelet, invented: Invented, cards: int
) -> None:
    root, file = invented(cards)

    def unhealthy() -> set[str]:
        return {uuid for uuid, health in kubelet.devices(RESOURCE).items() if health != "Healthy"}

    with plugin(program, root, kubelet) as real:
        kubelet.wait_for_lists({RESOURCE})
        assert unhealthy() == set()
        kubelet.wait_until(real.is_waiting, "its wait for events")
        # One that it takes for a program's mistake, then a true one.
        file.xid(5, 31)
        file.xid(3, 79)
        kubelet.wait_until(lambda: bool(unhealthy()), "the card's fault")
        assert unhealthy() == {root.cards[3].uuid}
        file.xid(6, 48)
        kubelet.wait_until(lambda: len(unhealthy()) > 1, "another card's fault")
        assert unhealthy() == {root.cards[3].uuid, root.cards[6].uuid}
