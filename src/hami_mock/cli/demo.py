"""`hami-mock demo`: the agent against the embedded kubelet, told as a story."""

import logging
import os
import random
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from grpclib.exceptions import GRPCError, StreamTerminatedError

from hami_mock.agent import Agent
from hami_mock.cli.embedded_kubelet import EmbeddedKubelet, Insufficient
from hami_mock.cli.flags import flag_values, options_parser
from hami_mock.cli.output import say
from hami_mock.cli.parser import Parsed, Parser
from hami_mock.cli.run import run_async
from hami_mock.errors import StartError, UsageError
from hami_mock.faults import scenario_reader
from hami_mock.kit import logs
from hami_mock.kit.signals import received
from hami_mock.kit.terminal import WIDEST, Style, bar, is_fancy, paint, shorten, table, width, wrap
from hami_mock.node.sizing import Node
from hami_mock.settings.options import BY_NAME
from hami_mock.settings.settings import LONGEST_SOCKET_DIR, Settings, load
from hami_mock.sources import configured, unit_record
from hami_mock.vendors import Role
from hami_mock.views.deviceplugin.directory import KUBELET_SOCKET

_PODS_SOCKET = "pods.sock"
_MOST_ROUNDS = 1000
_MOST_EVENTS = 3
_CHURN_SECONDS = 0.7
_INDENT = 24
"""Where it says what a pod wants: behind its name and its phase."""


def parser() -> Parser:
    text = "keep running with a live table, to try `hami-mock ctl` on (implied by --scenario)"
    return options_parser(
        "demo",
        examples=(
            "demo",
            "demo --keep --nvidia-cards 4",
            "demo --scenario drill.yaml --http-listen 127.0.0.1:9396",
        ),
    ).add("--keep", text, action="store_true")


def run(parsed: Parsed) -> None:
    run_async(play, flag_values(parsed), parsed.keep)


