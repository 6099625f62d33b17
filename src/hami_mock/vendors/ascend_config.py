"""How Ascend's chips are sliced, in HAMi's device configuration: all, by chip, and on some nodes.

What is different on single nodes stands in a file of the plugin's own, under `nodes`; in a file of
one's own both can stand together.
"""

from collections.abc import Iterator, Mapping

from hami_mock.hami.config_section import Section
from hami_mock.hami.kinds import HAMI_CORE
from hami_mock.vendors.scheduling import ChipConfig, PluginConfig

TEMPLATE = "template"


def chips(root: Section) -> list[Section]:
    """`vnpus` is a mapping with the chips in it since HAMi 2.9, a list of them before."""
    if _is_list(root):
        return root.sections("vnpus")
    return root.section("vnpus").sections("configs")


def chip(section: Section) -> ChipConfig:
    for key in ("memoryCapacity", "aiCPU"):
        section.whole(key)
    templates = section.sections("templates")
    memory = [template.whole("memory", 1, least=1) for template in templates]
    for template in templates:
        template.text("name", needed=True)
        for key in ("aiCore", "aiCPU"):
            template.whole(key)
    allocatable = section.whole("memoryAllocatable")
    # As the plugin reckons: it sorts them.
    slots = allocatable // min(memory) if memory else 1
    return ChipConfig(slots, allocatable, section.whole("aiCore"))


def options(root: Section, node_name: str) -> Mapping[str, tuple[object, str]]:
    said: dict[str, tuple[object, str]] = {}
    if not _is_list(root) and root.section("vnpus").flag("hamiVnpuCore"):
        said["mode"] = (HAMI_CORE, "vnpus.hamiVnpuCore")
    for name, node in _nodes(root):
        is_soft, split = node.flag("hami-vnpu-core"), node.whole("vDeviceCount")
        _left_out(node)
        if name == node_name:
            said["mode"] = (HAMI_CORE if is_soft else TEMPLATE, f"nodes({name}).hami-vnpu-core")
            said |= {"split": (split, f"nodes({name}).vDeviceCount")} if split else {}
    return said


def plugin(root: Section, node_name: str) -> PluginConfig:
    own = (_left_out(node) for name, node in _nodes(root) if name == node_name)
    return PluginConfig(left_out=next(own, frozenset()))


def _nodes(root: Section) -> Iterator[tuple[str, Section]]:
    """Yield what the file says of single nodes; of several entries for one the first counts."""
    seen = set()
    for node in root.sections("nodes"):
        name = node.text("name", needed=True)
        if name not in seen:
            seen.add(name)
            yield name, node


def _left_out(node: Section) -> frozenset[str | int]:
    devices = node.section("filterDevices")
    uuids, indices = devices.row("uuid"), devices.row("index")
    return frozenset((*map(uuids.text, uuids.values), *map(indices.whole, indices.values)))


def _is_list(root: Section) -> bool:
    return isinstance(root.values.get("vnpus"), list)
