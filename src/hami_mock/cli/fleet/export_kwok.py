"""`hami-mock fleet export-kwok`: a fleet for people who want no process of ours."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hami_mock.cli.fleet.place import DEFAULT_NAME
from hami_mock.cli.fleet.up import check_name
from hami_mock.cli.output import say
from hami_mock.cli.parser import Parsed, Parser
from hami_mock.errors import StartError, UsageError
from hami_mock.fleet.nodes import node_object, state_of
from hami_mock.fleet.sandbox.flags import LEASE_SECONDS
from hami_mock.fleet.stages import Bind, as_yaml, config, stages
from hami_mock.settings.pools import Pool
from hami_mock.settings.settings import load_pools

_NODES, _KWOK = "nodes.yaml", "kwok.yaml"
_STDOUT = "-"
_NOTES = (
    f"A folder gets {_NODES}, for `kubectl create -f`, and {_KWOK}, for `kwok --config`. Standard "
    "output gets the nodes and the Stages, which `kubectl apply -f -` takes where KWOK runs with "
    "--enable-crds=Stage.\n\n"
    "Without a hami-mock process nodes never change: nothing fails, and handshakes aren't "
    "answered, so HAMi's scheduler forgets the cards of vendors other than NVIDIA after a minute. "
    "With --bind stages KWOK plays the part of HAMi's device plugins; it can't check whose lock it "
    "removes from a node."
)


def parser() -> Parser:
    ways = "|".join(Bind)
    return (
        Parser(
            "fleet export-kwok",
            "write Node YAML and KWOK Stages, for a fleet that needs no hami-mock process",
            usage="FILE [FLAGS]",
            notes=_NOTES,
            examples=(
                "fleet export-kwok fleet.yaml -o export",
                "hami-mock fleet export-kwok fleet.yaml | kubectl apply -f -",
            ),
        )
        .add("file", "the configuration file with the pools", metavar="FILE")
        .add(
            "--bind",
            f"who answers HAMi's scheduler for the nodes: nobody, or KWOK's Stages [{Bind.NONE}]",
            choices=[each.value for each in Bind],
            default=Bind.NONE.value,
            metavar=ways,
        )
        .add("--name", f"the fleet's name [{DEFAULT_NAME}]", metavar="NAME", default=DEFAULT_NAME)
        .add(
            "-o --output",
            f"the folder to write into; {_STDOUT} is standard output [{_STDOUT}]",
            metavar="DIR",
            default=_STDOUT,
        )
    )


def run(parsed: Parsed) -> None:
    check_name(parsed.name)
    pools = load_pools(parsed.file)
    bind = Bind(parsed.bind)
    if parsed.output == _STDOUT:
        say(as_yaml([*nodes(pools, parsed.name), *stages(bind)]), end="")
        return
    folder = Path(parsed.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _NODES).write_text(as_yaml(nodes(pools, parsed.name)))
        (folder / _KWOK).write_text(config(bind, LEASE_SECONDS))
    except FileExistsError as error:
        raise UsageError(f"--output: {parsed.output!r} is a file: name a folder") from error
    except OSError as error:
        raise StartError(f"--output: can't write to {parsed.output!r}: {error.strerror}") from error
    count = sum(pool.nodes for pool in pools)
    say(f"{folder / _NODES}: {count} nodes. Make them with `kubectl create -f {folder / _NODES}`.")
    say(f"{folder / _KWOK}: KWOK's options and Stages, for `kwok --config {folder / _KWOK}`.")


def nodes(pools: tuple[Pool, ...], fleet: str) -> Iterator[dict[str, Any]]:
    """Yield the Node objects of all pools, as they are when all is well."""
    now = int(time.time())
    for pool in pools:
        for index in range(pool.nodes):
            yield node_object(pool, state_of(pool, index), fleet, now)
