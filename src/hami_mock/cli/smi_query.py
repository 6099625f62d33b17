"""`hami-mock smi --query`: fields of cards by the names that nvidia-smi made known."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hami_mock.cli.smi_cards import ShownCard
from hami_mock.errors import UsageError
from hami_mock.kit.similar import did_you_mean

CSV, NO_HEADER, NO_UNITS = "csv", "noheader", "nounits"
_UNKNOWN = "[N/A]"


class Field(NamedTuple):
    """The value that a field shows, its unit, how it is written, and its other names."""

    value: str
    unit: str = ""
    form: str = ""
    aliases: tuple[str, ...] = ()


FIELDS = {
    "card": Field("card"),
    "vendor": Field("vendor"),
    "index": Field("index"),
    "name": Field("name", aliases=("gpu_name",)),
    "model": Field("model"),
    "uuid": Field("uuid", aliases=("gpu_uuid",)),
    "serial": Field("serial", aliases=("gpu_serial",)),
    "pci.bus_id": Field("bus", aliases=("gpu_bus_id",)),
    "numa": Field("numa"),
    "health": Field("health"),
    "driver_version": Field("driver_version"),
    "timestamp": Field("time", form="%Y/%m/%d %H:%M:%S"),
    "memory.total": Field("memory_total", "MiB"),
    "memory.used": Field("memory_used", "MiB"),
    "memory.free": Field("memory_free", "MiB"),
    "memory.reserved": Field("memory_reserved", "MiB"),
    "utilization.gpu": Field("busy", "%", ".0f", ("utilization",)),
    "utilization.memory": Field("memory_busy", "%", ".0f"),
    "temperature.gpu": Field("temperature", form=".0f", aliases=("temperature",)),
    "temperature.memory": Field("memory_temperature", form=".0f"),
    "power.draw": Field("power", "W", ".2f"),
    "power.limit": Field("power_limit", "W", ".2f", ("enforced.power.limit",)),
    "clocks.sm": Field("sm_clock", "MHz", aliases=("clocks.current.sm", "clocks.gr")),
    "clocks.mem": Field("memory_clock", "MHz", aliases=("clocks.current.memory",)),
    "fan.speed": Field("fan", "%"),
    "ecc.errors": Field("ecc_errors"),
}
_NAMED = FIELDS | {alias: field for field in FIELDS.values() for alias in field.aliases}


def queried(
    cards: Iterable[ShownCard], names: Sequence[str], how: Sequence[str] = (CSV,)
) -> Iterator[str]:
    """Yield a line for each card, after one with the fields' names and units."""
    if NO_HEADER not in how:
        units = (_NAMED[name].unit for name in names)
        yield ", ".join(
            f"{name} [{unit}]" if unit else name for name, unit in zip(names, units, strict=True)
        )
    for card in cards:
        yield ", ".join(_text(card, _NAMED[name], NO_UNITS not in how) for name in names)


def read_fields(text: str, flag: str) -> list[str]:
    """Return the fields that a flag names. Raises UsageError for each that there isn't."""
    names = [name.strip() for name in text.split(",")]
    if wrong := [name for name in names if name not in _NAMED]:
        raise UsageError(f"{flag}: {_hint(name)}" for name in wrong)
    return names


def read_format(text: str, flag: str) -> list[str]:
    """Return csv, and what is said beside it. Raises UsageError."""
    words = [word.strip() for word in text.split(",")]
    if words[0] != CSV or {*words[1:]} - {NO_HEADER, NO_UNITS}:
        raise UsageError(
            f"{flag}: {text!r} is not allowed: it must be csv, and may have ,noheader and ,nounits"
        )
    return words


def _hint(name: str) -> str:
    hint = did_you_mean(name, _NAMED) or f": use some of {', '.join(FIELDS)}"
    return f"{name!r} is not a field{hint}"


def _text(card: ShownCard, field: Field, has_unit: bool) -> str:
    value = card.values[field.value]
    if value is None:
        return _UNKNOWN
    unit = f" {field.unit}" if has_unit and field.unit else ""
    return f"{format(value, field.form)}{unit}"
