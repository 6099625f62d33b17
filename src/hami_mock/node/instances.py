"""Cards that are cut into instances (MIG): what was cut out of each, and where there is room. Pure.

A GPU instance is a part of a card with memory of its own. The compute instances in it are the
devices that programs run on; usually there is one, as large as the GPU instance.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from hami_mock.vendors import Vendor
from hami_mock.vendors.catalog import Model
from hami_mock.vendors.instance_profile import Cutting, InstanceProfile, most_slices


class Instance(NamedTuple):
    """A device that is a part of a card, as all who show it know it.

    `memory` is MiB, `cores` percent of the card's compute; `start` is where it begins on the card.
    """

    uuid: str
    profile: str
    memory: int
    cores: int
    start: int
    gpu_instance: int
    compute_instance: int = 0


class NoRoom(Exception):
    """There is no place for an instance of that profile."""


class NoInstance(Exception):
    """There is no such instance, or no such profile."""


class InUse(Exception):
    """There is something in it, or somebody holds it."""


@dataclass(frozen=True)
class ComputeInstance:
    """A part of a GPU instance's compute, in slices."""

    id: int
    start: int
    slices: int
    uuid: str


@dataclass(frozen=True)
class GpuInstance:
    """A part of a card; `start` in units of its memory."""

    id: int
    profile: InstanceProfile
    start: int
    computes: tuple[ComputeInstance, ...] = ()

    @property
    def units(self) -> set[int]:
        return set(range(self.start, self.start + self.profile.units))


@dataclass(frozen=True)
class Cut:
    """What was cut out of a card that can be cut; nothing yet, at first."""

    parts: tuple[GpuInstance, ...] = ()

    def part(self, number: int) -> GpuInstance:
        """Return a GPU instance by its ID. Raises NoInstance."""
        for part in self.parts:
            if part.id == number:
                return part
        raise NoInstance(f"there is no GPU instance {number}")

    def _with(self, part: GpuInstance) -> "Cut":
        others = (each for each in self.parts if each.id != part.id)
        return Cut(tuple(sorted((*others, part), key=lambda each: each.id)))


