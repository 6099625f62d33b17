"""The devices of Kubernetes' dra-example-driver, for cards of any maker."""

import re
from collections.abc import Iterator, Mapping, Sequence

from hami_mock.kit.quantities import written
from hami_mock.vendors.dra import (
    GI,
    MI,
    Capacity,
    CardHere,
    ClaimHere,
    Device,
    DraDriver,
    Given,
    Version,
)

_NAME = "gpu.example.com"
_LONGEST_ATTRIBUTE = 64


def _devices(here: CardHere) -> Iterator[Device]:
    card = here.card
    memory = card.memory * MI
    # Its own cards have whole GiB. A real one's size may be no multiple of that.
    step = GI if memory % GI == 0 else MI
    yield Device(
        f"gpu-{here.number}",
        {
            "index": here.number,
            "uuid": card.uuid[:_LONGEST_ATTRIBUTE],
            "model": card.model.name[:_LONGEST_ATTRIBUTE],
            "driverVersion": Version("1.0.0"),
        },
        {
            "memory": Capacity(memory, step, step),
            "compute": Capacity(100, 1, 1, is_binary=False),
        },
        is_shared=True,
    )


def _environment(given: Sequence[Given], claim: ClaimHere) -> Mapping[str, str]:
    found = {
        "KUBERNETES_NODE_NAME": claim.node,
        "DRA_RESOURCE_DRIVER_NAME": _NAME,
        "DRA_ADMIN_ACCESS": str(claim.is_admin).lower(),
    }
    for each in given:
        number = each.device.removeprefix("gpu-")
        key = re.sub("[^A-Z0-9]+", "_", each.device.upper())
        found |= {
            f"GPU_DEVICE_{number}": each.device,
            f"GPU_DEVICE_{number}_SHARING_STRATEGY": "TimeSlicing",
            f"GPU_DEVICE_{number}_TIMESLICE_INTERVAL": "Default",
            f"GPU_DEVICE_{number}_MEMORY": written(each.memory * MI, is_binary=True),
            f"GPU_DEVICE_{number}_COMPUTE": str(each.cores),
            f"GPU_DEVICE_{key}_RESOURCE_CLAIM": claim.uid,
        }
    return found


EXAMPLE = DraDriver(
    _NAME, _devices, _environment, lambda _: (_NAME,), cores="compute", cdi_class="gpu",
    shares=lambda _: True,
)  # fmt: skip
