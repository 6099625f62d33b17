"""Layers of option values: the file, a section of it, the environment, the flags.

pydantic-settings merges the layers and checks the values. Each layer remembers where a value
stands, so that a message can name the flag, the variable, or the file and key that the user wrote.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource

from hami_mock.kit.similar import did_you_mean
from hami_mock.settings.options import BY_NAME, ENV_PREFIX, GROUP_KEYS, GROUP_OPTIONS, OPTIONS

# Kubernetes gives a pod such variables for each Service of its namespace: one named hami-mock must
# not keep the agent from starting.
_SERVICE_LINK = re.compile(r".*_(SERVICE_(HOST|PORT(_.*)?)|PORT(_\d+_(TCP|UDP|SCTP)(_.*)?)?)")


@dataclass(frozen=True)
class Entry:
    """A value and the place where it stands, as the user wrote it."""

    value: Any
    place: str


_NAMES = (*(option.name for option in OPTIONS), *GROUP_OPTIONS)

Layer = Mapping[str, Entry]
"""Option names → entries; none of them is an alias."""


def flag_layer(flags: Mapping[str, str], problems: list[str]) -> Layer:
    """Return the layer of the command line."""
    return _canonical({name: Entry(value, f"--{name}") for name, value in flags.items()}, problems)


def override_layer(values: Mapping[str, str], problems: list[str]) -> Layer:
    """Return the layer of `ctl set`; names that are no option are problems."""
    problems += [
        f"{name}: there is no such option{did_you_mean(name, BY_NAME)}"
        for name in values
        if name not in BY_NAME
    ]
    known = {name: Entry(value, name) for name, value in values.items() if name in BY_NAME}
    return _canonical(known, problems)


def environment_layer(environ: Mapping[str, str], problems: list[str]) -> Layer:
    """Return the layer of the environment; variables that no option reads are problems."""
    known = {
        variable: name
        for option in OPTIONS
        for variable, name in zip(option.variables, (option.name, *option.aliases), strict=True)
    }
    problems += [
        f"{variable}: there is no such variable{did_you_mean(variable, known)}"
        for variable in sorted(environ)
        if variable.startswith(ENV_PREFIX)
        and variable not in known
        and not _SERVICE_LINK.fullmatch(variable)
    ]
    return _canonical(
        {
            name: Entry(environ[variable], variable)
            for variable, name in known.items()
            if variable in environ
        },
        problems,
    )


def file_layer(
    path: str, entries: Mapping[str, Entry], problems: list[str], *, is_section: bool = False
) -> Layer:
    """Return the layer of a file's entries; keys that are no option are problems."""
    # A section is chosen by the node's name: it can't change it.
    barred = {"config", "node-name"} if is_section else {"config"}
    known = (BY_NAME.keys() | GROUP_OPTIONS.keys()) - barred
    problems += [
        f"{path}: {entry.place}: there is no such key{did_you_mean(name, known)}"
        for name, entry in entries.items()
        if name not in known and not _is_empty_mapping(name, entry)
    ]
    return _canonical(
        {
            name: Entry(entry.value, f"{path}: {entry.place}")
            for name, entry in entries.items()
            if name in known
        },
        problems,
    )


def _is_empty_mapping(name: str, entry: Entry) -> bool:
    """Tell whether it is a vendor's key with nothing under it, which YAML reads as null."""
    return entry.value is None and any(known.startswith(f"{name}-") for known in BY_NAME)


def strongest(name: str, weakest_first: Iterable[Layer]) -> Any:
    """Return an option's value as it was written, before any check; None if nowhere."""
    found = [layer[name].value for layer in weakest_first if name in layer]
    return found[-1] if found else None


