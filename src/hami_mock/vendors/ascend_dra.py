"""What HAMi's ascend-dra-driver publishes of Ascend's chips.

With --ascend-mode hami-core a chip is shared by memory and cores, as the driver's feature gate
HAMivNPUCore has it; else it is given whole.
"""

from collections.abc import Iterator, Mapping, Sequence

from hami_mock.hami.kinds import HAMI_CORE
from hami_mock.vendors.dra import (
    MI,
    Capacity,
    CardHere,
    ClaimHere,
    Device,
    DraDriver,
    Given,
    Profile,
)

_NAME = "ascend.project-hami.io"
_SHARED, _WHOLE = "HAMivNPUCore", "NPU"
_LOCAL = "/hami-vnpu-shmem/vnpu_local_shmem"


def _devices(here: CardHere) -> Iterator[Device]:
    card = here.card
    is_shared = here.mode == HAMI_CORE
    attributes: dict[str, str | int] = {
        "index": card.index,
        "physicalID": card.index,
        # The driver knows no other name of a chip.
        "uuid": f"{here.node}-{card.index}"[-64:],
        # As the chip itself says, and as HAMi's configuration calls it: chipName.
        "model": card.model.product,
        "productName": card.model.product,
        "brand": "Huawei",
        "type": _SHARED if is_shared else _WHOLE,
    }
    capacity = {
        "cores": Capacity(100, 1, is_binary=False),
        "memory": Capacity(card.memory * MI, MI, MI),
    }
    if not is_shared:
        # It tells GiB.
        attributes |= {"cores": card.model.cores, "memory": card.memory // 1024}
    name = f"npu-{card.index}-0"
    yield Device(name, attributes, capacity if is_shared else {}, is_shared)


def _environment(given: Sequence[Given], claim: ClaimHere) -> Mapping[str, str]:
    found = {"ASCEND_VISIBLE_DEVICES": ",".join(str(each.card.index) for each in given)}
    shared = [each for each in given if each.share]
    if shared:
        first = shared[0]
        found |= {
            "NPU_MEM_QUOTA": str(first.memory),
            "NPU_PRIORITY": str(first.cores),
            "NPU_GLOBAL_SHM_PATH": f"/hami-shared-region/{first.card.index}_global_registry",
            "NPU_LOCAL_SHM_PATH": _LOCAL,
        }
    return found


def _classes(attributes: Mapping[str, object]) -> Iterator[str]:
    """Yield the class of all chips, and the one of whole chips of a model."""
    yield _NAME
    if attributes.get("type") == _WHOLE:
        yield f"npu-{str(attributes.get('productName')).lower()}.project-hami.io"


DRIVERS = {
    Profile.HAMI: DraDriver(
        _NAME, _devices, _environment, _classes, cores="cores", cdi_class="npu",
        shares=lambda attributes: attributes.get("type") == _SHARED,
    ),
}  # fmt: skip
