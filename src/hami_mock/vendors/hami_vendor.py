"""A vendor's cards as HAMi's scheduler knows them: each chip of Ascend and Iluvatar is one."""

from dataclasses import dataclass
from functools import cached_property

from hami_mock.hami.kinds import Lock
from hami_mock.vendors.catalog import Model
from hami_mock.vendors.scheduling import NodeAnnotations, PodAnnotations, Scheduling
from hami_mock.vendors.vendor import Role, Vendor


@dataclass(frozen=True)
class ResourceNames:
    """The resources of a vendor, "" for one it hasn't, with MiB of a memory unit and cores a card.

    Where cores are percent there are 100; a percentage resource has 100 for each card too.
    """

    count: str
    memory: str = ""
    memory_unit: int = 1
    cores: str = ""
    cores_per_card: int = 100
    percentage: str = ""

    def of(self, role: Role) -> str:
        names = (self.count, self.memory, self.cores, self.percentage)
        return dict(zip(Role, names, strict=True))[role]


@dataclass(frozen=True)
class HamiVendor:
    """A vendor as the scheduler knows it, by its word.

    `slots` are those that templates make of a card; None: there are no templates. `memory` and
    `cores` are what HAMi's configuration registers each card with; 0: what it has.
    """

    word: str
    vendor: Vendor
    resources: ResourceNames
    slots: int | None = None
    memory: int = 0
    cores: int = 0

    @property
    def maker(self) -> str:
        return self.vendor.maker

    @property
    def lock(self) -> Lock | None:
        return self.vendor.hami.lock

    @property
    def scheduling(self) -> Scheduling:
        return self.vendor.hami

    @cached_property
    def node(self) -> NodeAnnotations:
        names, word = self.vendor.hami.node, self.word
        register, handshake = names.register.format(word=word), names.handshake.format(word=word)
        return names._replace(register=register, handshake=handshake)

    @cached_property
    def pods(self) -> PodAnnotations:
        allocated, to_allocate, assigned = self.vendor.hami.pods
        word = self.word
        return PodAnnotations(allocated.format(word=word), to_allocate.format(word=word), assigned)

    def device_type(self, product: str) -> str:
        """Return the type that a card is registered with; the scheduler looks for its word."""
        if not self.scheduling.has_model_as_type:
            return self.word
        return product if self.word.lower() in product.lower() else f"{self.word}-{product}"

    def card_memory(self, memory: int, model: Model) -> int:
        """Return the MiB that a card is registered with.

        The configuration speaks of the model as it is: a card with other memory keeps that.
        """
        return self.memory if self.memory and memory == model.memory else memory

    def card_cores(self, model: Model) -> int:
        return self.cores or model.cores


def known(vendor: Vendor) -> dict[str, HamiVendor]:
    slots = vendor.hami.slots or {}
    return {
        word: HamiVendor(word, vendor, default_names(vendor, word), slots.get(word))
        for word in vendor.words
    }


def default_names(vendor: Vendor, word: str) -> ResourceNames:
    """Return the names and units of HAMi's chart."""
    memory, cores = vendor.offer(Role.MEMORY), vendor.offer(Role.CORES)
    names = {offer.role: offer.name_in_hami(word) for offer in vendor.offers}
    return ResourceNames(
        count=names.get(Role.SLOTS, ""),
        memory=names.get(Role.MEMORY, ""),
        memory_unit=memory.memory_unit if memory else 1,
        cores=names.get(Role.CORES, ""),
        # Where the model says how many, 2 is what HAMi takes before it has seen a node.
        cores_per_card=(cores.per_card or 2) if cores else 100,
        percentage=names.get(Role.PERCENTAGE, ""),
    )