class Merged:
    """The values of all options, from the strongest layer that has each."""

    def __init__(self, weakest_first: Sequence[Layer], problems: list[str]) -> None:
        """Merge. A value that isn't allowed is a problem, and as if it hadn't been given."""
        self._layers = weakest_first
        self._given = [name for name in _NAMES if any(name in layer for layer in weakest_first)]
        try:
            self._values = self._merge()
        except ValidationError as error:
            problems += self._problems(error)
            wrong = {str(detail["loc"][0]).replace("_", "-") for detail in error.errors()}
            self._given = [name for name in self._given if name not in wrong]
            self._values = self._merge()

    def __getitem__(self, name: str) -> Any:
        if name in self._given:
            return getattr(self._values, _field(name))
        return BY_NAME[name].default if name in BY_NAME else None

    def _merge(self) -> BaseSettings:
        layers = [
            {_field(name): layer[name].value for name in self._given if name in layer}
            for layer in reversed(self._layers)
        ]
        return _values_model(self._given)(layers=layers)

    def rank(self, name: str) -> int:
        """Return how strong the layer is that gave an option; -1 for its default."""
        return max((rank for rank, layer in enumerate(self._layers) if name in layer), default=-1)

    def place(self, name: str) -> str:
        """Return what the user wrote to set an option, or could write."""
        rank = self.rank(name)
        return self._layers[rank][name].place if rank >= 0 else f"--{name}"

    def _problems(self, error: ValidationError) -> Iterable[str]:
        lines: dict[str, str] = {}
        for detail in error.errors():
            field, *inner = detail["loc"]
            name = str(field).replace("_", "-")
            place = self.place(name)
            allowed: str | None
            if name in BY_NAME:
                allowed = BY_NAME[name].kind.allowed
            else:
                place, allowed = _place_in_groups(place, inner)
            line = (
                f"{place}: there is no such key{did_you_mean(place.rpartition('.')[2], GROUP_KEYS)}"
            )
            if allowed is not None:
                line = not_allowed(place, detail["input"], allowed)
            # A value that may be of two kinds fails as both: one line is enough.
            lines.setdefault(place, line)
        return lines.values()


def not_allowed(place: str, value: object, allowed: str) -> str:
    """Return the line that says that a value isn't allowed, and what is."""
    return f"{place}: {value!r} is not allowed: it must be {allowed}"


def _place_in_groups(place: str, inner: Sequence[Any]) -> tuple[str, str | None]:
    """Return where in a list of groups a mistake is, and what is allowed there, if anything."""
    if not inner:
        return place, "a list of groups of cards, such as [{cards: 4, model: T4}]"
    if len(inner) == 1:
        return f"{place}[{inner[0]}]", "a mapping such as {cards: 4, model: T4}"
    kind = GROUP_KEYS.get(inner[1])
    return f"{place}[{inner[0]}].{inner[1]}", kind.allowed if kind else None


def _canonical(entries: Mapping[str, Entry], problems: list[str]) -> Layer:
    """Return the entries under their options' proper names; one that says it twice is a problem."""
    layer: dict[str, Entry] = {}
    for name, entry in entries.items():
        proper = BY_NAME[name].name if name in BY_NAME else name
        if proper in layer:
            problems.append(f"{entry.place}: says the same as {layer[proper].place}: keep one")
        layer[proper] = entry
    return layer


def _field(name: str) -> str:
    return name.replace("-", "_")


class _Base(BaseSettings):
    model_config = ConfigDict(extra="forbid", frozen=True)  # type: ignore[assignment]

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take the layers that the constructor got, and nothing else."""
        assert isinstance(init_settings, InitSettingsSource)
        layers = init_settings.init_kwargs["layers"]
        return tuple(InitSettingsSource(settings_cls, layer) for layer in layers)


@cache
def _group_model() -> type[BaseModel]:
    fields: dict[str, Any] = {
        key: (kind.annotation | None, None) for key, kind in GROUP_KEYS.items()
    }
    return create_model("_Group", __config__=ConfigDict(extra="forbid"), **fields)


def _values_model(names: Iterable[str]) -> type[BaseSettings]:
    """Return a model of just these options: one of all of them would take long to build."""
    fields: dict[str, Any] = {
        _field(name): (
            BY_NAME[name].kind.annotation if name in BY_NAME else list[_group_model()],  # type: ignore[misc]
            ...,
        )
        for name in names
    }
    return create_model("_Values", __base__=_Base, **fields)
