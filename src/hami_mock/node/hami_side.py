"""What HAMi should see of a resource."""

from dataclasses import dataclass

from hami_mock.vendors.hami_vendor import HamiVendor
from hami_mock.vendors.scheduling import UNCONFIGURED, PluginConfig


@dataclass(frozen=True)
class HamiSide:
    """How the cards of a count resource are registered with HAMi's scheduler.

    `split` is how many containers may share a card; `mode` is how it is sliced ("hami-core" or
    "mig" for NVIDIA, "template" or "hami-core" for Ascend). `has_scores` says whether it is told
    how well cards are connected, `plugin` what else HAMi's configuration has for the plugin.
    """

    vendor: HamiVendor
    split: int
    memory_scaling: float = 1.0
    core_scaling: float = 1.0
    mode: str = ""
    has_scores: bool = False
    plugin: PluginConfig = UNCONFIGURED
