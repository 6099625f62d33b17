"""The node's state → the annotations that HAMi's scheduler reads, and what to write of them."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from hami_mock.hami import register
from hami_mock.hami.handshake import Handshake, HandshakeState, report_due
from hami_mock.hami.kinds import HAMI_CORE, MIG, ReportStyle
from hami_mock.hami.register import RegisteredDevice
from hami_mock.node.cards import Card
from hami_mock.node.hami_side import HamiSide
from hami_mock.node.sizing import scaled
from hami_mock.node.state import NodeState


@dataclass(frozen=True)
class Registration:
    """What HAMi should see of a node.

    `handshakes` has the way to report, by annotation, for vendors with cards here; None: such a
    vendor's plugin doesn't report by itself.
    """

    annotations: Mapping[str, str] = field(default_factory=dict)
    handshakes: Mapping[str, ReportStyle | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Difference:
    """Annotations to set, or to remove where they are None; and whether a report is among them."""

    annotations: dict[str, str | None]
    has_report: bool


def registration(state: NodeState) -> Registration:
    """Return what HAMi should see now: unhealthy cards as such, and nothing of lost ones.

    A vendor whose cards are all lost has no annotation: HAMi takes an empty one for a mistake.
    """
    annotations: dict[str, str] = {}
    handshakes: dict[str, ReportStyle | None] = {}
    for resource in state.node.resources:
        if (side := resource.hami) is None:
            continue
        known = side.vendor.scheduling
        cards = [card for card in resource.cards if card.uuid not in state.lost]
        if known.numbers_anew:
            cards = [replace(card, index=i) for i, card in enumerate(cards)]
        devices = [
            device
            for card in cards
            if (device := registered(card, side, healthy=state.health(card).is_usable))
        ]
        where = side.vendor.node
        if not devices or where.encoding is None or where.register in annotations:
            continue
        annotations[where.register] = register.encode(where.encoding, devices)
        annotations |= known.beside(cards, side.mode)
        if known.scores and side.has_scores:
            annotations[known.scores.annotation] = known.scores.make(cards)
        if where.handshake:
            handshakes[where.handshake] = where.report
    return Registration(annotations, handshakes)


def registered(card: Card, side: HamiSide, *, healthy: bool) -> RegisteredDevice | None:
    """Return a card as HAMi should see it; None for one that it doesn't take in this mode."""
    known = side.vendor.scheduling
    memory = side.vendor.card_memory(card.memory, card.model)
    device = RegisteredDevice(
        id=card.uuid,
        index=card.index,
        count=side.split,
        memory=scaled(memory, side.memory_scaling),
        cores=_cores(card, side),
        type=side.vendor.device_type(card.model.product),
        numa=card.numa or 0,
        mode="" if known.soft_slicing else side.mode or known.mode,
        healthy=healthy,
        custom=known.custom(side.vendor.word, card),
    )
    if side.mode != MIG:
        return device
    profiles = known.profiles(card.model, side.plugin.allowed)
    if not profiles:
        return None
    count = max(len(profile.placements) for profile in profiles)
    return replace(device, count=count, mig_profiles=profiles)


def _cores(card: Card, side: HamiSide) -> int:
    known = side.vendor.scheduling
    is_softly_sliced = bool(known.soft_slicing) and side.mode == HAMI_CORE
    if known.registers_cores and not is_softly_sliced:
        return side.vendor.card_cores(card.model)
    return scaled(100, side.core_scaling)


def difference(
    wanted: Registration,
    shown: Mapping[str, str],
    ours: Set[str],
    now: datetime,
    since_report: timedelta | None,
) -> Difference:
    """Compare what a node should show with what it shows.

    `ours` are the annotations that were wanted before: those that aren't any more are removed.
    """
    cards: dict[str, str | None] = {
        key: value for key, value in wanted.annotations.items() if shown.get(key) != value
    }
    here = wanted.annotations.keys() | wanted.handshakes.keys()
    gone = dict.fromkeys(key for key in ours - here if key in shown)
    styles = {key: style for key, style in wanted.handshakes.items() if style}
    # All vendors report when one has to, so that it is one write and not many. The scheduler reads
    # changed cards only after a report, so a change is one.
    due = bool(cards) or any(
        key not in shown or report_due(Handshake.parse(shown[key]), since_report) for key in styles
    )
    reports = {key: style.write(now) for key, style in styles.items()} if due else {}
    # What vendors that don't report must say to a scheduler that has given them up.
    answers = {
        key: ReportStyle.GO.write(now)
        for key, style in wanted.handshakes.items()
        if style is None
        and (handshake := Handshake.parse(shown.get(key, "")))
        and handshake.state is HandshakeState.DELETED
    }
    return Difference({**cards, **gone, **reports, **answers}, bool(reports))
