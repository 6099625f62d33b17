"""Vastai. No variables are known: its plugin is an image only."""

from hami_mock.hami.kinds import HAMI_LOCK
from hami_mock.vendors.asking import Asking, selectors
from hami_mock.vendors.labelling import Labelling
from hami_mock.vendors.scheduling import ConfigSection, Scheduling, pod_annotations, reporting_node
from hami_mock.vendors.vendor import Vendor, slot_offer

VASTAI = Vendor(
    maker="vastai",
    title="Vastai",
    model="VA16",
    uuid_format="{uuid}",
    words=("Vastai",),
    offers=(slot_offer("vastai", "vastaitech.com/va"),),
    hami=Scheduling(
        node=reporting_node("va-register", "va"),
        pods=pod_annotations("Vastai"),
        lock=HAMI_LOCK,
        asking=Asking(selectors=selectors("vastaitech.com"), no_memory=True),
    ),
    labels=Labelling(pci="1ec6"),
    config=ConfigSection("vastai"),
)
