"""`hami-mock fleet up`: make the nodes of a file's pools, and keep them."""

import logging
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio

from hami_mock.cli.fleet.place import chosen_socket, with_fleet
from hami_mock.cli.fleet.progress import Progress
from hami_mock.cli.output import show
from hami_mock.cli.parser import Parsed, Parser, reads
from hami_mock.cli.run import run_async
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.errors import StartError, UsageError
from hami_mock.fleet.budget import DEFAULT_RATE
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.plan import planned
from hami_mock.fleet.running import Options, Running
from hami_mock.kit import logs
from hami_mock.kit.own_socket import remove_stale
from hami_mock.kit.signals import received
from hami_mock.kit.terminal import Style, paint, prose_width, table, wrap
from hami_mock.kit.values import or_text, whole
from hami_mock.settings import kinds
from hami_mock.settings.settings import load_pools

_NAME = r"[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?"
_NOTES = """\
FILE is the configuration file, with a list of pools. Each has a name, a number of nodes and the \
cards that they carry, written as in a section for nodes, and may have zone, rack, labels, taints, \
cpu, memory and max-pods. docs/fleet.md has all keys.

The nodes are created in the cluster of $KUBECONFIG, where KWOK must run: it keeps them ready and \
their pods running. This process keeps their cards, labels, annotations and ResourceSlices. It \
finds existing nodes by their label hami-mock.io/fleet=NAME, with their faults. When it ends \
(Ctrl-C), they stay; `hami-mock fleet down` deletes them."""

_log = logging.getLogger(__name__)


def parser() -> Parser:
    parser = Parser(
        "fleet up",
        "create the nodes of a file's pools, and keep them as they should be",
        usage="FILE [FLAGS]",
        notes=_NOTES,
        examples=(
            "fleet up fleet.yaml",
            "fleet up fleet.yaml --dry-run",
            "fleet up fleet.yaml --writes 300 --http-listen 127.0.0.1:9396",
        ),
    )
    parser.add("file", "the configuration file, with pools", metavar="FILE")
    parser.add("--dry-run", "show what it would create; create nothing", action="store_true")
    text = f"writes a second to the API server, at most; 0 for no limit [{DEFAULT_RATE:g}]"
    parser.add("--writes", text, default=int(DEFAULT_RATE), **reads(or_text(whole(0, 100_000))))
    text = "address of the metrics and the page [none]"
    parser.add("--http-listen", text, default="", **reads(kinds.ADDRESS))
    text = "who runs pods: agent, HAMi's whole protocol; or stages, KWOK alone [agent]"
    parser.add("--bind", text, choices=("agent", "stages"), default="agent", metavar="agent|stages")
    levels = ("debug", "info", "warning", "error")
    text = "how much the log on stderr says [info]"
    parser.add("--log-level", text, choices=levels, default="info", metavar="|".join(levels))
    return with_fleet(parser).add_output()


def run(parsed: Parsed) -> None:
    check_name(parsed.name)
    fleet = Fleet(parsed.name, load_pools(parsed.file))
    if parsed.dry_run:
        plan = planned(fleet)
        show(plan, parsed.output, _plan_lines(plan))
        return
    logs.set_up(parsed.log_level, "text")
    path = chosen_socket(parsed)
    _refuse_second(path, parsed.name)
    options = Options(
        writes=parsed.writes,
        control_socket=path,
        http_listen=parsed.http_listen,
        bind=parsed.bind,
    )
    run_async(up, fleet, options)


async def up(fleet: Fleet, options: Options) -> None:
    """Keep a fleet until SIGTERM, SIGINT, or `hami-mock fleet down`."""
    async with Kubernetes() as kubernetes:
        running = Running(fleet, kubernetes, options)
        with received(signal.SIGTERM, signal.SIGINT) as signals:
            async with anyio.create_task_group() as tasks:

                async def until_told() -> None:
                    async for number in signals:
                        _log.info("%s: the nodes stay", signal.Signals(number).name)
                        break
                    tasks.cancel_scope.cancel()

                async def until_ended() -> None:
                    await running.ended()
                    tasks.cancel_scope.cancel()

                await tasks.start(running.run)
                tasks.start_soon(until_told)
                tasks.start_soon(until_ended)
                tasks.start_soon(Progress(fleet, running.budget).run)


def check_name(name: str) -> None:
    """Raise UsageError for a name that can't be a label."""
    if not re.fullmatch(_NAME, name):
        allowed = "small letters, digits and dashes, at most 42 characters"
        raise UsageError(f"--name: {name!r} is not allowed: it must be {allowed}")


def _refuse_second(path: str, name: str) -> None:
    """Raise StartError if a process keeps this fleet already: two would only get in each other's
    way."""
    try:
        remove_stale(Path(path))
    except OSError as error:
        raise StartError(
            f"--control-socket: {path!r} can't be used: {error.strerror}; is the fleet {name!r} "
            "running already? Stop it first (`hami-mock fleet status` shows it), or give another "
            "--name"
        ) from error


def _plan_lines(plan: dict[str, Any]) -> Iterator[str]:
    rows = [
        (
            pool["name"],
            pool["nodes"],
            ", ".join(_cards(pool)) or "none",
            pool["cards"],
            len(pool["zones"]) or "-",
            pool["racks"] or "-",
        )
        for pool in plan["pools"]
    ]
    header = ("POOL", "NODES", "CARDS OF A NODE", "CARDS", "ZONES", "RACKS")
    yield from table(header, rows, "lrlrrr")
    yield ""
    for pool in plan["pools"]:
        if not pool["resources"]:
            continue
        yield paint(f"A node of {pool['name']} offers", Style.BOLD)
        yield from table(
            ("RESOURCE", "AMOUNT", "IN THE POOL"),
            [(n, count, count * pool["nodes"]) for n, count in pool["resources"].items()],
            "lrr",
        )
        yield ""
    told = f"{plan['nodes']} nodes with {plan['cards']} cards, {plan['slices']} ResourceSlices; "
    told += f"{plan['reports_per_second']:g} reports a second for HAMi; "
    told += "everything else is written once. Nothing was created."
    yield from wrap(told, prose_width())


def _cards(pool: dict[str, Any]) -> Iterator[str]:
    for model, count in pool["models"].items():
        mig = pool["mig"].get(model)
        yield f"{count} x {model}" + ("" if mig is None else f" (MIG{mig and f' {mig}'})")
