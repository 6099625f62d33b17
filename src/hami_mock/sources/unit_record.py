"""Which numbers are whose units, kept over a restart of the agent.

Units are numbered from the first card to the last, but cards grow, shrink and go, while the agent
runs and from one start to the next. An agent that numbered them anew would give units that pods
hold to other cards. So a small file beside the sockets says which numbers are whose, and which
resources stand in the Node's status: they must not get devices as well because the API server is
away when the agent starts.
"""

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hami_mock.kit import own_files
from hami_mock.kit.text import cut
from hami_mock.kubelet.unit_ids import Numbers, UnitIds
from hami_mock.kubelet.wire import MESSAGE_LIMIT
from hami_mock.node.devices import CountedUnits, Devices
from hami_mock.node.unit_devices import UnitDevices
from hami_mock.settings.settings import Settings

# Not *.sock: the kubelet removes every socket when it starts, and leaves files alone.
FILE = "hami-mock-units.json"
_IN_STATUS = "in the Node's status"
"""A key that no resource is called. Earlier versions pass over it."""

_MOST = MESSAGE_LIMIT
"""No list has so many devices, nor a number that high."""
_MOST_BYTES = 16 * 2**20
"""More than any history of cards makes."""

_log = logging.getLogger(__name__)


def read(folder: Path, settings: Settings) -> dict[str, Devices]:
    """Return the units of each resource as an agent before this one had them, retired ones too.

    Of those in the Node's status it isn't known how many each card had. That is nothing if there is
    no file, or a bad one.
    """
    path = folder / FILE
    # Earlier versions didn't write whose numbers they were.
    heads = {
        vendor.names[offer.role].name: offer.heads
        for vendor in settings.vendors
        for offer in vendor.vendor.offers
    }
    try:
        document = _document(path)
        in_status = document.pop(_IN_STATUS, {}).get("resources", ())
        numbered: dict[str, Devices] = {
            str(name): UnitDevices(UnitIds(of), _numbers(name, entry.get("cards", entry)))
            for name, entry in document.items()
            if (of := str(entry.get("heads") or heads.get(name, "")))
        }
        return {str(name): CountedUnits({}) for name in in_status} | numbered
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        _log.warning("%s can't be used, so units are renumbered: %s", path, cut(str(reason)))
        return {}


def write(folder: Path, devices: Mapping[str, Devices]) -> None:
    """Keep the numbers of resources' units. Raises OSError.

    What is on record already needs no room: an agent may start anew on a full disk.
    """
    document: dict[str, Any] = {
        name: {
            "heads": own.heads,
            "cards": {
                uuid: [[run.start, run.stop] for run in runs] for uuid, runs in own.owned.items()
            },
        }
        for name, own in devices.items()
        if isinstance(own, UnitDevices)
    }
    in_status = sorted(name for name, own in devices.items() if isinstance(own, CountedUnits))
    if in_status:
        document[_IN_STATUS] = {"resources": in_status}
    path, content = folder / FILE, json.dumps(document).encode() + b"\n"
    with suppress(OSError):  # then it has to be written
        if own_files.read_regular(path, _MOST_BYTES) == content:
            return
    own_files.write_whole(path, content)


def remove(folder: Path) -> None:
    """Forget the numbers; what stands in the record's place and isn't one stays."""
    try:
        own_files.remove_regular(folder / FILE)
    except OSError as error:
        _log.warning("can't remove %s: %s", folder / FILE, error.strerror)


def _document(path: Path) -> Any:
    try:
        return json.loads(own_files.read_regular(path, _MOST_BYTES))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _numbers(name: str, document: Any) -> dict[str, Numbers]:
    cards = {
        str(uuid): tuple(range(int(start), int(stop)) for start, stop in runs)
        for uuid, runs in document.items()
    }
    last = 0
    all_runs = [run for runs in cards.values() for run in runs]
    for run in sorted(all_runs, key=lambda run: run.start):
        if not last <= run.start < run.stop <= _MOST:
            raise ValueError(f"{name}: {run.start} to {run.stop} is not possible")
        last = run.stop
    return cards
