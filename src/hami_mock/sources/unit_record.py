"""Which numbers are whose units, kept over a restart of the agent where that isn't obvious.

Units are numbered from the first card to the last. Once cards have grown or gone while the agent
ran, that isn't true any more, and an agent that numbered them anew would give units that pods hold
to other cards. So the numbers are kept in a small file beside the sockets, for as long as they
differ from what a new agent would choose.
"""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hami_mock.kubelet.unit_ids import Numbers, UnitIds
from hami_mock.kubelet.wire import MESSAGE_LIMIT
from hami_mock.node.devices import Devices
from hami_mock.node.sizing import Node, Past
from hami_mock.node.unit_devices import UnitDevices
from hami_mock.settings.settings import Settings

# Not *.sock: the kubelet removes every socket when it starts, and leaves files alone.
FILE = "hami-mock-units.json"

_MOST = MESSAGE_LIMIT
"""No list has so many devices, nor a number that high."""

_log = logging.getLogger(__name__)


def read(folder: Path, settings: Settings) -> Past:
    """Return what an agent before this one has kept; nothing if there is no file, or a bad one."""
    path = folder / FILE
    try:
        kept = _numbers(json.loads(path.read_text()))
    except FileNotFoundError:
        return Past()
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        _log.warning("%s is of no use, units are numbered anew: %s", path, error)
        return Past()
    devices: dict[str, Devices] = {
        named.name: UnitDevices(UnitIds(offer.heads), kept[named.name])
        for vendor in settings.vendors
        for offer in vendor.vendor.offers
        if (named := vendor.names[offer.role]).name in kept and offer.heads
    }
    return Past(devices)


def write(folder: Path, node: Node) -> None:
    """Keep the node's numbers, or remove the file if they are what a new agent would choose."""
    path = folder / FILE
    unusual = {
        resource.name: {
            uuid: [[run.start, run.stop] for run in runs]
            for uuid, runs in resource.devices.numbers.items()
        }
        for resource in node.resources
        if isinstance(resource.devices, UnitDevices) and not resource.devices.is_in_order
    }
    try:
        if not unusual:
            path.unlink(missing_ok=True)
            return
        new = path.with_suffix(".new")
        new.write_text(json.dumps(unusual) + "\n")
        new.replace(path)
    except OSError as error:
        _log.warning("units will be numbered anew after a restart: %s: %s", path, error.strerror)


def _numbers(document: Any) -> Mapping[str, Mapping[str, Numbers]]:
    kept = {
        str(name): {
            str(uuid): tuple(range(int(start), int(stop)) for start, stop in runs)
            for uuid, runs in cards.items()
        }
        for name, cards in document.items()
    }
    for name, of_cards in kept.items():
        last = 0
        all_runs = [run for runs in of_cards.values() for run in runs]
        for run in sorted(all_runs, key=lambda run: run.start):
            if not last <= run.start < run.stop <= _MOST:
                raise ValueError(f"{name}: {run.start} to {run.stop} can't be")
            last = run.stop
    return kept
