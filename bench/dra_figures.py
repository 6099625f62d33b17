"""The DRA driver: how long a claim takes to be prepared, and what it adds to the agent's memory."""

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

import grpc

from bench.agent import NODE, agent
from bench.api_server import api_server
from bench.progress import say
from bench.report import Figure, Section
from bench.workspace import Workspace
from hami_mock.kubelet._proto.k8s.io.kubelet.pkg.apis.dra.v1 import (
    Claim,
    NodePrepareResourcesRequest,
    NodePrepareResourcesResponse,
    NodeUnprepareResourcesRequest,
)
from tests.integration.fake_api_server import FakeApiServer, Object

_DRIVER, _DEVICE = "hami-core-gpu.project-hami.io", "hami-gpu-0"
_METHOD = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
_START_SECONDS = 20.0
_SETTLE_SECONDS = 3.0
_ROUNDS = 3


def dra_figures(work: Workspace, repeats: int) -> Section:
    """Prepare claims one after the other, each read from an API server on this machine."""
    without, idle, used, taken = [], [], [], []
    with api_server(work, FakeApiServer(), _objects(repeats)) as (connected, _):
        for number in range(_ROUNDS):
            say(f"DRA: {number} of {_ROUNDS}")
            # It asks the API server too: what the client costs is another figure.
            with agent(connected, "--pods=on", "--units=plugin") as running:
                time.sleep(_SETTLE_SECONDS)
                without.append(running.resident_mb())
            with (
                connected.sockets() as folder,
                agent(connected, "--pods=on", "--units=plugin", *_flags(folder)) as running,
            ):
                path = folder / "plugins" / _DRIVER / "dra.sock"
                _wait_for(path)
                time.sleep(_SETTLE_SECONDS)
                idle.append(running.resident_mb())
                taken += _prepare(path, repeats)
                used.append(running.resident_mb())
    cuts = quantiles(taken, n=100)
    return Section(
        "DRA: claims of a part of a card, prepared one after the other",
        [
            Figure("prepared, p50", cuts[49], "ms", 30),
            Figure("prepared, p99", cuts[98], "ms"),
            Figure("resident without it, with a client of the API server", median(without), "MB"),
            Figure("added by it, idle", median(idle) - median(without), "MB", 5),
            Figure("added by it, after these claims", median(used) - median(without), "MB"),
        ],
        notes=[
            f"{len(taken)} claims: each is read from the server, and its CDI spec and the file of "
            "all claims are on disk before the answer."
        ],
    )


def _flags(folder: Path) -> list[str]:
    (folder / "registry").mkdir()
    own = {"dra-plugins-dir": "plugins", "dra-registry-dir": "registry", "cdi-dir": "cdi"}
    return ["--dra=hami", *(f"--{flag}={folder / name}" for flag, name in own.items())]


def _objects(claims: int) -> Iterator[tuple[str, Object]]:
    yield "nodes", {"metadata": {"name": NODE, "uid": "n"}}
    for number in range(claims):
        yield "resourceclaims", _claim(f"c{number}")


def _claim(name: str) -> Object:
    result = {
        "request": "gpu",
        "driver": _DRIVER,
        "pool": NODE,
        "device": _DEVICE,
        "shareID": "s",
        "consumedCapacity": {"memory": "1Gi", "cores": "10"},
    }
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"metadata": metadata, "status": {"allocation": {"devices": {"results": [result]}}}}


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not path.exists():
        if time.monotonic() > deadline:
            raise SystemExit(f"the agent with --dra didn't serve {path}")
        time.sleep(0.05)


def _prepare(path: Path, repeats: int) -> list[float]:
    """Return how many milliseconds each claim took."""
    taken = []
    with grpc.insecure_channel(f"unix:{path}") as channel:
        prepare = channel.unary_unary(
            f"{_METHOD}/NodePrepareResources",
            request_serializer=bytes,
            response_deserializer=NodePrepareResourcesResponse.parse,
        )
        unprepare = channel.unary_unary(
            f"{_METHOD}/NodeUnprepareResources", request_serializer=bytes
        )
        for number in range(repeats):
            claim = Claim(namespace="default", name=f"c{number}", uid=f"uid-c{number}")
            began = time.perf_counter()
            answer = prepare(NodePrepareResourcesRequest(claims=[claim]), timeout=45)
            taken.append(1000 * (time.perf_counter() - began))
            (prepared,) = answer.claims.values()
            if prepared.error:
                raise SystemExit(f"a claim couldn't be prepared: {prepared.error}")
            unprepare(NodeUnprepareResourcesRequest(claims=[claim]), timeout=45)
    return taken
