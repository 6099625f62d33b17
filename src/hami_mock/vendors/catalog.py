"""Card models by name, from catalog.json: one model a line, by generation and memory.

One entry is what the vendor's device plugin counts as one device: a single chip of the boards A16
(4 chips), MLU370-X8 (2), Ascend910C (2) and MI250X (2), but both chips of a BI-V150. Ascend's
memory and cores are those of HAMi's configuration, BR106's memory that of its plugin.

Estimates, for want of a published figure: cores of MR-V50 and MR-V100, power of MLU590, Ascend910B*
and 910C and all of AWS; cores and power of Hygon, MetaX, Enflame, Kunlunxin, Vastai and Biren, and
of what these have built in several sizes (Z100, N100, R200, VA*, BR106) the memory too.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hami_mock.kit.similar import similar as most_like


@dataclass(frozen=True)
class Model:
    """What is true of every card of one model.

    - product: the name that the vendor's tool reports (nvidia-smi, cnmon, ixsmi, npu-smi, …)
    - memory: MiB, as that tool reports it; the data sheet's figure where none is public
    - cores: CUDA cores, MLU cores, multiprocessors (Iluvatar), AI cores (Ascend), compute units
      (AMD, Hygon), NeuronCores (AWS), or what the vendor calls so
    - family: the architecture; of NVIDIA the value of the label nvidia.com/gpu.family
    - power: the board's power limit in W, rounded
    - compute: the CUDA compute capability; NVIDIA only
    - chip: HAMi's word for it, where a vendor has one for each chip (Iluvatar, Ascend)
    """

    name: str
    product: str
    memory: int
    cores: int
    family: str
    power: int
    compute: str = ""
    chip: str = ""


@cache
def models() -> dict[str, dict[str, Model]]:
    """Return the models of each maker: its name, then the model's, in the catalog's order."""
    # JSON, not YAML: it is read at every start, and YAML would take 20 times as long.
    catalog = json.loads(Path(__file__).with_name("catalog.json").read_text(encoding="utf-8"))
    return {
        maker: {name: Model(name=name, **row) for name, row in rows.items()}
        for maker, rows in catalog.items()
    }


def find(maker: str, name: str) -> Model | None:
    """Return a maker's model, in whatever case its name is written."""
    known = models()[maker].values()
    return next((model for model in known if model.name.lower() == name.lower()), None)


def similar(maker: str, name: str) -> list[str]:
    known = models()[maker]
    containing = [each for each in known if name.lower() in each.lower()]
    return list(dict.fromkeys(containing[:3] + most_like(name, known, most=3, cutoff=0.4)))
