"""The environment variables that a vendor's plugin gives to a container, as data."""

from collections.abc import Sequence
from dataclasses import dataclass

from hami_mock import vendors
from hami_mock.hami.assignment import AssignedDevice
from hami_mock.vendors.vendor import Identity, Vendor


@dataclass(frozen=True)
class Environment:
    """Names and values of variables.

    `visible_devices` get the container's cards, named by `identity`. `others` are pairs of name and
    value, filled in with the first device's memory (MiB) and cores; a name with {i} is set for
    each device. {unique} is anything that no other container has, {template} an Ascend template. A
    variable that would be empty isn't set.
    """

    visible_devices: tuple[str, ...] = ()
    identity: Identity = Identity.UUID
    others: tuple[tuple[str, str], ...] = ()
    when_oversubscribed: tuple[tuple[str, str], ...] = ()

    def variables(
        self,
        devices: Sequence[AssignedDevice],
        visible: Sequence[str],
        *,
        unique: str = "",
        template: str = "",
        oversubscribed: bool = False,
    ) -> dict[str, str]:
        """Return the variables of a container with these devices.

        `visible` are their cards' names; a card that holds two of the devices is named once.
        """
        variables = dict.fromkeys(self.visible_devices, ",".join(dict.fromkeys(visible)))
        for name, value in (*self.others, *(self.when_oversubscribed if oversubscribed else ())):
            for i, device in enumerate(devices if "{i}" in name else devices[:1]):
                variables[name.format(i=i)] = value.format(
                    memory=device.memory, cores=device.cores, unique=unique, template=template
                )
        return {name: value for name, value in variables.items() if value}


def _of(vendor: Vendor, *others: tuple[str, str]) -> Environment:
    return Environment(vendor.visible_devices, vendor.identity, others)


# None is known of the plugins that are only published as images (Iluvatar's and Kunlunxin's for
# HAMi, Metax, Enflame, Moore Threads, Vastai); Hygon's mounts files instead.
NVIDIA = Environment(
    vendors.NVIDIA.visible_devices,
    others=(
        ("CUDA_DEVICE_MEMORY_LIMIT_{i}", "{memory}m"),
        ("CUDA_DEVICE_SM_LIMIT", "{cores}"),
        ("CUDA_DEVICE_MEMORY_SHARED_CACHE", "/usr/local/vgpu/{unique}.cache"),
    ),
    when_oversubscribed=(("CUDA_OVERSUBSCRIBE", "true"),),
)
CAMBRICON = _of(vendors.CAMBRICON)
ILUVATAR = _of(vendors.ILUVATAR)
ASCEND = _of(vendors.ASCEND, ("ASCEND_VNPU_SPECS", "{template}"))
ASCEND_HAMI_CORE = _of(vendors.ASCEND, ("NPU_MEM_QUOTA", "{memory}"), ("NPU_PRIORITY", "{cores}"))
"""For pods with huawei.com/vnpu-mode: hami-core, which HAMi's library slices."""
AMD = _of(vendors.AMD, ("HIP_DEVICE_MEMORY_LIMIT", "{memory}m"))
BIREN = _of(vendors.BIREN)
NONE = Environment()
