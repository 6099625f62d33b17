"""Words → nodes of a fleet, and cards or resources on them. Pure.

a100-17                  a node          a100-17:nvidia/0    a card of it
a100                     a pool          a100:0              the first card of all its nodes
rack=a100-r3, zone=eu-1  where they are  'zone=eu-*:nvidia'  all cards of a maker there
'a100-1?', all           a glob, every node
"""

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from hami_mock.errors import UsageError
from hami_mock.faults.targets import ALL, listed
from hami_mock.fleet.member import Member
from hami_mock.kit.similar import did_you_mean

Found = tuple[Member, tuple[str, ...] | None]
"""A node, and the words for cards or resources on it; None: the node as a whole."""
_GLOB = frozenset("*?[")
_PLACES = ("pool", "rack", "zone")


def find(members: Sequence[Member], words: Iterable[str]) -> list[Found]:
    """Return what words mean, in the order of the members.

    Who is named as a whole is so, whatever else names a part of it. Raises UsageError with a line
    for each word that names nothing.
    """
    found: dict[str, tuple[str, ...] | None] = {}
    problems = []
    for word in words:
        where, colon, what = word.partition(":")
        names = [*_named(members, where)]
        if not names:
            problems.append(_nothing(members, where))
        elif colon and not what:
            problems.append(f"{word!r}: name cards after the colon, such as {where}:nvidia/0")
        for name in names:
            known = found.get(name, ())
            found[name] = None if not colon or known is None else (*known, what)
    if problems:
        raise UsageError(problems)
    return [(member, found[member.name]) for member in members if member.name in found]


def _named(members: Sequence[Member], where: str) -> Iterator[str]:
    key, equals, value = where.partition("=")
    if equals:
        if key in _PLACES:
            yield from (m.name for m in members if fnmatchcase(_place(m, key), value))
        return
    is_glob = not _GLOB.isdisjoint(where)
    for member in members:
        names = (member.name, member.pool.name, ALL)
        if where in names or (is_glob and any(fnmatchcase(name, where) for name in names[:2])):
            yield member.name


def _place(member: Member, key: str) -> str:
    return {"pool": member.pool.name, "rack": member.rack, "zone": member.zone}[key]


def _nothing(members: Sequence[Member], where: str) -> str:
    key, equals, value = where.partition("=")
    if equals and key not in _PLACES:
        return f"{where!r} is not allowed: it must be pool=…, rack=… or zone=…"
    if equals:
        there = dict.fromkeys(filter(None, (_place(member, key) for member in members)))
        hint = did_you_mean(value, there) or f": there are {listed([*there])}"
        return f"there is no {key} {value!r}{hint}"
    pools = dict.fromkeys(member.pool.name for member in members)
    hint = did_you_mean(where, [*pools, *(member.name for member in members[:1000])])
    return f"there is no node and no pool {where!r}{hint or f': the pools are {listed([*pools])}'}"
