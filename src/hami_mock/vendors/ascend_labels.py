"""The labels of Huawei's MindCluster: those its device plugin writes, and those people set by hand.

`workerselector` isn't among them: it lets MindCluster's own pods come to a node.
"""

import platform
from collections.abc import Mapping
from typing import NamedTuple

from hami_mock.vendors.label_text import label_value
from hami_mock.vendors.labelling import CardsHere, LabelSet


class _Family(NamedTuple):
    """What MindCluster calls a family's chips, and the usual server with them."""

    accelerator: str
    card_type: str
    server: str
    has_hbm: bool = True


_FAMILIES = {
    "ascend910": _Family("huawei-Ascend910", "Ascend910", "module"),
    "ascend910b": _Family("huawei-Ascend910", "Ascend910B", "module-910b-8"),
    "ascend910c": _Family("huawei-Ascend910", "Ascend910A3", "module-a3-16"),
    "ascend310p": _Family("huawei-Ascend310P", "Ascend310P", "card", has_hbm=False),
}


def labels(wanted: LabelSet, here: CardsHere) -> Mapping[str, str]:
    # A server has chips of one kind; of others the first decides.
    card = here.cards[0]
    family = _FAMILIES.get(card.model.family)
    if wanted is not LabelSet.VENDORS or family is None:
        return {}
    is_arm = platform.machine() in ("aarch64", "arm64")
    memory = {"mind-cluster/npu-chip-memory": f"{card.memory // 1024}G"} if family.has_hbm else {}
    return {
        "accelerator": family.accelerator,
        "accelerator-type": family.server,
        "host-arch": "huawei-arm" if is_arm else "huawei-x86",
        "servertype": f"{family.card_type}-{card.model.cores}",
        "node.kubernetes.io/npu.chip.name": label_value(card.model.product),
        **memory,
    }
