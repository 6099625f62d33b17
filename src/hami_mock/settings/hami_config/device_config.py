"""HAMi's configuration: device-config.yaml of the scheduler, and config.json of NVIDIA's plugin.

The first names resources and says how cards are sliced; the second, `nodeconfig`, says what is
different on single nodes. One function reads both, for in a file of one's own they can stand
together. HAMi gets new keys with each release, so unknown ones are passed over.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hami_mock.errors import UsageError
from hami_mock.hami.config_section import Section
from hami_mock.kit.files import read_text
from hami_mock.kit.values import Mistakes, shown
from hami_mock.vendors import VENDORS, Role, Vendor
from hami_mock.vendors.catalog import Model
from hami_mock.vendors.hami_vendor import HamiVendor, ResourceNames, default_names
from hami_mock.vendors.scheduling import UNCONFIGURED, PluginConfig


@dataclass(frozen=True)
class Configured:
    """What a file says of a vendor that the scheduler knows, or of one of its chips.

    `place` is the section; `chip_name` what the vendor's tool calls the chip; `unnamed` are the
    resources whose name is there and empty.
    """

    hami: HamiVendor
    place: str
    chip_name: str = ""
    unnamed: frozenset[Role] = frozenset()


@dataclass(frozen=True, eq=False)
class DeviceConfig:
    """What a file, the source, says."""

    configured: tuple[Configured, ...] = ()
    root: Section = field(default_factory=lambda: Section({}))
    source: str = ""

    @property
    def vendors(self) -> dict[str, HamiVendor]:
        """The vendors that the scheduler knows, by its word; of two chips with one, the first."""
        found: dict[str, HamiVendor] = {}
        for each in self.configured:
            found.setdefault(each.hami.word, each.hami)
        return found

    def of(self, vendor: Vendor, model: Model | None = None) -> Configured | None:
        """Return what the file says of a vendor; of one with chips, what it says of a model's.

        A chip is found by the name that the vendor's tool reports, as Ascend's plugin does, else by
        HAMi's word.
        """
        own = [each for each in self.configured if each.hami.vendor is vendor]
        if not vendor.has_chips:
            return next(iter(own), None)
        if model is None:
            return None
        by_name = (each for each in own if each.chip_name == model.product)
        by_word = (each for each in own if each.hami.word == model.chip)
        return next(by_name, None) or next(by_word, None)

    def options(self, vendor: Vendor, node_name: str) -> Mapping[str, tuple[object, str]]:
        """Return what the file says of a vendor's options on a node, with the key of each."""
        read = vendor.config.options
        return read(self.root, node_name) if read else {}

    def plugin(self, vendor: Vendor, node_name: str) -> PluginConfig:
        """Return what else the file says of a vendor's plugin on a node."""
        read = vendor.config.plugin
        return read(self.root, node_name) if read else UNCONFIGURED

    def resources(self, vendor: Vendor, model: Model | None) -> Iterator[tuple[str, object, str]]:
        """Yield the options that a vendor's resources set, with value and key of each."""
        if found := self.of(vendor, model):
            names = found.hami.resources
            for offer in vendor.offers:
                name = names.of(offer.role)
                if name or offer.role in found.unnamed:
                    yield offer.flag, name, f"{found.place}.{offer.config_key}"
                if offer.role is Role.MEMORY and names.memory_unit != offer.memory_unit:
                    factor = names.memory_unit // offer.memory_unit
                    place = f"{found.place}.{vendor.config.factor}"
                    yield f"{vendor.prefix}-memory-factor", factor, place


def read(path: str) -> DeviceConfig:
    """Read the file of --device-config-file. Raises UsageError with all that is wrong with it."""
    return parse(read_text("--device-config-file: can't read", path), path)


def parse(text: str, source: str) -> DeviceConfig:
    """Read a file's text. Raises UsageError with all that is wrong, each with its place."""
    root = Section(_load(text, source), mistakes=Mistakes(source))
    found = tuple(each for vendor in VENDORS for each in _read(vendor, root))
    config = DeviceConfig(found, root, source)
    for vendor in VENDORS:
        config.options(vendor, "")
    # Two vendors in one section, or two readers of it, find the same mistake.
    problems = list(dict.fromkeys(root.mistakes.lines))
    sections = {key for v in VENDORS for key in (v.config.name, *v.config.more)}
    if not problems and not any(root.values.get(key) for key in sections):
        problems = [f"{source}: the file configures no devices; HAMi wouldn't start with it"]
    if problems:
        raise UsageError(problems)
    return config


def _read(vendor: Vendor, root: Section) -> Iterator[Configured]:
    keys = vendor.config
    if keys.chips is None:
        section = root.section(keys.name)
        names = _names(section, vendor, vendor.words[0])
        if names.count:
            hami = HamiVendor(vendor.words[0], vendor, names)
            yield Configured(hami, keys.name, unnamed=_unnamed(section, vendor))
        return
    for chip in keys.chips(root):
        word = chip.text("commonWord", needed=True)
        facts = keys.chip(chip)._asdict() if keys.chip else {}
        found = HamiVendor(word, vendor, _names(chip, vendor, word), **facts)
        place, unnamed = f"{keys.name}({word})", _unnamed(chip, vendor)
        yield Configured(found, place, chip.text("chipName"), unnamed)


def _names(section: Section, vendor: Vendor, word: str) -> ResourceNames:
    """Return the names in a section; a resource that isn't named there isn't offered."""
    defaults = default_names(vendor, word)
    named = {offer.role: section.text(offer.config_key) for offer in vendor.offers}
    return replace(
        defaults,
        count=named.get(Role.SLOTS, ""),
        memory=named.get(Role.MEMORY, ""),
        # HAMi takes 0 for 1.
        memory_unit=defaults.memory_unit * (section.whole(vendor.config.factor) or 1),
        cores=named.get(Role.CORES, ""),
        percentage=named.get(Role.PERCENTAGE, ""),
    )


def _unnamed(section: Section, vendor: Vendor) -> frozenset[Role]:
    """Return the resources that a section leaves out. Helm writes an empty value as null."""
    others = (offer for offer in vendor.offers if offer.role is not Role.SLOTS)
    return frozenset(
        offer.role for offer in others if section.values.get(offer.config_key, "-") in (None, "")
    )


def _load(text: str, source: str) -> dict[Any, Any]:
    # Here, because most agents have no such file, and the parser takes long to load.
    from hami_mock.kit import strict_yaml

    try:
        document = strict_yaml.load_json_or_yaml(text)
    except ValueError as error:
        raise UsageError(f"{source}: not valid YAML: {error}") from error
    if not isinstance(document, dict | None):
        raise UsageError(f"{source}: the file must be a mapping, not {shown(document)}")
    return document or {}
