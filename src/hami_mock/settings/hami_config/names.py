"""The names of resources in HAMi's configuration: under which keys each vendor has them."""

from dataclasses import dataclass

from hami_mock.kit.config_section import Section
from hami_mock.vendors import hami_vendors
from hami_mock.vendors.hami_vendor import ResourceNames


@dataclass(frozen=True)
class NameKeys:
    """The keys of a vendor's names, and of the factor for its memory unit; "" for none."""

    count: str = "resourceCountName"
    memory: str = ""
    cores: str = ""
    percentage: str = ""
    factor: str = ""

    def read(self, section: Section, defaults: ResourceNames) -> ResourceNames:
        """Return the names in a section; a resource that isn't named there isn't offered."""
        return ResourceNames(
            count=section.text(self.count),
            memory=section.text(self.memory),
            # HAMi takes 0 for 1.
            memory_unit=defaults.memory_unit * (section.whole(self.factor) or 1),
            cores=section.text(self.cores),
            cores_per_card=defaults.cores_per_card,
            percentage=section.text(self.percentage),
        )


_COUNT = NameKeys()
_COMMON = NameKeys(memory="resourceMemoryName", cores="resourceCoreName")
_VIRTUAL = NameKeys("resourceVCountName", "resourceVMemoryName", "resourceVCoreName")
_NVIDIA = NameKeys(
    memory="resourceMemoryName",
    cores="resourceCoreName",
    percentage="resourceMemoryPercentageName",
    factor="memoryFactor",
)
_HYGON = NameKeys(memory="resourceMemoryName", cores="resourceCoreName", factor="memoryFactor")
_DRS = NameKeys("resourceNameDRSGCU", "resourceNameGCUMemory", "resourceNameGCUCore")
ILUVATAR = _COMMON
ASCEND = NameKeys("resourceName", "resourceMemoryName", "resourceCoreName", factor="memoryFactor")

SECTIONS = (
    ("nvidia", hami_vendors.NVIDIA, _NVIDIA),
    ("cambricon", hami_vendors.CAMBRICON, _COMMON),
    ("hygon", hami_vendors.HYGON, _HYGON),
    ("metax", hami_vendors.METAX_GPU, _COUNT),
    ("metax", hami_vendors.METAX_SGPU, _VIRTUAL),
    ("enflame", hami_vendors.ENFLAME_GCU, NameKeys("resourceNameGCU")),
    ("enflame", hami_vendors.ENFLAME_DRS, _DRS),
    ("mthreads", hami_vendors.MTHREADS, _COMMON),
    ("kunlun", hami_vendors.KUNLUN_XPU, _COUNT),
    ("kunlun", hami_vendors.KUNLUN_VXPU, _VIRTUAL),
    ("awsneuron", hami_vendors.AWS_NEURON, NameKeys(cores="resourceCoreName")),
    ("amd", hami_vendors.AMD, _COMMON),
    ("vastai", hami_vendors.VASTAI, _COUNT),
    ("biren", hami_vendors.BIREN, _COUNT),
)


def read_names(root: Section) -> dict[str, ResourceNames]:
    """Return the names of each vendor that has a section of its own, by its word."""
    found = {
        vendor.word: keys.read(root.section(name), vendor.resources)
        for name, vendor, keys in SECTIONS
    }
    return {word: names for word, names in found.items() if names.count}
