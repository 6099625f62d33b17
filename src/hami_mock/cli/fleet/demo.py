"""`hami-mock fleet demo`: a control plane and a fleet in a sandbox, told as a story."""

import os
import shlex
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import anyio

from hami_mock.cli.fleet.demo_story import Story, pools_text
from hami_mock.cli.fleet.demo_view import View
from hami_mock.cli.fleet.place import SOCKET_VARIABLE
from hami_mock.cli.output import say
from hami_mock.cli.parser import Parsed, Parser, reads
from hami_mock.cli.run import run_async
from hami_mock.fleet.sandbox import Sandbox, find_programs, free_ports, sandbox
from hami_mock.kit.signals import received
from hami_mock.kit.terminal import Style, paint
from hami_mock.kit.values import or_text, whole

_NODES = 1000
_NAME = "demo"
_NOTES = (
    "It needs etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok: from "
    "--programs, from the cache that `make e2e-prepare` fills, or from $PATH. They listen on free "
    "ports of the loopback interface and write to one folder; all of it is gone when the demo "
    "ends, however it ends. It needs no root.\n\n"
    "With --keep it waits at the end, so that you can try things: in another terminal, set the "
    "variables that it shows, then use kubectl and `hami-mock fleet`."
)


def parser() -> Parser:
    return (
        Parser(
            "fleet demo",
            "bring up a control plane and a fleet in a sandbox, with pods and a rack that fails",
            notes=_NOTES,
            examples=(
                "fleet demo",
                "fleet demo --nodes 300 --keep",
                "fleet demo --kubernetes 1.35",
            ),
        )
        .add(
            "--nodes",
            f"how many nodes [{_NODES}]",
            default=_NODES,
            **reads(or_text(whole(20, 10_000))),
        )
        .add("--keep", "stay at the end, until Ctrl-C", action="store_true")
        .add("--programs", "a folder with the programs [the cache]", metavar="DIR", default="")
        .add(
            "--kubernetes",
            "which release of the cache to use, such as 1.35 [the newest]",
            metavar="1.X",
            default="",
        )
    )


def run(parsed: Parsed) -> None:
    """Raises StartError if a program is missing or doesn't come up."""
    programs = find_programs(parsed.programs, parsed.kubernetes)
    since = time.monotonic()
    say("Starting a control plane: etcd, API server, controllers, scheduler, KWOK ...")
    with _ended_by_signals(), sandbox(programs) as running:
        say(f"It answered after {time.monotonic() - since:.1f} s.")
        where = _start_fleet(running, parsed.nodes)
        say("\n".join(where))
        run_async(_play, running, where, parsed.nodes, parsed.keep)
        say("Taking everything down ...")
    say(paint("Nothing is left behind.", Style.GREEN))


def _start_fleet(running: Sandbox, nodes: int) -> list[str]:
    """Start the fleet's process; return in lines how others find it, which no terminal folds."""
    file = running.folder / "fleet.yaml"
    file.write_text(pools_text(nodes))
    page = f"127.0.0.1:{free_ports(1)[0]}"
    variables = {
        "KUBECONFIG": str(running.kubeconfig),
        SOCKET_VARIABLE: str(running.folder / "fleet.sock"),
    }
    # A single file that needs no Python is its own interpreter.
    program = [sys.executable, *(() if getattr(sys, "frozen", False) else ("-m", "hami_mock"))]
    up = ["fleet", "up", str(file), "--name", _NAME, "--writes", "0", "--http-listen", page]
    running.start("fleet", [*program, *up], variables)
    os.environ |= variables
    exports = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    commands = f"kubectl get nodes; hami-mock fleet status --name {_NAME}"
    return [f"The page: http://{page}/  Or in another terminal:", *exports, commands]


async def _play(running: Sandbox, where: list[str], nodes: int, keep: bool) -> None:
    socket = os.environ[SOCKET_VARIABLE]
    view = View(socket, where, running.check)
    with received(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals, view:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop, signals, tasks.cancel_scope)
            tasks.start_soon(view.run)
            await Story(view, socket, nodes).tell()
            if keep:
                view.caption("Try things from another terminal. Ctrl-C takes everything down.")
                await anyio.sleep_forever()
            tasks.cancel_scope.cancel()
    for line in view.told:
        say(line)


async def _stop(signals: AsyncIterator[signal.Signals], scope: anyio.CancelScope) -> None:
    await anext(signals)
    scope.cancel()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end it as Ctrl-C does: in order, and with nothing left."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
