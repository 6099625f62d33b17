"""Is what the node says of its cards what HAMi's scheduler can use?"""

from collections import Counter
from collections.abc import Iterator

from hami_mock.doctor.case import NodeCase, VendorCase, vendors_of
from hami_mock.doctor.finding import Finding, error, note, warning
from hami_mock.hami import scores
from hami_mock.hami.errors import Malformed
from hami_mock.hami.kinds import MIG


def register(case: NodeCase, seen: VendorCase) -> Iterator[Finding]:
    """The annotation with the cards is there, and the scheduler can read it."""
    vendor, name = seen.vendor, seen.vendor.node.register
    if vendor.node.encoding is None:
        return
    if seen.register is None:
        yield error(
            name,
            f"there is no such annotation: HAMi's scheduler sees no {vendor.word} cards here",
            f"see the log of HAMi's device plugin for {vendor.maker} on this node; the vendor's "
            "own plugin doesn't write it. Without hardware, hami-mock --hami on does",
        )
    elif not seen.register.strip():
        yield error(
            name,
            f"it is empty: HAMi's scheduler sees no {vendor.word} cards here",
            "restart HAMi's device plugin on this node: it writes the annotation when it starts",
        )
    elif seen.problem:
        yield error(
            name,
            f"the scheduler can't read it and sees no {vendor.word} cards here: {seen.problem}",
            "don't edit it by hand; if HAMi's device plugin wrote it, the plugin and the scheduler "
            "are different versions",
        )


def twins(case: NodeCase, seen: VendorCase) -> Iterator[Finding]:
    for card_id, many in Counter(card.id for card in seen.cards).items():
        if many > 1:
            yield error(
                seen.vendor.node.register,
                f"{many} cards have the ID {card_id!r}: the scheduler treats them as one",
                "give each card its own ID",
            )


def types(case: NodeCase, seen: VendorCase) -> Iterator[Finding]:
    word = seen.vendor.word
    for card in seen.cards:
        if word.lower() not in card.type.lower():
            yield error(
                seen.vendor.node.register,
                f"card {card.id} has the type {card.type!r}: the scheduler ignores a card "
                f"without {word!r} in its type",
                f"the type should look like {seen.vendor.device_type(card.type)!r}",
            )


def health(case: NodeCase, seen: VendorCase) -> Iterator[Finding]:
    ill = [card.id for card in seen.cards if not card.healthy]
    if not ill:
        return
    where = seen.vendor.node.register
    advice = "the device plugin's log says why"
    if len(ill) == len(seen.cards):
        yield error(where, f"all {len(ill)} cards are unhealthy: no pod is placed here", advice)
    else:
        told = f"{len(ill)} of {len(seen.cards)} cards are unhealthy: {', '.join(ill)}"
        yield warning(where, told, advice)


def mig(case: NodeCase, seen: VendorCase) -> Iterator[Finding]:
    """A card in MIG mode says what it can be cut into."""
    where, modes = seen.vendor.node.register, seen.vendor.scheduling.card_modes
    for card in seen.cards if modes else ():
        if card.mode not in modes:
            yield warning(
                where,
                f"card {card.id} has the mode {card.mode!r}, which HAMi doesn't know",
                f"the modes are {', '.join(sorted(modes - {''}))} (operatingmode in the plugin's "
                "configuration)",
            )
        if card.mode != MIG or card.mig_profiles:
            continue
        if card.mig_geometries:
            yield warning(
                where,
                f"card {card.id} is in MIG mode with geometries: HAMi reads them before 2.10; "
                "newer versions place nothing on the card",
                "run the same version of plugin and scheduler",
            )
        else:
            yield error(
                where,
                f"card {card.id} is in MIG mode, but doesn't say which profiles it can be "
                "divided into",
                "add its model to migProfileAllowlist in the device configuration",
            )


def mig_rules(case: NodeCase, seen: VendorCase) -> Iterator[Finding]:
    """HAMi's own plugin registers a card in MIG mode only if a rule names its model."""
    vendor = seen.vendor
    allowed = case.config.plugin(vendor.vendor, case.node.name).allowed if case.config else None
    if case.config and allowed is None:
        allowed = ()
    cut = (card.type for card in seen.cards if card.mode == MIG and card.mig_profiles)
    for card_type in dict.fromkeys(cut):
        if vendor.scheduling.has_rule(card_type, allowed):
            continue
        whose = "the device configuration" if case.config else "HAMi's chart"
        yield (warning if case.config else note)(
            vendor.node.register,
            f"{card_type!r} is in MIG mode, but no rule in migProfileAllowlist of {whose} has a "
            "model that is in this name: HAMi's own plugin would leave these cards out",
            f"add a rule with a part of the name to its models ({card_type!r}, for example)",
        )


def cordon(case: NodeCase, seen: VendorCase) -> Iterator[Finding]:
    where = seen.vendor.scheduling.cordon
    raw = case.node.annotations.get(where, "")
    cordoned = {uuid.strip() for uuid in raw.split(",")} - {""}
    ids = {card.id for card in seen.cards}
    if not cordoned or not ids:
        return
    undo = f"to undo it: kubectl annotate node {case.node.name} {where}-"
    if ids <= cordoned:
        yield error(where, "all cards are cordoned: no pod is placed here", undo)
    elif ids & cordoned:
        told = f"no pod is placed on cordoned cards: {', '.join(sorted(ids & cordoned))}"
        yield warning(where, told, undo)
    for uuid in sorted(cordoned - ids):
        advice = f"check the ID for a typing mistake; {undo}"
        yield warning(where, f"there is no card {uuid!r} here", advice)


def topology(case: NodeCase, seen: VendorCase) -> Iterator[Finding]:
    """The scores of the cards can be read: the scheduler takes no cards without."""
    if (told := seen.vendor.scheduling.scores) is None:
        return
    where = told.annotation
    try:
        scores.decode(case.node.annotations.get(where, "[]"))
    except Malformed as problem:
        yield error(
            where,
            f"the scheduler can't read it, and so uses none of the cards: {problem}",
            f"remove it (kubectl annotate node {case.node.name} {where}-), or let "
            "HAMi's device plugin write it again",
        )


def unknown_to_config(case: NodeCase) -> Iterator[Finding]:
    """Each register annotation belongs to a vendor of the device configuration."""
    known = case.config.vendors if case.config else {}
    for vendor in vendors_of(None) if case.config else ():
        name = vendor.node.register
        if name and name in case.node.annotations and vendor.word not in known:
            yield error(
                name,
                f"the device configuration has nothing for {vendor.word}: the scheduler doesn't "
                "look at these cards",
                f"add {vendor.word} (of {vendor.maker}) to the ConfigMap hami-scheduler-device",
            )