class Cutter:
    """Cuts a card. Nothing is changed: each call returns the cut that comes of another."""

    def __init__(self, vendor: Vendor, model: Model, card: str = "") -> None:
        """Take a card's vendor, model and UUID. Raises NoInstance if such cards can't be cut."""
        cutting = vendor.cutting() if vendor.cutting else None
        profiles = cutting.profiles(model) if cutting else ()
        if cutting is None or not profiles:
            raise NoInstance(f"{model.name} can't be cut")
        self._model = model.name
        self._card = card
        self._cutting: Cutting = cutting
        self.profiles: tuple[InstanceProfile, ...] = profiles
        self.units = max(profile.units for profile in profiles)
        """Of the whole card's memory."""

    def profile(self, name: str | int) -> InstanceProfile:
        """Return a profile by its name or its ID. Raises NoInstance."""
        for profile in self.profiles:
            if name in (profile.name, profile.id):
                return profile
        raise NoInstance(f"{self._model} has no profile {name}")

    def starts(self, cut: Cut, profile: InstanceProfile) -> list[int]:
        """Return where one more of a profile can begin."""
        taken = set[int]().union(*(part.units for part in cut.parts))
        slices = sum(part.profile.slices for part in cut.parts)
        same = sum(part.profile.id == profile.id for part in cut.parts)
        if slices + profile.slices > most_slices(self.profiles) or same >= profile.most:
            return []
        return [
            start
            for start in profile.starts
            if taken.isdisjoint(range(start, start + profile.units))
        ]

    def make(
        self,
        cut: Cut,
        profile: InstanceProfile,
        start: int | None = None,
        beside: Cut | None = None,
    ) -> "Made":
        """Cut out a GPU instance, at a place or at the last one that is free. Raises NoRoom.

        The driver fills a card from its end, where the small ones that fit nowhere else have room.
        `beside` is all that the card is cut into, where others have cut it too.
        """
        free = self.starts(beside or cut, profile)
        if not free or (start is not None and start not in free):
            where = "" if start is None else f" at {start}"
            raise NoRoom(f"there is no room for a {profile.name}{where}")
        begin = free[-1] if start is None else start
        number = self._cutting.instance_id(profile.units, begin, self.units)
        part = GpuInstance(number, profile, begin)
        return Made(cut._with(part), part.id)

    def remove(self, cut: Cut, number: int) -> Cut:
        """Take a GPU instance back. Raises NoInstance, InUse while it has compute instances."""
        part = cut.part(number)
        if part.computes:
            raise InUse(f"GPU instance {number} has compute instances")
        return Cut(tuple(each for each in cut.parts if each is not part))

    def make_compute(
        self, cut: Cut, number: int, slices: int | None = None, start: int | None = None
    ) -> "Made":
        """Make a compute instance of so many slices, or of all. Raises NoInstance, NoRoom."""
        part = cut.part(number)
        wanted = slices or part.profile.slices
        taken = {s for each in part.computes for s in range(each.start, each.start + each.slices)}
        begins = range(part.profile.slices - wanted + 1) if start is None else (start,)
        for begin in begins:
            own = range(begin, begin + wanted)
            if taken.isdisjoint(own) and own.stop <= part.profile.slices:
                break
        else:
            raise NoRoom(f"GPU instance {number} has no {wanted} slices left")
        used = {each.id for each in part.computes}
        compute = next(n for n in range(part.profile.slices) if n not in used)
        uuid = self._cutting.uuid(self._card, part.profile.name, part.start, compute)
        made = ComputeInstance(compute, begin, wanted, uuid)
        computes = tuple(sorted((*part.computes, made), key=lambda each: each.id))
        return Made(cut._with(replace(part, computes=computes)), compute)

    def remove_compute(self, cut: Cut, number: int, compute: int) -> Cut:
        """Take a compute instance back. Raises NoInstance."""
        part = cut.part(number)
        left = tuple(each for each in part.computes if each.id != compute)
        if len(left) == len(part.computes):
            raise NoInstance(f"GPU instance {number} has no compute instance {compute}")
        return cut._with(replace(part, computes=left))

    def cut_into(self, names: Iterable[str]) -> Cut:
        """Return a cut with these profiles, each with one compute instance.

        The largest are placed first, since they have the fewest places. Raises NoInstance, NoRoom.
        """
        wanted = sorted(map(self.profile, names), key=lambda each: (-each.units, -each.slices))
        cut = self._place(Cut(), wanted)
        if cut is None:
            raise self._too_many(wanted)
        for part in cut.parts:
            cut = self.make_compute(cut, part.id).cut
        return cut

    def _too_many(self, wanted: Sequence[InstanceProfile]) -> NoRoom:
        """Return which of profiles that don't fit together is the first that is too many."""
        fitting = 1
        while self._place(Cut(), wanted[: fitting + 1]) is not None:
            fitting += 1
        beside = ", ".join(each.name for each in wanted[:fitting])
        return NoRoom(f"there is no room for a {wanted[fitting].name} beside {beside}")

    def _place(self, cut: Cut, wanted: Sequence[InstanceProfile]) -> Cut | None:
        """Return a cut with all of them, wherever there is a place for each; None: there isn't."""
        if not wanted:
            return cut
        for start in reversed(self.starts(cut, wanted[0])):
            found = self._place(self.make(cut, wanted[0], start).cut, wanted[1:])
            if found is not None:
                return found
        return None

    def with_held(self, cut: Cut | None, held: Iterable[Instance]) -> Cut | None:
        """Return a cut that has what containers hold too: somebody else may have cut it out."""
        known = {each.uuid for each in self.devices(cut)} if cut else set()
        for instance in held:
            if instance.uuid not in known and (profile := self._profile_of(instance)):
                own = ComputeInstance(instance.compute_instance, 0, profile.slices, instance.uuid)
                part = GpuInstance(instance.gpu_instance, profile, instance.start, (own,))
                cut = (cut or Cut())._with(part)
        return cut

    def _profile_of(self, instance: Instance) -> InstanceProfile | None:
        """Return the profile that somebody else may have another name for: 7g.79gb is a 7g.80gb."""
        alike = [each for each in self.profiles if each.memory == instance.memory]
        slices = instance.profile.partition(".")[0]
        named = (each for each in alike if each.name.partition(".")[0] == slices)
        return next(named, alike[0] if alike else None)

    def devices(self, cut: Cut) -> list[Instance]:
        """Return the compute instances of all GPU instances: what programs run on."""
        most = most_slices(self.profiles)
        return [
            Instance(
                compute.uuid,
                _device_name(part.profile, compute),
                part.profile.memory,
                -(-100 * compute.slices // most),
                part.start,
                part.id,
                compute.id,
            )
            for part in cut.parts
            for compute in part.computes
        ]


class Made(NamedTuple):
    """What comes of a cut, and the ID of what was made."""

    cut: Cut
    id: int


def told(cut: Cut | None) -> str:
    """Return a cut in words."""
    if cut is None:
        return "not cut"
    names: Sequence[str] = [f"{part.profile.name} at {part.start}" for part in cut.parts]
    return f"cut into {', '.join(names)}" if names else "ready to be cut"


def _device_name(profile: InstanceProfile, compute: ComputeInstance) -> str:
    """Return what a device is called: 1c.3g.20gb where it has only a part of the compute."""
    if compute.slices == profile.slices:
        return profile.name
    return f"{compute.slices}c.{profile.name}"
