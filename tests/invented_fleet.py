"""A fleet that no API server has, with pods and faults: what pages and screens are shown with."""

from pathlib import Path
from random import Random

from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.nodes import node_of
from hami_mock.hami.assignment import AssignedDevice, Assignment
from hami_mock.node.pods import Pod
from hami_mock.settings.settings import load_pools

SMALL = """
vendors: [nvidia]
hami: true
nvidia: {cards: 8, model: A100-SXM4-80GB}
pools:
  - {name: a100, nodes: 24, zone: [eu-1a, eu-1b], rack: 8}
  - {name: t4, nodes: 6, nvidia: {cards: 2, model: T4}}
"""
LARGE = """
vendors: [nvidia]
hami: true
nvidia: {cards: 8, model: A100-SXM4-80GB}
pools:
  - {name: a100, nodes: 2400, zone: [eu-1a, eu-1b], rack: 16}
  - {name: h100, nodes: 1600, zone: [eu-1a], rack: 32, nvidia: {model: H100-SXM5-80GB}}
  - {name: t4, nodes: 1000, nvidia: {cards: 4, model: T4}}
"""
_ANNOTATION = "hami.io/vgpu-devices-allocated"


def invented_fleet(folder: Path, text: str = SMALL) -> Fleet:
    """Return a fleet whose nodes are all there and ready, and empty."""
    file = folder / "fleet.yaml"
    file.write_text(text)
    fleet = Fleet("demo", load_pools(str(file)))
    for member in fleet.members.values():
        member.is_there = member.is_ready = True
    return fleet


def assigned_pod(name: str, *parts: tuple[str, int, int]) -> Pod:
    """Return a pod to which HAMi has assigned parts of cards: the card's UUID, MiB and percent."""
    devices = tuple(AssignedDevice(uuid, "NVIDIA", memory, cores) for uuid, memory, cores in parts)
    return Pod(
        "default",
        name,
        annotations={_ANNOTATION: Assignment((devices,)).encode()},
        containers=("main",),
        requests={"main": {"nvidia.com/gpu": len(devices)}},
        phase="Running",
    )


def place(fleet: Fleet, node: str, *pods: Pod) -> None:
    """Let pods be on a node from now on."""
    member = fleet.members[node]
    member.pods = {**(member.pods or {}), **{(pod.namespace, pod.name): pod for pod in pods}}
    fleet.changes.send()


def uuids(fleet: Fleet, node: str) -> list[str]:
    """Return the UUIDs of a node's cards."""
    member = fleet.members[node]
    return [card.uuid for card in node_of(member.pool, member.index).cards]


def work(fleet: Fleet, seed: int = 7) -> None:
    """Let pods be everywhere, the fewer the later a node comes in its pool.

    The same seed makes the same fleet.
    """
    random, number = Random(seed), 0
    for name, member in fleet.members.items():
        memory = 16384 if member.pool.name == "t4" else 81920
        full = max(0.0, 1.15 - 1.2 * member.index / member.pool.nodes)
        pods = []
        for uuid in uuids(fleet, name):
            if random.random() < full:
                most, percent = random.choice(((1, 100), (2, 50), (2, 40), (4, 25)))
                for _ in range(random.randint(1, most)):
                    pods.append(assigned_pod(f"trainer-{number}", (uuid, memory // most, percent)))
                    number += 1
        place(fleet, name, *pods)


def break_some(fleet: Fleet) -> None:
    """Let a rack of a LARGE fleet fail and another stop, and a few cards and nodes besides."""
    fleet.act("fail", fleet.find(["rack=a100-r30"]), {"reason": "no power"})
    fleet.act("degrade", fleet.find(["h100-200:0", "h100-733:1"]), {"reason": "thermal"})
    fleet.act("fail", fleet.find(["h100-30:0", "a100-401:0"]), {"xid": 79})
    fleet.act("stop-node", fleet.find(["rack=h100-r5"]), {"reason": "no power"})
    for member, _ in fleet.find(["rack=h100-r5"]):
        member.is_ready = False
    for index in range(991, 1000):
        fleet.members[f"t4-{index}"].is_there = False
