"""What a container gets of a pod's devices: what HAMi assigned, and what the plugin makes of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hami_mock.hami.assignment import AssignedDevice, Assignment
from hami_mock.vendors.hami_vendor import HamiVendor

if TYPE_CHECKING:
    from hami_mock.vendors.scheduling import CardFacts


@dataclass(frozen=True)
class Claim:
    """The devices of one container that are still to be allocated.

    - size: how many the kubelet asks for
    - taken: the pod's annotations once the container has got them
    """

    position: int
    devices: tuple[AssignedDevice, ...]
    size: int
    taken: Mapping[str, str]


@dataclass(frozen=True)
class Container:
    """A container that gets devices.

    - annotations: the pod's
    - visible: the cards of the devices, as the vendor's variable names them
    - unique: what no other container has
    - words: what HAMi's configuration has for the variables
    - cards: of the devices
    - shared: what the node's other pods have in the annotation that decides (`Scheduling.shared`)
    """

    hami: HamiVendor
    annotations: Mapping[str, str]
    position: int
    devices: tuple[AssignedDevice, ...]
    visible: tuple[str, ...]
    unique: str
    mode: str = ""
    is_oversubscribed: bool = False
    words: Mapping[str, str] = field(default_factory=dict)
    cards: "tuple[CardFacts, ...]" = ()
    shared: tuple[str, ...] = ()


@dataclass(frozen=True)
class Given:
    """The variables of a container, and what the plugin writes on its pod."""

    variables: dict[str, str]
    annotations: dict[str, str] = field(default_factory=dict)


def unique_name(pod_uid: str, position: int) -> str:
    """Return what no other container has: the pod, and which of its containers it is."""
    return f"{pod_uid}_{position}"


def has_claims(hami: HamiVendor) -> bool:
    """Tell whether a vendor's plugin gives what HAMi assigned; else it takes the kubelet's word.

    That is so with the plugins of vendors that HAMi doesn't lock a node for, but for one.
    """
    return bool(hami.scheduling.next_claim or hami.scheduling.lock)


def next_claim(hami: HamiVendor, annotations: Mapping[str, str], size: int) -> Claim | None:
    """Return what the kubelet asks for if it asks for so many devices; None: nothing is left.

    Raises Malformed. The claim may be of another size, and then the kubelet asks in vain.
    """
    if special := hami.scheduling.next_claim:
        return special(annotations, size)
    if not has_claims(hami):
        return None
    # Most plugins empty this annotation, in the order of the containers, as the kubelet allocates.
    annotation = hami.pods.to_allocate
    left = Assignment.parse(annotations.get(annotation, ""))
    devices, rest = left.pop()
    if not devices:
        return None
    return Claim(left.containers.index(devices), devices, len(devices), {annotation: rest.encode()})


def hand_out(container: Container) -> Given:
    special = container.hami.scheduling.hand_out
    return special(container) if special else Given(environment(container))


def environment(
    container: Container, more: tuple[tuple[str, str], ...] = (), **words: str
) -> dict[str, str]:
    """Return the variables of a container; a card that holds two of its devices is named once.

    Beside {memory} and {cores}, {unique} is what no other container has, and {oversubscribed}
    "true" if there is more memory than the card has.
    """
    vendor, known = container.hami.vendor, container.hami.scheduling
    visible = ",".join(dict.fromkeys(container.visible))
    words |= {
        **known.words,
        **container.words,
        "unique": container.unique,
        "oversubscribed": "true" if container.is_oversubscribed else "",
    }
    return {
        **(dict.fromkeys(vendor.visible_devices, visible) if visible else {}),
        **variables((*known.variables, *more), container.devices, **words),
    }


def variables(
    templates: Iterable[tuple[str, str]], devices: Sequence[AssignedDevice], **words: str
) -> dict[str, str]:
    """Fill in pairs of name and value with the first device's {memory} (MiB) and {cores}.

    A name with {i} is set for each device. A variable that would be empty isn't set.
    """
    found = {
        name.format(i=i): value.format(memory=device.memory, cores=device.cores, **words)
        for name, value in templates
        for i, device in enumerate(devices if "{i}" in name else devices[:1])
    }
    return {name: value for name, value in found.items() if value}
