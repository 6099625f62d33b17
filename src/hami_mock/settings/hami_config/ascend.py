"""Ascend's chips in HAMi's configuration."""

from dataclasses import dataclass

from hami_mock.kit.config_section import Section
from hami_mock.settings.hami_config import names as config_names
from hami_mock.vendors import hami_vendors
from hami_mock.vendors.hami_vendor import HamiVendor


@dataclass(frozen=True)
class AscendTemplate:
    """A size that a chip can be cut into; memory in MiB."""

    name: str
    memory: int
    ai_cores: int = 0
    ai_cpus: int = 0


@dataclass(frozen=True)
class AscendChip:
    """A kind of chip; `allocatable` of its `capacity` (MiB) is for containers."""

    vendor: HamiVendor
    chip_name: str
    allocatable: int
    capacity: int
    ai_cores: int
    ai_cpus: int
    templates: tuple[AscendTemplate, ...] = ()


@dataclass(frozen=True)
class AscendConfig:
    """All chips, and whether HAMi's library slices them instead of templates."""

    chips: tuple[AscendChip, ...] = ()
    hami_vnpu_core: bool = False


def read_vnpus(root: Section) -> AscendConfig:
    """Read `vnpus`: a mapping with the chips in it since HAMi 2.9, a list of them before."""
    if isinstance(root.values.get("vnpus"), list):
        return AscendConfig(tuple(map(_read_chip, root.sections("vnpus"))))
    section = root.section("vnpus")
    chips = tuple(map(_read_chip, section.sections("configs")))
    return AscendConfig(chips, section.flag("hamiVnpuCore"))


def _read_chip(section: Section) -> AscendChip:
    templates = tuple(map(_read_template, section.sections("templates")))
    allocatable = section.whole("memoryAllocatable")
    # The plugin takes the first template for the smallest.
    slots = allocatable // templates[0].memory if templates else 1
    names = config_names.ASCEND.read(section, hami_vendors.ASCEND[0].resources)
    return AscendChip(
        vendor=hami_vendors.ascend(section.text("commonWord", needed=True), names, slots),
        chip_name=section.text("chipName"),
        allocatable=allocatable,
        capacity=section.whole("memoryCapacity"),
        ai_cores=section.whole("aiCore"),
        ai_cpus=section.whole("aiCPU"),
        templates=templates,
    )


def _read_template(section: Section) -> AscendTemplate:
    return AscendTemplate(
        name=section.text("name", needed=True),
        memory=section.whole("memory", 1, least=1),
        ai_cores=section.whole("aiCore"),
        ai_cpus=section.whole("aiCPU"),
    )
