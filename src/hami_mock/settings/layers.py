"""Layers of option values: the file, a section of it, the environment, the flags.

Each layer remembers where a value stands, so that a message can name the flag, the variable, or the
file and key that the user wrote.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hami_mock.kit.similar import did_you_mean, similar
from hami_mock.kit.values import not_allowed
from hami_mock.settings.options import BY_NAME, ENV_PREFIX, IN_FILE, variable

# Kubernetes gives a pod such variables for each Service of its namespace: one named hami-mock must
# not keep the agent from starting.
_SERVICE_LINK = re.compile(r".*_(SERVICE_(HOST|PORT(_.*)?)|PORT(_\d+_(TCP|UDP|SCTP)(_.*)?)?)")

_CLOSE = 0.8
"""How like a variable must be to one of ours to be a mistake and not somebody else's."""


_MAPPINGS = {name[: dash.start()] for name in BY_NAME for dash in re.finditer("-", name)}
"""What the keys of options can stand under: nvidia, nvidia-memory."""


@dataclass(frozen=True)
class Entry:
    """A value and the place where it stands, as the user wrote it."""

    value: Any
    place: str
    is_in_file: bool = False


Layer = Mapping[str, Entry]
"""Option names → entries; none of them is an alias."""


def text_layer(values: Mapping[str, str], dashes: str, problems: list[str]) -> Layer:
    """Return the layer of flags, or without dashes that of `ctl set`."""
    entries = {name: Entry(value, dashes + name) for name, value in values.items()}
    return _layer(entries, BY_NAME, "option", problems)


def environment_layer(
    environ: Mapping[str, str], problems: list[str], warnings: list[str]
) -> Layer:
    """Return the layer of the environment.

    A variable that is almost one of ours is a problem. Others with our prefix are a warning: CI
    systems export names such as HAMI_MOCK_IMAGE.
    """
    ours = {variable(name).removeprefix(ENV_PREFIX): name for name in BY_NAME}
    given: dict[str, Entry] = {}
    for name in sorted(each for each in environ if each.startswith(ENV_PREFIX)):
        # Without what they all have in common, which would make any two of them similar.
        short = name.removeprefix(ENV_PREFIX)
        line = f"{name}: there is no such variable"
        if short in ours:
            given[ours[short]] = Entry(environ[name], name)
        elif _SERVICE_LINK.fullmatch(name):
            continue
        elif close := similar(short, ours, cutoff=_CLOSE):
            problems.append(f"{line}; did you mean {ENV_PREFIX}{close[0]}?")
        else:
            warnings.append(f"{line}; ignoring it")
    return _layer(given, BY_NAME, "variable", problems)


def file_layer(
    path: str, entries: Mapping[str, Entry], problems: list[str], *, is_section: bool = False
) -> Layer:
    """Return the layer of a file's entries; keys that are no option are problems."""
    # A section is chosen by the node's name: it can't change it.
    barred = {"config", "node-name"} if is_section else {"config"}
    known = IN_FILE.keys() - barred
    found = {
        name: Entry(entry.value, f"{path}: {entry.place}", is_in_file=True)
        for name, entry in entries.items()
        # A vendor's key with nothing under it is null.
        if entry.value is not None or name not in _MAPPINGS
    }
    return _layer(found, known, "key", problems)


def _layer(
    entries: Mapping[str, Entry], known: Collection[str], noun: str, problems: list[str]
) -> Layer:
    """Return the entries under their options' proper names; one that says it twice is a problem."""
    layer: dict[str, Entry] = {}
    for name, entry in entries.items():
        if name not in known:
            hint = did_you_mean(name, known, len(problems))
            problems.append(f"{entry.place}: there is no such {noun}{hint}")
            continue
        proper = IN_FILE[name].name
        if proper in layer:
            problems.append(
                f"{entry.place}: sets the same option as {layer[proper].place}: keep one"
            )
        layer[proper] = entry
    return layer


def strongest(name: str, weakest_first: Sequence[Layer]) -> Any:
    """Return an option's value as it was written, before any check; None if nowhere."""
    found = (layer[name].value for layer in reversed(weakest_first) if name in layer)
    return next(found, None)


class Merged:
    """The values of all options, from the strongest layer that has each."""

    def __init__(self, weakest_first: Sequence[Layer], problems: list[str]) -> None:
        """Merge. A value that isn't allowed is a problem, and as if it hadn't been given.

        `problems` stays at hand for what else is found wrong with the values.
        """
        self._layers = weakest_first
        self.problems = problems
        self.given: dict[str, Any] = {}
        for name, option in IN_FILE.items():
            if (rank := self.rank(name)) < 0:
                continue
            value = weakest_first[rank][name].value
            try:
                self.given[name] = option.kind.read(value)
            except ValueError:
                self.refuse(name, value, option.kind.allowed)

    def __getitem__(self, name: str) -> Any:
        return self.given.get(name, IN_FILE[name].default)

    def refuse(self, name: str, value: object, allowed: str) -> None:
        self.problems.append(not_allowed(self.place(name), value, allowed))

    def rank(self, name: str, *, in_file: bool = False) -> int:
        """Return how strong the layer is (of the file, if so asked) that gave an option, or -1."""
        ranks = (
            rank
            for rank, layer in enumerate(self._layers)
            if name in layer and (layer[name].is_in_file or not in_file)
        )
        return max(ranks, default=-1)

    def place(self, name: str) -> str:
        """Return what the user wrote to set an option, or could write."""
        rank = self.rank(name)
        return self._layers[rank][name].place if rank >= 0 else f"--{name}"
