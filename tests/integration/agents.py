"""Agents to test: as a process of its own, and as a thread whose state the test can change."""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

from anyio.from_thread import start_blocking_portal

from hami_mock.agent import Agent
from hami_mock.faults.actions import Action, perform
from hami_mock.faults.targets import ALL
from hami_mock.node.fault import Fault
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from hami_mock.views.deviceplugin.lifecycle import PluginLifecycle

PATIENCE_SECONDS = 90.0
"""How long an agent may take to log a line; then it is killed, and the test fails."""
ONLY_NVIDIA = ("--mlu-cards=0", "--iluvatar-cards=0", "--ascend-cards=0")


def run_cli(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program to its end."""
    return subprocess.run(
        [sys.executable, "-m", "hami_mock", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | environment,
    )


@dataclass
class AgentProcess:
    process: subprocess.Popen[str]
    log: Path

    def wait_for_log(self, text: str) -> str:
        """Wait for a line of the log and return it."""
        assert self.process.stderr is not None
        patience = Timer(PATIENCE_SECONDS, self.process.kill)
        patience.start()
        try:
            with self.log.open("a") as log:
                for line in self.process.stderr:
                    log.write(line)
                    if text in line:
                        return line
        finally:
            patience.cancel()
        raise AssertionError(f"the agent ended without {text!r}: {self.log.read_text()}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and return the exit code; 3 s are promised."""
        self.process.send_signal(number)
        return self.process.wait(timeout=3)


@contextmanager
def agent_process(folder: Path, *flags: str, http: str = "") -> Iterator[AgentProcess]:
    command = [sys.executable, "-m", "hami_mock", "run", f"--socket-dir={folder}"]
    process = subprocess.Popen(
        [*command, f"--http-listen={http}", "--node-name=n1", *flags],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield AgentProcess(process, folder.parent / f"{folder.name}.log")
    finally:
        # In order, so that its coverage is written; the test itself may have killed it.
        process.terminate()
        try:
            process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        (folder.parent / f"{folder.name}.log").unlink(missing_ok=True)


class AgentThread:
    """An agent in a thread of this process."""

    def __init__(self, agent: Agent, portal: Any, future: Future[Any]) -> None:
        self.agent = agent
        self._portal = portal
        self._future = future

    @property
    def is_alive(self) -> bool:
        return not self._future.done()

    def act(self, verb: str, *targets: str, **parameters: Any) -> tuple[Fault, ...]:
        """Do something to the node, and return the faults that it began."""
        faults: tuple[Fault, ...] = self.call(
            perform, Action(verb, targets or (ALL,), parameters), self.agent.state
        )
        return faults

    def end_faults(self, faults: tuple[Fault, ...]) -> None:
        """Let faults end."""
        self.call(self.agent.state.end_faults, *faults)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function, or await it, in the agent's thread."""
        return self._portal.call(function, *arguments)

    def plugin(self, resource: str) -> PluginLifecycle:
        return next(p for p in self.agent.plugins if p.resource.name == resource)

    def set_health(self, vendor: str, index: int, *, healthy: bool) -> str:
        """Make a card healthy or not; return its UUID."""
        uuid = next(
            card.uuid
            for card in self.agent.node.cards
            if card.vendor.prefix == vendor and card.index == index
        )
        action = Action("recover" if healthy else "fail", (uuid,))
        self._portal.call(perform, action, self.agent.state)
        return uuid


@contextmanager
def agent_thread(folder: Path, **flags: str) -> Iterator[AgentThread]:
    named = {name.replace("_", "-"): value for name, value in flags.items()}
    given = {"socket-dir": str(folder), "http-listen": "", "node-name": "n1"} | named
    settings = load(given)
    node = configured_node(settings, settings.kubelet_version)
    with start_blocking_portal() as portal:
        agent = portal.call(Agent, settings, node, given)
        future, _ = portal.start_task(agent.run)
        try:
            yield AgentThread(agent, portal, future)
        finally:
            future.cancel()


def get(url: str, timeout: float = 10) -> tuple[int, str]:
    """Return status and body of a GET."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
