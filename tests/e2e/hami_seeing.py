"""What can be seen of a node of HAMi's: its cards, its lock, and who has what."""

from __future__ import annotations

import json

from hami_mock.hami import register
from hami_mock.hami.assignment import BIND_PHASE
from hami_mock.hami.kinds import HAMI_LOCK, Lock
from hami_mock.vendors.hami_vendor import HamiVendor
from tests.makers import BY_WORD

from .hami_placing import annotations_of
from .mock import TIMEOUT_S, Mock

NVIDIA = BY_WORD["NVIDIA"]


def cards_of(mock: Mock, vendor: HamiVendor = NVIDIA) -> dict[str, register.RegisteredDevice]:
    """The cards that the node's annotation has."""
    found = annotations_of(mock.cluster.get("node", mock.cluster.node_name))
    text = found.get(vendor.node.register)
    return {card.id: card for card in register.decode(text, vendor.node.encoding)} if text else {}


def wait_for_cards(mock: Mock, healthy: list[bool]) -> dict[str, register.RegisteredDevice]:
    return mock.cluster.wait(
        "the node's annotation",
        lambda: cards_of(mock),
        lambda cards: [card.healthy for card in cards.values()] == healthy,
        timeout=TIMEOUT_S,
    )


def wait_for_success(mock: Mock, name: str, vendor: HamiVendor = NVIDIA) -> None:
    """Wait until a pod runs, has got all that was assigned, and the node is free again."""
    mock.wait_for_phase(name, "Running")
    phase = "success" if vendor.scheduling.sets_bind_phase else "allocating"
    assert annotations_of(mock.cluster.get("pod", name))[BIND_PHASE] == phase
    wait_until_unlocked(mock, vendor.lock)


def wait_until_unlocked(mock: Mock, lock: Lock | None = HAMI_LOCK) -> None:
    if lock is not None:
        mock.cluster.wait(
            "the node unlocked",
            lambda: annotations_of(mock.cluster.get("node", mock.cluster.node_name)),
            lambda found: lock.annotation not in found,
            timeout=TIMEOUT_S,
        )


def slots_of(mock: Mock, name: str) -> dict[str, set[str]]:
    """The cards of the slots that the kubelet has given to a pod, by container."""
    uid = mock.cluster.get("pod", name)["metadata"]["uid"]
    file = mock.machine.device_plugin_dir / "kubelet_internal_checkpoint"
    entries = json.loads(file.read_text())["Data"]["PodDeviceEntries"]
    return {
        entry["ContainerName"]: {
            device_id.rpartition("-")[0] for ids in entry["DeviceIDs"].values() for device_id in ids
        }
        for entry in entries
        if entry["PodUID"] == uid and entry["ResourceName"] == "nvidia.com/gpu"
    }


def holders_of(mock: Mock) -> dict[str, list[tuple[str, str, int, int]]]:
    """Who holds which card, as `ctl status` says."""
    told = json.loads(mock.ctl("status", "-o", "json"))
    return {
        card["name"]: [
            (held["pod"], held["container"], held["memory"], held["cores"])
            for held in card["holders"]
        ]
        for card in told["cards"]
        if card["holders"]
    }
