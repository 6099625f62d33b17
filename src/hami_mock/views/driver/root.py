"""The driver root: which files, links and nodes there are in it, for the cards of a node. Pure.

lib64/ and bin/ have libraries and programs, proc/ and sys/ what clients read there, dev/ character
nodes, state/ the state file, and cdi/ a specification for container runtimes.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from hami_mock.node.cards import Card
from hami_mock.vendors import VENDORS
from hami_mock.vendors.driver import Driver, Machine
from hami_mock.views.driver.layout import MOST_CARDS, STATE_FILE, STATE_IN_PODS
from hami_mock.views.driver.messages import SETTER_SOCKET

STATE_FOLDER = "state"
SETTERS = os.path.normpath(f"{STATE_FOLDER}/{SETTER_SOCKET}")
"""The socket of the agent that has the root."""
MANIFEST = "hami-mock-driver.json"
CDI_FILE = "cdi/{name}.yaml"
STAND_IN = "/dev/null"
"""What stands in for a node that can't be made: it is there, and nothing comes of it."""
_CDI_VERSION = "0.5.0"
_CUDA_MARK = b"hami-mock's CUDA is\0"
"""What stands before CUDA's version in the placeholder (native/placeholder)."""


class Step(StrEnum):
    """A part of the root, made by the command of its name."""

    FS = "fs"
    DRIVER = "driver"
    CDI = "cdi"


class Kind(StrEnum):
    """What stands at a path."""

    FILE = "file"
    LINK = "link"
    NODE = "node"
    STATE = "state"


@dataclass(frozen=True)
class Item:
    """One thing in the root, by its path in there."""

    path: str
    kind: Kind
    step: Step
    content: bytes = b""
    target: str = ""
    device: tuple[int, int] = (0, 0)
    mode: int = 0o644

    @property
    def mark(self) -> str:
        """What tells it from something else at its place; the state file changes all the time."""
        match self.kind:
            case Kind.FILE:
                return mark_of(self.content)
            case Kind.LINK:
                return self.target
            case Kind.NODE:
                return "{}:{}".format(*self.device)
            case Kind.STATE:
                return ""


class Programs(NamedTuple):
    """What was compiled: the library, what stands in for all others, and the program, if any."""

    library: bytes
    placeholder: bytes
    program: bytes | None


class Shared(NamedTuple):
    """A file, a folder or a node of the machine, and where a container has it."""

    source: str
    target: str


class InContainers(NamedTuple):
    """What containers get: all of them mounts, read-only, and nodes by the card's UUID.

    Nodes of "" are for every container that has a card.
    """

    mounts: Sequence[Shared] = ()
    devices: Mapping[str, Sequence[Shared]] = MappingProxyType({})


def driven(cards: Iterable[Card]) -> tuple[Driver, tuple[Card, ...]]:
    """Return the driver that a node can have, and the cards that it shows."""
    vendor, load = next((each, each.driver) for each in VENDORS if each.driver)
    assert load is not None
    return load(), tuple(card for card in cards if card.vendor is vendor)[:MOST_CARDS]


def mark_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def files(driver: Driver, machine: Machine) -> Iterator[Item]:
    """Yield what `fs` makes."""
    for path, text in driver.files(machine).items():
        yield Item(path, Kind.FILE, Step.FS, text.encode())
    for node in driver.nodes(machine.cards):
        place = (node.major, node.minor)
        yield Item(f"dev/{node.path}", Kind.NODE, Step.FS, device=place, mode=0o666)
    yield Item(f"{STATE_FOLDER}/{STATE_FILE}", Kind.STATE, Step.FS)


def programs(driver: Driver, version: str, compiled: Programs) -> Iterator[Item]:
    """Yield what `driver` makes."""
    yield from _library(driver.library, version, compiled.library)
    placeholder = _with_cuda(compiled.placeholder, driver.about(version)["cuda_version"])
    for name in driver.placeholders:
        yield from _library(name, version, placeholder)
    if compiled.program is not None:
        path = f"bin/{driver.program}"
        yield Item(path, Kind.FILE, Step.DRIVER, compiled.program, mode=0o755)


def _with_cuda(placeholder: bytes, version: int) -> bytes:
    """Return a placeholder that says this version of CUDA, as NVML does."""
    before, mark, rest = placeholder.partition(_CUDA_MARK)
    return before + mark + version.to_bytes(4, "little") + rest[4:] if mark else placeholder


def _library(name: str, version: str, content: bytes) -> Iterator[Item]:
    """Yield a library and the links by which programs know it."""
    file = name.format(version=version)
    bare = file.removesuffix(f".{version}")
    yield Item(f"lib64/{file}", Kind.FILE, Step.DRIVER, content, mode=0o755)
    yield Item(f"lib64/{bare}.1", Kind.LINK, Step.DRIVER, target=file)
    yield Item(f"lib64/{bare}", Kind.LINK, Step.DRIVER, target=f"{bare}.1")


def in_containers(
    driver: Driver, machine: Machine, root: Path, *, has_program: bool, has_nodes: bool
) -> InContainers:
    """Return what a container gets of a root at this path."""
    mounts = [
        Shared(str(root / mount.source), mount.target)
        for mount in driver.mounts
        if has_program or mount.source != f"bin/{driver.program}"
    ]
    devices: dict[str, list[Shared]] = {}
    for node in driver.nodes(machine.cards):
        source = str(root / "dev" / node.path) if has_nodes else STAND_IN
        devices.setdefault(node.card, []).append(Shared(source, f"/dev/{node.path}"))
    return InContainers([*mounts, Shared(str(root / STATE_FOLDER), STATE_IN_PODS)], devices)


def cdi(driver: Driver, machine: Machine, within: "InContainers") -> Item:
    """Return the specification for container runtimes: each card by index and UUID, and all."""
    import yaml

    cards = machine.cards
    own = {uuid: _edits(nodes) for uuid, nodes in within.devices.items()}
    named = [(name, own[card.uuid]) for card in cards for name in (str(card.index), card.uuid)]
    named.append(("all", [edit for card in cards for edit in own[card.uuid]]))
    spec: dict[str, Any] = {
        "cdiVersion": _CDI_VERSION,
        "kind": driver.cdi_kind,
        "devices": [
            {"name": name, "containerEdits": {"deviceNodes": edits}} for name, edits in named
        ],
        "containerEdits": {
            "deviceNodes": own[""],
            "mounts": [
                {
                    "hostPath": mount.source,
                    "containerPath": mount.target,
                    "options": ["ro", "nosuid", "nodev", "bind"],
                }
                for mount in within.mounts
            ],
        },
    }
    path = CDI_FILE.format(name=driver.cdi_kind.partition(".")[0])
    # Nodes that stand under two names are written twice: not everybody reads YAML's references.
    text = yaml.dump(spec, Dumper=_plain_dumper(), sort_keys=False)
    return Item(path, Kind.FILE, Step.CDI, text.encode())


def _edits(nodes: Iterable[Shared]) -> list[dict[str, str]]:
    return [{"path": node.target, "hostPath": node.source} for node in nodes]


def _plain_dumper() -> Any:
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    return Dumper
