"""A small fleet: three nodes with two cards each, in racks of two and in two zones."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from hami_mock.fleet.fleet import Fleet
from hami_mock.node.pods import Pod
from hami_mock.settings.pools import Pool
from hami_mock.settings.settings import load_pools

A100 = (
    "{name: a100, nodes: 3, zone: [eu-1, eu-2], rack: 2, nvidia: {cards: 2, model: A100-SXM4-80GB}}"
)
MLU = "{name: mlu, nodes: 2, vendors: mlu, mlu: {cards: 1}}"
EMPTY = "{name: empty, nodes: 1, nvidia: {cards: 0}}"


@cache
def pools(*rows: str, options: str = "hami: true\nvendors: nvidia") -> tuple[Pool, ...]:
    text = "\n".join([options, "pools:", *(f"  - {row}" for row in rows or (A100,))])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.yaml"
        path.write_text(text)
        return load_pools(str(path))


def fleet_of(
    *rows: str, options: str = "hami: true\nvendors: nvidia", now: float = 1000.0
) -> Fleet:
    """Return a fleet whose clock stands still."""
    return Fleet("test", pools(*rows, options=options), clock=lambda: now)


def pod(name: str, **asked: int) -> Pod:
    requests = {f"nvidia.com/{resource}": count for resource, count in asked.items()}
    return Pod("default", name, containers=("main",), requests={"main": requests}, phase="Running")