def pod_kinds(node: Node) -> dict[str, dict[str, int]]:
    """Return what a pod of each vendor wants: a slot, half a card's memory, 30 % of compute."""
    kinds: dict[str, dict[str, int]] = {}
    for resource in node.resources:
        per_card = min(resource.devices.counts.values())
        # It asks for memory in MiB or in percent, not both.
        wants = {Role.SLOTS: 1, Role.MEMORY: max(per_card // 2, 1), Role.CORES: min(30, per_card)}
        if amount := wants.get(resource.offer.role):
            kinds.setdefault(resource.vendor.prefix, {})[resource.name] = amount
    return kinds


async def play(flags: Mapping[str, str], keep: bool) -> None:
    """Play the demo; with `keep` or a scenario, go on until Ctrl-C.

    Raises UsageError or StartError if it can't be played as the flags want it.
    """
    # The signals come first: whenever one arrives, the folder is removed.
    with (
        received(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals,
        tempfile.TemporaryDirectory(prefix="hami-mock-") as folder,
    ):
        flags = {**_own_flags(flags, folder), **flags}
        settings = load(flags)
        logs.set_up(settings.log_level, settings.log_format)
        # Both ends of a call that is broken off when the demo ends are in this process.
        logging.getLogger("grpclib").setLevel(logging.CRITICAL)
        if settings.is_companion:
            raise UsageError("--source hami: the demo has no node with a real plugin")
        if not settings.device_plugins:
            raise UsageError("--device-plugins: the demo shows what ours register: leave it on")
        scenario = scenario_reader.read(settings.scenario) if settings.scenario else None
        node, _ = await configured.plan(settings)
        if not node.resources:
            say("No cards are configured for this node: there is nothing to show.")
            return
        kubelet = EmbeddedKubelet(_kubelet_folder(settings), Path(folder, _PODS_SOCKET))
        agent = Agent(settings, node, flags)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_stop_on_signal, signals, tasks.cancel_scope)
                await tasks.start(kubelet.run)
                await _tell(agent, kubelet, tasks)
                if scenario is not None:
                    await agent.stage.play(scenario, settings.seed)
                if keep or scenario is not None:
                    await _keep(agent, kubelet)
                tasks.cancel_scope.cancel()
        finally:
            # Its pods are gone with the kubelet, and so is what they held.
            Path(settings.socket_dir, unit_record.FILE).unlink(missing_ok=True)


def _own_flags(flags: Mapping[str, str], folder: str) -> dict[str, str]:
    """Return flags for what belongs to a real agent and kubelet, unless the user chose another."""
    if len(os.fsencode(folder)) > LONGEST_SOCKET_DIR:
        raise StartError(f"{folder!r} is too long for unix sockets: set TMPDIR to a short path")
    settings = load(flags)
    own = {
        "socket-dir": folder,
        "control-socket": f"{folder}/control.sock",
        "http-listen": "",
        "pod-resources-socket": f"{folder}/{_PODS_SOCKET}",
        "log-level": "error",
    }
    return {
        name: value
        for name, value in own.items()
        if getattr(settings, name.replace("-", "_")) == BY_NAME[name].default
    }


def _kubelet_folder(settings: Settings) -> Path:
    folder = Path(settings.socket_dir)
    if not folder.is_dir():
        raise UsageError(f"--socket-dir: {str(folder)!r} is not a folder: create it first")
    if (folder / KUBELET_SOCKET).exists():
        raise UsageError(
            f"--socket-dir: {str(folder)!r} has a {KUBELET_SOCKET} already: the demo brings a "
            "kubelet of its own, so name another folder or leave the flag out"
        )
    return folder


async def _tell(agent: Agent, kubelet: EmbeddedKubelet, tasks: TaskGroup) -> None:
    """Start the agent, show what the kubelet sees of it, and let pods arrive."""
    node, folder = agent.node, agent.settings.socket_dir
    _announce(f"An embedded kubelet listens in {folder}; the agent registers with it ...")
    began = anyio.current_time()
    await tasks.start(agent.run)
    expected = {resource.name: resource.count for resource in node.resources}
    await kubelet.wait_until(
        lambda: {name: own.allocatable for name, own in kubelet.devices.items()} == expected
    )
    seconds = anyio.current_time() - began
    say(f"{len(node.resources)} resources registered and listed in {seconds:.2f} s.\n")
    say("\n".join(_describe(node, kubelet)))
    await _fill(node, kubelet)


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
    for number in range(_MOST_ROUNDS):  # pragma: no branch - a resource runs out long before
        for kind, requests in pod_kinds(node).items():
            pod = f"{kind}-{number}"
            wants = ", ".join(f"{count}\xa0{name}" for name, count in requests.items())
            try:
                environment = await kubelet.admit(pod, requests)
            except Insufficient as shortage:
                _say_pod(pod, "Pending", Style.RED, wants)
                say(f"  {'':<12} {paint(str(shortage), Style.RED)}\n")
                say("\n".join(_left(node, kubelet, shortage.resource)))
                return
            _say_pod(pod, "Running", Style.GREEN, wants)
            for variable, value in [*environment.items()][:1]:
                line = shorten(f"{variable}={value}", _columns() - _INDENT)
                say(" " * _INDENT + paint(line, Style.DIM))


def _columns() -> int:
    return width() or 10_000  # what isn't a terminal has no limit


def _say_pod(pod: str, phase: str, style: Style, wants: str) -> None:
    lines = f"\n{' ' * _INDENT}".join(wrap(wants, _columns() - _INDENT))
    # What mustn't be torn apart has been held together.
    say(f"  {pod:<12} {paint(phase, style)}  {lines}".replace("\xa0", " "))


def _left(node: Node, kubelet: EmbeddedKubelet, short_of: str = "") -> Iterator[str]:
    """Yield the table of what is allocated and what is left."""
    # Beside names, numbers and percentages, a narrow terminal has room for a short bar only.
    bars = 20 if _columns() >= WIDEST else 6
    rows = []
    # One that has just been configured may not be there yet.
    for name in (each.name for each in node.resources if each.name in kubelet.devices):
        devices = kubelet.devices[name]
        held, free = len(devices.held), len(devices.free)
        share = held / (devices.capacity or 1)
        mark = paint("ran out", Style.YELLOW) if name == short_of else ""
        used = f"{bar(share, bars)} {share:4.0%}  {mark}".rstrip()
        rows.append((name, devices.allocatable, held, free, used))
    yield from table(("RESOURCE", "ALLOCATABLE", "HELD", "LEFT", "IN USE"), rows, " rrr")


async def _keep(agent: Agent, kubelet: EmbeddedKubelet) -> None:
    """Let pods come and go, and show the table again and again."""
    say()
    _announce("Pods now come and go. Press Ctrl-C to stop.")
    if Path(agent.settings.control_socket).is_socket():
        _announce("Make a card fail from another terminal:")
        card = agent.node.cards[0].name
        # Short lines: a terminal of 80 columns would fold a flag with a path.
        variable = BY_NAME["control-socket"].variables[0]
        say(f"  export {variable}={shlex.quote(agent.settings.control_socket)}")
        for words in (f"fail {card}", "status", f"recover {card}"):
            say(f"  {_program()} ctl {words}")
    say()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_churn, agent, kubelet)
        drawn = 0
        while True:
            # What has scrolled away can't be drawn again.
            most = shutil.get_terminal_size().lines - 1 if is_fancy() else None
            lines = [*_left(agent.node, kubelet), *_news(agent, kubelet)][:most]
            # In a terminal the table stays in its place; a pipe gets one after the other.
            say((f"\x1b[{drawn}A\x1b[J" if drawn else "") + "\n".join(lines))
            drawn = len(lines) if is_fancy() else 0
            await anyio.sleep(_CHURN_SECONDS)


def _news(agent: Agent, kubelet: EmbeddedKubelet) -> Iterator[str]:
    yield f"{len(kubelet.pods)} pods are running."
    for event in agent.state.events.after(0)[-_MOST_EVENTS:]:
        line = f"{event.kind}: {event.subject and f'{event.subject}: '}{event.message}"
        style = Style.YELLOW if event.is_warning else Style.DIM
        yield paint(shorten(line, _columns()), style)


async def _churn(agent: Agent, kubelet: EmbeddedKubelet) -> None:
    chance = random.Random(0)
    number = 0
    while True:
        await anyio.sleep(_CHURN_SECONDS)
        kinds = list(pod_kinds(agent.node).items())
        pods = sorted(kubelet.pods)
        if pods and (not kinds or chance.random() < len(pods) / 16):
            kubelet.release(chance.choice(pods))
        elif kinds:
            number += 1
            kind, requests = chance.choice(kinds)
            # A fault may keep it from its devices; the next one may be luckier.
            with suppress(Insufficient, GRPCError, StreamTerminatedError, OSError):
                await kubelet.admit(f"{kind}-later-{number}", requests)


def _program() -> str:
    """Return what starts this program in another terminal."""
    path = Path(sys.argv[0])
    if path.name == "__main__.py":
        return f"{sys.executable} -m hami_mock"
    found = shutil.which(path.name)
    return path.name if found and path.samefile(found) else str(path.absolute())


async def _stop_on_signal(signals: AsyncIterator[signal.Signals], scope: anyio.CancelScope) -> None:
    await anext(signals)
    scope.cancel()


def _announce(text: str) -> None:
    say("\n".join(paint(line, Style.CYAN) for line in wrap(text, _columns())))
