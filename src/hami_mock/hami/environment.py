"""The environment variables that a vendor's plugin gives to a container, as data."""

from collections.abc import Sequence
from dataclasses import dataclass

from hami_mock.hami.assignment import AssignedDevice
from hami_mock.vendors import Identity


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


# None is known of the plugins that are only published as images (Iluvatar's and Kunlunxin's for
# HAMi, Metax, Enflame, Moore Threads, Vastai); Hygon's mounts files instead.
NVIDIA = Environment(
    visible_devices=("NVIDIA_VISIBLE_DEVICES",),
    others=(
        ("CUDA_DEVICE_MEMORY_LIMIT_{i}", "{memory}m"),
        ("CUDA_DEVICE_SM_LIMIT", "{cores}"),
        ("CUDA_DEVICE_MEMORY_SHARED_CACHE", "/usr/local/vgpu/{unique}.cache"),
    ),
    when_oversubscribed=(("CUDA_OVERSUBSCRIBE", "true"),),
)
CAMBRICON = Environment(("MLU_VISIBLE_DEVICES", "CAMBRICON_VISIBLE_DEVICES"), Identity.INDEX)
ILUVATAR = Environment(("ILUVATAR_COREX_VISIBLE_DEVICES", "IX_VISIBLE_DEVICES"))
ASCEND = Environment(
    ("ASCEND_VISIBLE_DEVICES",), Identity.INDEX, others=(("ASCEND_VNPU_SPECS", "{template}"),)
)
ASCEND_HAMI_CORE = Environment(
    ("ASCEND_VISIBLE_DEVICES",),
    Identity.INDEX,
    others=(("NPU_MEM_QUOTA", "{memory}"), ("NPU_PRIORITY", "{cores}")),
)
"""For pods with huawei.com/vnpu-mode: hami-core, which HAMi's library slices."""
AMD = Environment(("ROCR_VISIBLE_DEVICES",), others=(("HIP_DEVICE_MEMORY_LIMIT", "{memory}m"),))
BIREN = Environment(("BR_PHY_CARDS",))
NONE = Environment()
