"""What HAMi should see of a resource."""

from dataclasses import dataclass

from hami_mock.vendors.hami_vendor import HamiVendor


@dataclass(frozen=True)
class HamiSide:
    """How the cards of a count resource are registered with HAMi's scheduler.

    `split` is how many containers may share a card; `mode` is how it is sliced ("hami-core" or
    "mig" for NVIDIA, "template" or "hami-core" for Ascend).
    """

    vendor: HamiVendor
    split: int
    memory_scaling: float = 1.0
    core_scaling: float = 1.0
    mode: str = ""
