"""An agent with all that is around it: a kubelet, its pod resources, an API server, a file."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import grpc
from anyio.from_thread import BlockingPortal, start_blocking_portal

from bench.workspace import Workspace, free_port
from hami_mock.views.driver.root import SETTERS
from tests.integration.fake_api_server import FakeApiServer, api_server
from tests.integration.grpcio_kubelet import GrpcioKubelet

NODE = "n1"
_COUNT_SECONDS = 20.0
_READY_SECONDS = 120.0


@dataclass(frozen=True)
class Footprint:
    """What the agent's process has at one moment; memory in MiB."""

    resident: float
    proportional: float
    files: int
    sockets: int
    threads: int
    tasks: int
    objects: int


class SoakedAgent:
    """The agent's process, seen from outside."""

    def __init__(self, process: "subprocess.Popen[str]", counts: Path, log: Path) -> None:
        self._process = process
        self._counts = counts
        self._proc = Path(f"/proc/{process.pid}")
        self._log = log
        self._log_seen = 0

    def check(self) -> None:
        """Raise SystemExit if it has ended, or has shown a traceback."""
        if self._process.poll() is not None:
            end = self._log.read_text()[-4000:]
            raise SystemExit(f"the agent ended with {self._process.returncode}:\n{end}")
        with self._log.open() as log:
            log.seek(self._log_seen)
            new = log.read()
            self._log_seen = log.tell()
        if (start := new.find("Traceback (most recent call last)")) >= 0:
            time.sleep(1)  # the rest of it is on its way
            text = self._log.read_text()[-6000:]
            raise SystemExit(f"the agent's log has a traceback: {new[start - 200 : start]}\n{text}")

    def reload(self) -> None:
        self._process.send_signal(signal.SIGHUP)

    def footprint(self) -> Footprint:
        counted = self._count()
        memory = dict(
            line.split(":", 1) for line in (self._proc / "status").read_text().splitlines()
        )
        rollup = (self._proc / "smaps_rollup").read_text().splitlines()
        proportional = next(line for line in rollup if line.startswith("Pss:"))
        links = [self._target(path) for path in (self._proc / "fd").iterdir()]
        return Footprint(
            resident=int(memory["VmRSS"].split()[0]) / 1024,
            proportional=int(proportional.split()[1]) / 1024,
            files=len(links),
            sockets=sum(link.startswith("socket:") for link in links),
            threads=int(memory["Threads"]),
            tasks=counted["tasks"],
            objects=counted["objects"],
        )

    def _count(self) -> dict[str, int]:
        self._counts.unlink(missing_ok=True)
        self._process.send_signal(signal.SIGUSR1)
        end = time.monotonic() + _COUNT_SECONDS
        while not self._counts.exists():
            self.check()
            if time.monotonic() > end:
                raise SystemExit(f"the agent didn't count its tasks in {_COUNT_SECONDS:.0f} s")
            time.sleep(0.02)
        counted: dict[str, int] = json.loads(self._counts.read_text())
        return counted

    def _target(self, path: Path) -> str:
        try:
            return str(path.readlink())
        except OSError:
            return ""  # it was closed meanwhile


@dataclass
class Rig:
    """All that the soak acts on."""

    agent: SoakedAgent
    kubelet: GrpcioKubelet
    api: FakeApiServer
    portal: BlockingPortal
    config: Path
    control: Path
    setters: Path
    port: int

    def ask(self, command: str, **arguments: Any) -> Any:
        """Send a request as `hami-mock ctl` does; return the answer's data."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(str(self.control))
            request = {"command": command, "arguments": arguments}
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as answers:
                return json.loads(answers.readline())

    def scrape(self, path: str = "/metrics") -> int:
        """GET; return the status, 0 if nobody answered."""
        try:
            with urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
                answer.read()
                return int(answer.status)
        except URLError as error:
            return int(getattr(error, "code", 0))

    def wait_until_ready(self) -> None:
        end = time.monotonic() + _READY_SECONDS
        while self.scrape("/readyz") != 200:
            self.agent.check()
            if time.monotonic() > end:
                why = json.dumps(self.ask("status"), indent=1)
                raise SystemExit(f"the agent isn't ready after {_READY_SECONDS:.0f} s: {why}")
            self.portal.call(self._report_node)
            time.sleep(0.1)

    def _report_node(self) -> None:
        """Copy the capacity of what has no plugin to allocatable, as a kubelet does.

        An API server that refused for a while has let units move to a plugin, and back. A real
        kubelet takes five minutes to believe that the plugin has ended.
        """
        status = self.api.objects["nodes", "", NODE]["status"]
        served = {each.resource for each in self.kubelet.registrations if not each.ended}
        shown = status.get("allocatable", {})
        differing = {
            name: count
            for name, count in status.get("capacity", {}).items()
            if name not in served and shown.get(name) != count
        }
        if differing:
            self.api.set_status(NODE, allocatable=differing)


@contextmanager
def rig(work: Workspace, config: str) -> Iterator[Rig]:
    """Start all of it."""
    import deviceplugin_pb2  # type: ignore[import-not-found]

    with ExitStack() as stack:
        folder = stack.enter_context(work.sockets())
        portal = stack.enter_context(start_blocking_portal())
        api = stack.enter_context(portal.wrap_async_context_manager(api_server(work.folder)))
        node = {"metadata": {"name": NODE, "annotations": {}}, "spec": {}, "status": {}}
        portal.call(api.put, "nodes", node)
        kubelet = stack.enter_context(_kubelet(folder, deviceplugin_pb2))
        stack.enter_context(_pod_resources(folder / "pods.sock.d"))
        control, port = work.folder / "control.sock", free_port()
        file, log = work.folder / "config.yaml", work.folder / "agent.log"
        file.write_text(config)
        flags = {
            "node-name": NODE,
            "socket-dir": folder,
            "http-listen": f"127.0.0.1:{port}",
            "control-socket": control,
            "pod-resources-socket": folder / "pods.sock.d",
            "config": file,
            "hami": "on",
            "kubernetes-events": "on",
            "driver": "on",
            "driver-root": work.folder / "driver",
        }
        counts = work.folder / "counts.json"
        command = [
            *("-m", "bench.counted_agent", str(counts), "run"),
            *(f"--{name}={value}" for name, value in flags.items()),
        ]
        # Ours, if this is a checkout that isn't installed.
        path = f"{work.environment['PYTHONPATH']}:{os.environ.get('PYTHONPATH', '')}"
        environment = {**work.environment, "KUBECONFIG": str(work.folder / "kubeconfig")}
        own = Workspace(work.folder, {**environment, "PYTHONPATH": path})
        with log.open("w") as stderr, own.process(command, log=stderr) as process:
            agent = SoakedAgent(process, counts, log)
            setters = work.folder / "driver" / SETTERS
            found = Rig(agent, kubelet, api, portal, file, control, setters, port)
            found.wait_until_ready()
            yield found


@contextmanager
def _kubelet(folder: Path, messages: ModuleType) -> Iterator[GrpcioKubelet]:
    with GrpcioKubelet(folder, messages) as kubelet:
        yield kubelet


@contextmanager
def _pod_resources(path: Path) -> Iterator[None]:
    """Answer that no pod holds anything: what was given is free again after a while."""
    method = grpc.unary_unary_rpc_method_handler(lambda request, context: b"")
    handler = grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": method})
    server = grpc.server(ThreadPoolExecutor(2), handlers=[handler])
    server.add_insecure_port(f"unix:{path}")
    server.start()
    try:
        yield
    finally:
        server.stop(grace=0).wait()
