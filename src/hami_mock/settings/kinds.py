"""The kinds of values that options and groups of cards have."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hami_mock.errors import UsageError
from hami_mock.kit.values import Kind, checked, choice, factor, listed, or_text, pattern, whole
from hami_mock.kubelet.limits import parse_version
from hami_mock.node.xid import XID
from hami_mock.vendors import VENDORS
from hami_mock.vendors.dra import Profile
from hami_mock.vendors.labelling import ALL, ON_REQUEST, LabelSet

MOST_CARDS = 128
_NUMA = whole(0, 63)


def _whole(low: int, high: int) -> Kind[int]:
    return or_text(whole(low, high))


CARDS = _whole(0, MOST_CARDS)
MEMORY = _whole(1, 16 * 1024 * 1024)
SPLIT = _whole(1, 1024)
SCALING = or_text(factor(100))
MODEL = pattern(r"\S+", "the name of a card model (see `hami-mock models`)", "NAME")
FACTOR = _whole(1, 1024 * 1024).or_word("auto", "auto")
RESOURCE_NAME = pattern(
    r"\S{1,253}", "a resource name such as example.com/gpu, without spaces", "NAME"
)
RESOURCE_NAME_OR_NONE = pattern(
    r"\S{0,253}",
    'a resource name such as example.com/gpu, without spaces, or "" to leave the resource out',
    "NAME",
)
NODE_NAME = pattern(
    r"[A-Za-z0-9_.-]{1,253}", "a node's name: letters, digits, dots and dashes", "NAME"
)
VERSION = pattern(
    r"v?\d{1,2}\.\d{1,3}(\..*)?",
    "a Kubernetes version such as 1.36.4 (in quotes in a file)",
    "VERSION",
).then(parse_version, lambda version: ".".join(map(str, version)))
_OLDEST_DRIVER = max(vendor.oldest_driver for vendor in VENDORS)


def _known_driver(version: str) -> str:
    if int(version.partition(".")[0]) < _OLDEST_DRIVER:
        raise ValueError("too old")
    return version


DRIVER_VERSION = pattern(
    r"\d{1,4}(\.\d{1,4}){1,3}",
    f"a driver version such as 580.95.05, {_OLDEST_DRIVER} or newer (in quotes in a file)",
    "VERSION",
).then(_known_driver, str)
SOCKET = pattern(r"(/.*)?", 'an absolute path, or "" to turn it off', "PATH")
XIDS = listed(XID, "numbers separated by commas, such as 13,31", "N,N").then(
    frozenset, lambda xids: ",".join(map(str, sorted(xids)))
)


def _label_sets(words: tuple[str, ...]) -> tuple[LabelSet, ...]:
    usual = set(LabelSet) - ON_REQUEST if ALL in words else set()
    return tuple(each for each in LabelSet if each in usual or each in words)


LABELS = listed(
    choice(*LabelSet, ALL),
    f"one or more of {', '.join(LabelSet)} and {ALL}, separated by commas",
    "SET,SET",
).then(_label_sets, ",".join)
PROFILES_OF_DRA = listed(
    choice(*Profile),
    f"one or more of {', '.join(Profile)}, separated by commas",
    "PROFILE,PROFILE",
).then(lambda words: tuple(each for each in Profile if each in words), ",".join)
FOLDER = pattern(r"/.*", "an absolute path", "DIR")
FOLDER_OR_NONE = pattern(r"(/.*)?", 'an absolute path, or "" for none', "DIR")
FILE = pattern(r".+", "a path", "FILE")
FILES = listed(FILE, "one or more paths, separated by commas", "FILE,FILE", least=1)
TIME_FACTOR = _whole(1, 10_000)


def _load(value: object) -> str:
    # What reads it is loaded only if it is more than the default.
    if value == IDLE:
        return IDLE
    from hami_mock.node.load_reader import read

    try:
        read(value, "load")
    except UsageError as error:
        raise ValueError("no load") from error
    return value if isinstance(value, str) else json.dumps(value)


IDLE = "idle"
LOAD = Kind(
    _load,
    "a percentage (80), a range (20-60), a shape such as sine:20-80:10m, or a schedule such as "
    "[{time: 1h, utilization: 80}, {time: 1h, utilization: 0}]",
    {"type": ["string", "number", "array", "object"]},
    "LOAD",
)
_PORT = r"([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
ADDRESS = pattern(
    rf"|(\[[0-9A-Fa-f:.]+\]|[^:\s]*):{_PORT}",
    'HOST:PORT, :PORT for all addresses, or "" to turn it off',
    "ADDR",
)


_PREFIX = choice(*(vendor.prefix for vendor in VENDORS))
# People know the maker, and flags the prefix that HAMi's mock gave it.
_PREFIXES = {vendor.name: vendor.prefix for vendor in VENDORS}
VENDOR_LIST = listed(
    replace(_PREFIX, read=lambda value: _PREFIX.read(_PREFIXES.get(str(value), value))),
    f"one or more of {', '.join(vendor.prefix for vendor in VENDORS)}, separated by commas",
    "NAME,NAME",
    least=1,
)


def _rows(value: object) -> list[frozenset[int]]:
    position = whole(0, MOST_CARDS - 1)
    if not isinstance(value, list) or not all(isinstance(row, list) for row in value):
        raise ValueError("not a list of lists")
    cards = [position.read(card) for row in value for card in row]
    if len(set(cards)) < len(cards):
        raise ValueError("a card twice")
    return [frozenset(row) for row in value]


def _numa(value: object) -> int | list[int]:
    return [_NUMA.read(node) for node in value] if isinstance(value, list) else _NUMA.read(value)


PROFILES = listed(
    pattern(r"[0-9]{1,2}g\.\S{1,20}", "a MIG profile such as 1g.10gb", "PROFILE"),
    "MIG profiles separated by commas, such as 3g.40gb,2g.20gb,1g.10gb",
    "PROFILE,…",
)

GROUP_KEYS: Mapping[str, Kind[Any]] = {
    "cards": _whole(1, MOST_CARDS),
    "model": MODEL,
    "memory": MEMORY,
    "numa": Kind(
        _numa,
        "a NUMA node from 0 to 63, or a list with one for each card of the group",
        {"anyOf": [_NUMA.schema, {"type": "array", "items": _NUMA.schema}]},
    ),
    "nvlink": Kind(
        _rows,
        "lists of card positions in the group, such as [[0, 1], [2, 3]], each card in at most one",
        {"type": "array", "items": {"type": "array", "items": CARDS.schema}},
    ),
    "mig": PROFILES,
}

GROUPS = checked(
    # What is in them is read where the vendor is known.
    lambda value: isinstance(value, list),
    "a list of groups of cards, such as [{cards: 4, model: T4}]",
    {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {key: kind.schema for key, kind in GROUP_KEYS.items()},
            "additionalProperties": False,
        },
    },
)
