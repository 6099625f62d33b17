"""hami-mock with a vendor that nobody has heard of: one object, and one row of the catalog.

A program of its own, for whatever is made of the vendors is made when it is imported.
"""

import sys

from hami_mock import vendors
from hami_mock.hami.kinds import HAMI_LOCK, JSON
from hami_mock.vendors import catalog
from hami_mock.vendors.catalog import Model
from hami_mock.vendors.scheduling import (
    ConfigSection,
    NodeAnnotations,
    Scheduling,
    pod_annotations,
)
from hami_mock.vendors.vendor import Vendor, core_offer, memory_offer, slot_offer

ACME = Vendor(
    maker="acme",
    title="Acme",
    model="A1",
    uuid_format="ACME-{uuid}",
    words=("ACME",),
    visible_devices=("ACME_VISIBLE_DEVICES",),
    cards=2,
    split=5,
    has_xids=True,
    offers=(
        slot_offer("acme", "acme.example/gpu"),
        memory_offer("acme", "acme.example/memory", "Q", unit=1024),
        core_offer("acme", "acme.example/cores", "R"),
    ),
    hami=Scheduling(
        node=NodeAnnotations("hami.io/node-acme-register", JSON),
        pods=pod_annotations("acme"),
        lock=HAMI_LOCK,
    ),
    config=ConfigSection("acme"),
)

vendors.VENDORS = (*vendors.VENDORS, ACME)
catalog.models()["acme"] = {"A1": Model("A1", "Acme One", 8192, 64, "roadrunner", 100)}

if __name__ == "__main__":
    from hami_mock.__main__ import main

    sys.exit(main())
