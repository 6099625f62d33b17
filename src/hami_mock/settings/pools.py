"""`pools` in the file: a fleet of so many nodes of a kind each. Pure.

    pools:
      - name: a100
        nodes: 1000
        zone: [eu-1a, eu-1b]
        rack: 16
        nvidia: {cards: 8, model: A100-SXM4-80GB}

Beside its own keys a pool has those of a section of `nodes`: which cards its nodes carry. Where a
section matches a node's name (or the name that the pool gives with `match`), it counts too, and the
pool says it better.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from hami_mock.kit.quantities import quantity
from hami_mock.kit.values import Fields, Kind, Mistakes, checked, choice, listed, pattern, whole

if TYPE_CHECKING:
    from hami_mock.settings.layers import Entry
    from hami_mock.settings.settings import Settings

MOST_NODES = 100_000
MOST_POOLS = 1000
_NAME = pattern(
    r"[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?",
    "a name of lower-case letters, digits and dashes, at most 42 characters",
    "NAME",
)
_LABEL_TEXT = r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
_LABEL = pattern(_LABEL_TEXT, "a label's value: at most 63 letters, digits, -, _ and .", "TEXT")
_KEY = r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_ZONES = listed(
    _LABEL, "a zone, or a list of zones that the nodes are spread over", "ZONE", least=1
)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Taint(NamedTuple):
    """A taint of a node."""

    key: str
    value: str
    effect: str

    @classmethod
    def read(cls, value: object) -> "Taint":
        """Read key=value:Effect, or a mapping of the three. Raises ValueError."""
        if isinstance(value, str):
            rest, _, effect = value.rpartition(":")
            key, _, text = rest.partition("=")
        elif isinstance(value, dict) and value.keys() <= {"key", "value", "effect"}:
            key, text, effect = (value.get(name, "") for name in ("key", "value", "effect"))
        else:
            raise ValueError("no taint")
        return cls(_KEY_KIND.read(key), _LABEL.read(text), choice(*_EFFECTS).read(effect))


def _amount(parts: int, allowed: str) -> Kind[int]:
    def read(value: object) -> int:
        found = quantity(value, parts)
        if found is None or found <= 0:
            raise ValueError("no quantity, or nothing")
        return found

    return Kind(read, allowed, {"type": ["integer", "string"]}, "QUANTITY")


def _labels(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > 100:
        raise ValueError("no mapping, or too large")
    return {_KEY_KIND.read(key): _LABEL.read(text) for key, text in value.items()}


_KEY_KIND = pattern(_KEY, "a label's name such as example.com/team", "KEY")
_TAINT = Kind(
    Taint.read,
    f"KEY=VALUE:EFFECT, with one of the effects {', '.join(_EFFECTS)}",
    {"type": ["string", "object"]},
)
_RACK = checked(
    lambda value: (type(value) is int and 0 < value <= MOST_NODES) or isinstance(value, str),
    "how many nodes a rack has, or the name of the rack that all are in",
    {"type": ["integer", "string"]},
)
KEYS: Mapping[str, Kind[Any]] = {
    "name": _NAME,
    "nodes": whole(0, MOST_NODES),
    "match": pattern(r"[A-Za-z0-9_.-]{1,253}", "the name of a node that a section matches", "NAME"),
    "zone": _ZONES,
    "rack": _RACK,
    "labels": Kind(_labels, "a mapping of labels and their values", {"type": "object"}),
    "taints": listed(_TAINT, f"a list, each {_TAINT.allowed}", "TAINT"),
    "cpu": _amount(1000, "a quantity of CPUs such as 64 or 500m"),
    "memory": _amount(1, "a quantity of bytes such as 512Gi"),
    "max-pods": whole(1, 10_000),
}


@dataclass(frozen=True)
class Kept:
    """What a pool says of its nodes, but for their cards.

    `match` is the name by which their section of the file is found; "" means their own. `rack` is
    how many nodes a rack has, or the rack that all are in; None: nobody has said. `cpu` counts
    thousandths, `memory` bytes.
    """

    name: str
    nodes: int
    match: str = ""
    zones: tuple[str, ...] = ()
    rack: int | str | None = None
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    taints: tuple[Taint, ...] = ()
    cpu: int = 64_000
    memory: int = 512 * 2**30
    max_pods: int = 110


@dataclass(frozen=True)
class PoolSection:
    """A pool as it stands in a file: what it says itself, and the options of its nodes."""

    place: str
    kept: Kept
    entries: Mapping[str, "Entry"] = field(hash=False)


@dataclass(frozen=True)
class Pool(Kept):
    """So many nodes of a kind. `settings` are those of each but for its name."""

    settings: "Settings" = None  # type: ignore[assignment]

    @property
    def node_names(self) -> Iterator[str]:
        return map(self.node_name, range(self.nodes))

    def node_name(self, index: int) -> str:
        return f"{self.name}-{index}"

    def index_of(self, node_name: str) -> int | None:
        """Return which of the pool's nodes has a name; None: none, however large it were."""
        name, _, number = node_name.rpartition("-")
        is_number = number.isascii() and number.isdigit() and str(int(number[:9])) == number
        return int(number) if name == self.name and is_number else None

    def zone_of(self, index: int) -> str:
        """Return a node's zone: racks stay whole, and follow each other through the zones."""
        row = index // self.rack if isinstance(self.rack, int) else index
        return self.zones[row % len(self.zones)] if self.zones else ""

    def rack_of(self, index: int) -> str:
        if isinstance(self.rack, int):
            return f"{self.name}-r{index // self.rack}"
        return self.rack or ""


def read_own(section: Mapping[Any, Any], place: str, mistakes: Mistakes) -> Kept | None:
    """Read the keys that are a pool's own; None if they are wrong, which the mistakes say."""
    fields = Fields(section, place, mistakes, is_null_absent=True)
    before = len(mistakes.lines)
    others = KEYS.keys() - {"name", "nodes"}
    found: dict[str, Any] = {key: fields.get(key, KEYS[key], None) for key in others}
    given = {key.replace("-", "_"): value for key, value in found.items() if value is not None}
    if "zone" in given:
        given["zones"] = given.pop("zone")
    name = fields.need("name", KEYS["name"], "")
    nodes = fields.need("nodes", KEYS["nodes"], 0)
    return Kept(name, nodes, **given) if len(mistakes.lines) == before else None


def check_names(pools: Sequence[PoolSection], mistakes: Mistakes) -> None:
    """Refuse two pools whose nodes could have the same names."""
    taken: dict[str, str] = {}
    for pool in pools:
        name = pool.kept.name
        if name in taken:
            mistakes.say(f"{pool.place}.name", f"{name!r} is the name of {taken[name]} too")
        taken.setdefault(name, pool.place)
