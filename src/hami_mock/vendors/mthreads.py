"""Moore Threads. No variables are known: its plugin is an image only."""

from hami_mock.vendors.asking import Asking, selectors
from hami_mock.vendors.labelling import Labelling
from hami_mock.vendors.scheduling import ConfigSection, PodAnnotations, Scheduling
from hami_mock.vendors.vendor import Vendor, core_offer, memory_offer, slot_offer

MTHREADS = Vendor(
    maker="mthreads",
    title="Moore Threads",
    model="MTT-S4000",
    uuid_format="{uuid}",
    words=("Mthreads",),
    split=100,
    offers=(
        slot_offer("mthreads", "mthreads.com/vgpu"),
        memory_offer("mthreads", "mthreads.com/sgpu-memory", "K", unit=512),
        core_offer("mthreads", "mthreads.com/sgpu-core", "L", per_card=16),
    ),
    hami=Scheduling(
        pods=PodAnnotations("hami.io/mthreads-vgpu-devices-allocated"),
        asking=Asking(selectors=selectors("mthreads.ai"), divided=True),
    ),
    labels=Labelling(pci="1ed5", pci_classes={"MTT-S3000": "0300"}),
    config=ConfigSection("mthreads"),
)
