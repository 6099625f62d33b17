"""Which options differ between two settings, and whether an agent that runs can take that. Pure."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from hami_mock.settings.options import BY_NAME, DEFAULTS, Takes
from hami_mock.settings.settings import Settings


@dataclass(frozen=True)
class Difference:
    """An option (or a vendor's groups), with both of its values as a user would write them."""

    name: str
    before: str
    after: str

    @property
    def takes_effect(self) -> Takes:
        return BY_NAME[self.name].takes_effect if self.name in BY_NAME else Takes.AT_ONCE

    @property
    def fixed(self) -> str:
        """Why the agent can't take it; empty if it can."""
        return BY_NAME[self.name].fixed if self.name in BY_NAME else ""

    @property
    def line(self) -> str:
        if self.takes_effect is Takes.AT_START:
            return f"{self.name}: takes effect at the next start"
        if self.name not in BY_NAME:
            return f"{self.name}: changed"
        return f"{self.name}: {self.before} → {self.after}"


def differences(before: Settings, after: Settings) -> Iterator[Difference]:
    for name, default in DEFAULTS.items():
        old, new = (each.given.get(name, default) for each in (before, after))
        if name == "node-name":
            old, new = before.node_name, after.node_name
        if old != new:
            yield Difference(name, _shown(name, old), _shown(name, new))


def refusals(changed: Iterable[Difference], asked: Collection[str]) -> list[str]:
    """Return a line for each change that an agent that runs can't take.

    One in a file may wait for the next start; what somebody has just asked for may not.
    """
    fixed = [
        f"{change.name}: {change.after!r} is not allowed: in a running agent it stays "
        f"{change.before!r}, because {change.fixed}"
        for change in changed
        if change.fixed
    ]
    waiting = [
        f"{change.name}: it can't change while the agent is running: restart the agent with "
        f"--{change.name}={change.after}"
        for change in changed
        if change.name in asked and change.takes_effect is Takes.AT_START and not change.fixed
    ]
    return [*fixed, *waiting]


def _shown(name: str, value: object) -> str:
    if value is None or name not in BY_NAME:
        return "unset"
    return BY_NAME[name].kind.show(value) or '""'
