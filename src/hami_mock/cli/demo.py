"""`hami-mock demo`: the agent against the embedded kubelet, told as a story."""

import os
import random
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from hami_mock.agent import Agent
from hami_mock.cli.embedded_kubelet import EmbeddedKubelet, Insufficient
from hami_mock.cli.flags import flag_values, options_parser
from hami_mock.cli.output import say
from hami_mock.cli.parser import Parser
from hami_mock.cli.run import run_async
from hami_mock.errors import StartError
from hami_mock.kit import logs
from hami_mock.kit.terminal import Style, bar, is_fancy, paint, table
from hami_mock.node.resources import Resource
from hami_mock.node.sizing import Node
from hami_mock.settings.settings import LONGEST_SOCKET_DIR, Settings, load
from hami_mock.sources import configured
from hami_mock.vendors import Role

_MOST_ROUNDS = 1000
_CHURN_SECONDS = 0.7


def parser() -> Parser:
    """Return the parser of the command."""
    parser = options_parser("demo", examples=("demo", "demo --keep --nvidia-cards 4"))
    parser.add_argument("--keep", action="store_true", help="stay up with a live table")
    return parser


def main(arguments: list[str]) -> int:
    """Show it work here."""
    parsed = parser().parse(arguments)
    settings = load(flag_values(parsed))
    logs.set_up("error", settings.log_format)
    run_async(run, settings, parsed.keep)
    return 0


@dataclass(frozen=True)
class PodKind:
    """A pod that the demo admits: what it wants of one vendor's resources."""

    name: str
    requests: dict[str, int]


def pod_kinds(node: Node) -> list[PodKind]:
    """Return one kind of pod for each vendor: a slot, half a card's memory, 30 % of compute."""
    kinds: dict[str, PodKind] = {}
    for resource in node.resources:
        amount = _request(resource)
        if amount:
            kind = kinds.setdefault(resource.vendor.key, PodKind(resource.vendor.key, {}))
            kind.requests[resource.name] = amount
    return list(kinds.values())


def _request(resource: Resource) -> int:
    per_card = min(resource.devices.counts.values())
    match resource.offer.role:
        case Role.SLOTS:
            return 1
        case Role.MEMORY:
            return max(per_card // 2, 1)
        case Role.CORES:
            return min(30, per_card)
        case Role.PERCENTAGE:
            return 0  # a pod asks for memory in MiB or in percent, not both


async def run(settings: Settings, keep: bool) -> None:
    """Play the demo; with `keep`, go on until Ctrl-C."""
    node, _ = await configured.plan(settings)
    if not node.resources:
        say("No cards are configured for this node: there is nothing to show.")
        return
    with tempfile.TemporaryDirectory(prefix="hami-mock-") as name:
        if len(os.fsencode(name)) > LONGEST_SOCKET_DIR:
            raise StartError(f"{name!r} is too long for unix sockets: set TMPDIR to a short path")
        kubelet = EmbeddedKubelet(Path(name))
        here = replace(settings, socket_dir=name, http_listen="", control_socket="", config="")
        agent = Agent(here, node)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_on_signal, tasks.cancel_scope)
            await tasks.start(kubelet.run)
            _announce(f"An embedded kubelet listens in {name}; the agent registers with it ...")
            began = anyio.current_time()
            await tasks.start(agent.run)
            await kubelet.wait_until(lambda: _is_complete(kubelet, node))
            seconds = anyio.current_time() - began
            say(f"{len(node.resources)} resources registered and listed in {seconds:.2f} s.\n")
            say("\n".join(_describe(node, kubelet)))
            await _fill(node, kubelet)
            if keep:
                await _keep(node, kubelet)
            tasks.cancel_scope.cancel()


def _is_complete(kubelet: EmbeddedKubelet, node: Node) -> bool:
    return all(
        r.name in kubelet.devices and kubelet.devices[r.name].allocatable == r.count
        for r in node.resources
    )


def _describe(node: Node, kubelet: EmbeddedKubelet) -> Iterator[str]:
    """Yield what `kubectl describe node` would show of the devices."""
    yield f"Name:         {paint(node.name, Style.BOLD)}"
    width = max(len(name) for name in kubelet.devices) + 2
    for title, key in (("Capacity:", "capacity"), ("Allocatable:", "allocatable")):
        yield paint(title, Style.BOLD)
        for name in sorted(kubelet.devices):
            yield f"  {name + ':':<{width}} {getattr(kubelet.devices[name], key)}"
    yield ""


async def _fill(node: Node, kubelet: EmbeddedKubelet) -> None:
    """Admit pods, one of each kind in turn, until a resource runs out."""
    _announce("Pods arrive until a resource runs out:")
    kinds = pod_kinds(node)
    for number in range(_MOST_ROUNDS):  # pragma: no branch - a resource runs out long before
        for kind in kinds:
            pod = f"{kind.name}-{number}"
            wants = ", ".join(f"{count} {name}" for name, count in kind.requests.items())
            try:
                environment = await kubelet.admit(pod, kind.requests)
            except Insufficient as shortage:
                say(f"  {pod:<12} {paint('Pending', Style.RED)}  {wants}")
                say(f"  {'':<12} {paint(str(shortage), Style.RED)}\n")
                say("\n".join(_left(node, kubelet, shortage.resource)))
                return
            say(f"  {pod:<12} {paint('Running', Style.GREEN)}  {wants}")
            for variable, value in [*environment.items()][:1]:
                say(f"  {'':<22}{paint(f'{variable}={value}', Style.DIM)}")


def _left(node: Node, kubelet: EmbeddedKubelet, short_of: str = "") -> Iterator[str]:
    """Yield the table of what is allocated and what is left."""
    rows = []
    for resource in node.resources:
        devices = kubelet.devices[resource.name]
        share = len(devices.held) / (devices.capacity or 1)
        mark = "<- ran out" if resource.name == short_of else ""
        rows.append(
            (resource.name, devices.allocatable, len(devices.held), len(devices.free),
             f"{bar(share)} {share:4.0%}  {mark}")
        )  # fmt: skip
    yield from table(("RESOURCE", "ALLOCATABLE", "ALLOCATED", "LEFT", "IN USE"), rows, " rrr")


async def _keep(node: Node, kubelet: EmbeddedKubelet) -> None:
    """Let pods come and go, and show the table whenever it has changed."""
    kinds = pod_kinds(node)
    running = {pod for devices in kubelet.devices.values() for pod in devices.held.values()}
    chance = random.Random(0)
    number = 0
    drawn = 0
    _announce("\nPods come and go now; Ctrl-C ends it.")
    while True:
        lines = [*_left(node, kubelet), f"{len(running)} pods run."]
        # In a terminal the table stays in its place; a pipe gets one after the other.
        say((f"\x1b[{drawn}A\x1b[J" if drawn else "") + "\n".join(lines))
        drawn = len(lines) if is_fancy() else 0
        await anyio.sleep(_CHURN_SECONDS)
        if running and chance.random() < len(running) / 16:
            pod = chance.choice(sorted(running))
            kubelet.release(pod)
            running.discard(pod)
        else:
            number += 1
            kind = chance.choice(kinds)
            pod = f"{kind.name}-later-{number}"
            try:
                await kubelet.admit(pod, kind.requests)
            except Insufficient:
                continue
            running.add(pod)


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        await anext(aiter(signals))
        scope.cancel()


def _announce(text: str) -> None:
    say(paint(text, Style.CYAN))
