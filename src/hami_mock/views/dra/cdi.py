"""CDI specs: what the container runtime puts into containers that have a claim."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from hami_mock.errors import HamiMockError
from hami_mock.kit.own_files import remove_regular, write_whole
from hami_mock.node.cards import Card
from hami_mock.node.claims import ClaimedDevice, PreparedClaim
from hami_mock.vendors.dra import ClaimHere, DraDriver, Given, Place
from hami_mock.views.dra.devices import Offered, Pool

GivesWith = Callable[[Sequence[Card]], tuple[Iterable[tuple[str, str]], Iterable[tuple[str, str]]]]
"""Tells what a container gets with cards: mounts and devices, each with its path on the host and in
the container."""

# The first version in which a device may have another path on the host.
_VERSION = "0.5.0"
_MOUNT_OPTIONS = ["ro", "nosuid", "nodev", "bind"]


class CdiError(HamiMockError):
    """The operator must act: the folder of CDI specs can't be written."""


def device_id(driver: DraDriver, claim: PreparedClaim, device: ClaimedDevice) -> str:
    """Return what the runtime knows the devices of a request by."""
    return f"{driver.cdi_kind}={_name(claim, device.request)}"


def cdi_spec(pool: Pool, claim: PreparedClaim, gives: GivesWith | None = None) -> dict[str, Any]:
    """Return a claim's spec: a device for each of its requests."""
    given = [(each, _given(each, pool.devices)) for each in claim.devices]
    given.sort(key=lambda pair: pair[0].request)
    return {
        "cdiVersion": _VERSION,
        "kind": pool.driver.cdi_kind,
        "devices": [
            {
                "name": _name(claim, request),
                "containerEdits": _edits(pool, claim, [*of], gives),
            }
            for request, of in groupby(given, key=lambda pair: pair[0].request)
        ],
    }


def _given(device: ClaimedDevice, devices: Mapping[str, Offered]) -> Given:
    offered = devices[device.name]
    place: Place | None = offered.device.place
    return Given(offered.card, device.name, device.memory, device.cores, place, device.share)


def _edits(
    pool: Pool,
    claim: PreparedClaim,
    of: Sequence[tuple[ClaimedDevice, Given]],
    gives: GivesWith | None,
) -> dict[str, Any]:
    given = [each for _, each in of]
    here = ClaimHere(claim.uid, pool.name, is_admin=any(device.is_admin for device, _ in of))
    variables = pool.driver.environment(given, here)
    edits: dict[str, Any] = {"env": [f"{name}={value}" for name, value in variables.items()]}
    cards = [*dict.fromkeys(each.card for each in given if isinstance(each.card, Card))]
    if gives is not None:
        mounts, nodes = gives(cards)
        edits["mounts"] = [
            {"hostPath": source, "containerPath": target, "options": _MOUNT_OPTIONS}
            for source, target in mounts
        ]
        edits["deviceNodes"] = [
            {"path": target, "hostPath": source, "permissions": "rw"} for source, target in nodes
        ]
    return {key: value for key, value in edits.items() if value}


def _name(claim: PreparedClaim, request: str) -> str:
    return f"{claim.uid}-{request}"


class CdiFolder:
    """The folder that the runtime reads specs from; "": it reads none."""

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None

    def __bool__(self) -> bool:
        return self._path is not None

    def write(self, driver: DraDriver, uid: str, spec: Mapping[str, Any]) -> None:
        """Write a claim's spec. Raises CdiError."""
        if self._path is None:
            return
        try:
            self._path.mkdir(mode=0o755, parents=True, exist_ok=True)
            write_whole(self._file(driver, uid), json.dumps(spec, indent=1).encode())
        except OSError as error:
            raise self._explained(error) from error

    def remove(self, driver: DraDriver, uid: str) -> None:
        """Remove a claim's spec, if it is there. Raises CdiError."""
        if self._path is None:
            return
        try:
            remove_regular(self._file(driver, uid))
        except OSError as error:
            raise self._explained(error) from error

    def _file(self, driver: DraDriver, uid: str) -> Path:
        assert self._path is not None
        return self._path / f"{driver.cdi_kind.replace('/', '-')}_{uid}.json"

    def _explained(self, error: OSError) -> CdiError:
        return CdiError(
            f"--cdi-dir: {str(self._path)!r} can't be written: {error.strerror or error}; mount "
            'the folder that the container runtime reads, or turn CDI off with --cdi-dir ""'
        )
