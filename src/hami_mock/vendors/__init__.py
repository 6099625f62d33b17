"""The vendors of HAMi 2.10. All that is known of one stands in the file with its maker's name.

Adding one is adding such a file, a line here, and its models to catalog.json.
"""

from hami_mock.vendors.amd import AMD
from hami_mock.vendors.ascend import ASCEND
from hami_mock.vendors.awsneuron import AWS_NEURON
from hami_mock.vendors.biren import BIREN
from hami_mock.vendors.cambricon import CAMBRICON
from hami_mock.vendors.enflame import ENFLAME, ENFLAME_GCU
from hami_mock.vendors.hygon import HYGON
from hami_mock.vendors.iluvatar import ILUVATAR
from hami_mock.vendors.kunlun import KUNLUN, KUNLUN_XPU
from hami_mock.vendors.metax import METAX, METAX_GPU
from hami_mock.vendors.mthreads import MTHREADS
from hami_mock.vendors.nvidia import NVIDIA
from hami_mock.vendors.vastai import VASTAI
from hami_mock.vendors.vendor import Identity, Offer, Role, Vendor

__all__ = ["VENDORS", "Identity", "Offer", "Role", "Vendor"]

# New ones come last: the PCI bus IDs of cards are made from their vendor's place in here.
VENDORS: tuple[Vendor, ...] = (
    NVIDIA, CAMBRICON, ILUVATAR, ASCEND, HYGON, METAX, METAX_GPU, ENFLAME, ENFLAME_GCU, MTHREADS,
    KUNLUN, KUNLUN_XPU, AWS_NEURON, AMD, VASTAI, BIREN,
)  # fmt: skip
