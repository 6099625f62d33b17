"""Which options differ between two settings, and whether an agent that runs can take that. Pure."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from hami_mock.settings.options import GROUP_OPTIONS, IN_FILE, Option, Takes
from hami_mock.settings.settings import Settings


@dataclass(frozen=True)
class Difference:
    """An option (or a vendor's groups), with both of its values as a user would write them."""

    option: Option
    before: str
    after: str

    @property
    def takes_effect(self) -> Takes:
        return self.option.takes_effect

    @property
    def line(self) -> str:
        name = self.option.name
        if self.takes_effect is Takes.AT_START:
            return f"{name}: takes effect at the next start"
        how = "changed" if name in GROUP_OPTIONS else f"{self.before} → {self.after}"
        return f"{name}: {how}"


def differences(before: Settings, after: Settings) -> Iterator[Difference]:
    for option in dict.fromkeys(IN_FILE.values()):
        old, new = (each.given.get(option.name, option.default) for each in (before, after))
        if option.name == "node-name":
            old, new = before.node_name, after.node_name
        if old != new and option.name.endswith("-cards"):
            # Where groups list the cards, what the option was says nothing.
            old, new = _cards(before, option.name), _cards(after, option.name)
        if old != new:
            yield Difference(option, _shown(option, old), _shown(option, new))


def refusals(changed: Iterable[Difference], asked: Collection[str]) -> list[str]:
    """Return a line for each change that an agent that runs can't take.

    One in a file may wait for the next start; what somebody has just asked for may not.
    """
    fixed = [
        f"{change.option.name}: {change.after!r} is not allowed: in a running agent it stays "
        f"{change.before!r}, because {change.option.fixed}"
        for change in changed
        if change.option.fixed
    ]
    waiting = [
        f"{change.option.name}: it can't change while the agent is running: restart the agent with "
        f"--{change.option.name}={change.after}"
        for change in changed
        if change.option.name in asked and change.option.waits
    ]
    return [*fixed, *waiting]


def _cards(settings: Settings, name: str) -> int:
    own = (each.groups for each in settings.vendors if name == f"{each.vendor.prefix}-cards")
    return sum(group.cards for groups in own for group in groups)


def _shown(option: Option, value: object) -> str:
    return "unset" if value is None else option.kind.show(value) or '""'
