"""What happens to an agent in its life: allocations, faults, restarts, outages, viewers."""

import json
import socket
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from random import Random
from typing import Any

import grpc

from bench.soak_rig import NODE, Rig

LOCK = "hami.io/mutex.lock"
_SECONDS = 15.0
_GPU = "nvidia.com/gpu"


def config(cards: int, memory: int, others: int) -> str:
    """Return the agent's file: so many cards of NVIDIA's, and so many of Cambricon's."""
    own = {"nvidia": {"cards": cards, "memory": memory}, "mlu": {"cards": others, "memory": 1024}}
    return json.dumps({**own, "iluvatar": {"cards": 0}, "ascend": {"cards": 0}})


BASE = config(2, 2000, 1)


class Trouble:
    """Makes trouble by a seed, and can end all of it."""

    def __init__(self, rig: Rig, seed: int) -> None:
        self._rig = rig
        self._random = Random(seed)
        self._viewers: list[socket.socket] = []
        self._pods = 0
        self._outage_until = 0.0
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._kinds: dict[str, tuple[int, Callable[[], None]]] = {
            "allocate": (60, self._allocate),
            "allocate for HAMi": (10, self._allocate_for_hami),
            "prefer and pre-start": (10, self._prefer),
            "scrape": (20, self._scrape),
            "flip a card": (20, self._flip),
            "status": (8, self._status),
            "view": (6, self._view),
            "garbage": (6, self._garbage),
            "rewrite the file": (3, self._rewrite),
            "ctl set": (3, self._set),
            "reload": (3, self._reload),
            "scenario": (2, self._scenario),
            "API server away": (2, self._outage),
            "kubelet restarts": (1, self._restart_kubelet),
        }

    def one_of_each(self) -> None:
        for name in self._kinds:
            self._do(name)

    def next(self) -> None:
        weights = [weight for weight, _ in self._kinds.values()]
        self._do(self._random.choices(list(self._kinds), weights)[0])

    def end(self) -> None:
        """End all trouble, and wait until the node is as it was at first."""
        rig = self._rig
        self._end_outage()
        for viewer in self._viewers:
            viewer.close()
        self._viewers.clear()
        rig.config.write_text(BASE)
        rig.ask("stop")
        rig.ask("set", values={}, reset=True)
        rig.ask("recover", targets=["all"])
        rig.ask("reload")
        rig.wait_until_ready()
        # Faults that end by themselves, the last watch of the API server and the scrapes' sockets.
        time.sleep(3)
        rig.wait_until_ready()

    def _do(self, name: str) -> None:
        if self._outage_until and time.monotonic() > self._outage_until:
            self._end_outage()
        self._forget()
        try:
            self._kinds[name][1]()
        except (grpc.RpcError, grpc.FutureTimeoutError, OSError) as error:
            # The plugin of a resource may be on its way out, or its card unhealthy.
            code = error.code().name if isinstance(error, grpc.Call) else type(error).__name__
            self.refused[f"{name}: {code}"] += 1
        self.done[name] += 1

    def _forget(self) -> None:
        """Let neither the kubelet nor the API server grow: their memory isn't what is measured."""
        kubelet, api = self._rig.kubelet, self._rig.api
        del kubelet.events[:-200], kubelet.registrations[:-60]
        for registration in tuple(kubelet.registrations):
            del registration.lists[:-1]

        def trim() -> None:
            del api._events[:-100], api.requests[:-100], api.writes[:-100], api.created[:-100]

        self._rig.portal.call(trim)

    # The kubelet's side.

    def _call(self, resource: str, method: str, message: Any) -> bytes:
        endpoint = self._rig.kubelet.current(resource).endpoint
        target = f"unix:{self._rig.kubelet.folder / endpoint}"
        with grpc.insecure_channel(target) as channel:
            call = channel.unary_unary(f"/v1beta1.DevicePlugin/{method}")
            answer: bytes = call(message.SerializeToString(), timeout=_SECONDS)
            return answer

    def _ids(self, resource: str) -> list[str]:
        """Return the devices that are listed as healthy; none of a resource that is gone."""
        registration = self._rig.kubelet.current(resource)
        if registration.ended or not registration.lists:
            return []
        listed = self._rig.kubelet.devices(resource)
        return [device for device, health in listed.items() if health == "Healthy"]

    def _some(self, ids: list[str], most: int) -> list[str]:
        return self._random.sample(ids, min(len(ids), self._random.randint(1, most)))

    def _request(self, ids: list[str]) -> Any:
        messages = self._rig.kubelet.messages
        container = messages.ContainerAllocateRequest(device_ids=ids)
        return messages.AllocateRequest(container_requests=[container])

    def _allocate(self) -> None:
        names = sorted({each.resource for each in self._rig.kubelet.registrations} - {_GPU})
        resource = self._random.choice(names)
        if ids := self._some(self._ids(resource), 1000):
            self._call(resource, "Allocate", self._request(ids))

    def _allocate_for_hami(self) -> None:
        """Bind a pod as HAMi's scheduler does, and ask for its card as the kubelet does."""
        ids = self._ids(_GPU)
        if not ids:
            return
        self._pods += 1
        name, slot = f"p{self._pods}", self._random.choice(ids)
        assigned = f"{slot.rpartition('-')[0]},NVIDIA,500,10:;"
        annotations = {
            "hami.io/vgpu-node": NODE,
            "hami.io/bind-phase": "allocating",
            "hami.io/bind-time": str(int(time.time())),
            "hami.io/vgpu-devices-to-allocate": assigned,
            "hami.io/vgpu-devices-allocated": assigned,
        }
        metadata = {"namespace": "default", "name": name, "uid": name, "annotations": annotations}
        pod = {"metadata": metadata, "spec": {"nodeName": NODE}, "status": {"phase": "Pending"}}
        portal, api = self._rig.portal, self._rig.api
        portal.call(api.put, "pods", pod)
        lock = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ},default,{name}"
        portal.call(lambda: api.annotate("nodes", NODE, {LOCK: lock}))
        try:
            self._call(_GPU, "Allocate", self._request([slot]))
        finally:
            portal.call(lambda: api.annotate("nodes", NODE, {LOCK: None}))
            portal.call(api.remove, "pods", name, "default")

    def _prefer(self) -> None:
        messages, ids = self._rig.kubelet.messages, self._ids(_GPU)
        if not ids:
            return
        wanted = messages.ContainerPreferredAllocationRequest(
            available_device_ids=ids, allocation_size=1
        )
        request = messages.PreferredAllocationRequest(container_requests=[wanted])
        self._call(_GPU, "GetPreferredAllocation", request)
        start = messages.PreStartContainerRequest(device_ids=self._some(ids, 2))
        self._call(_GPU, "PreStartContainer", start)

    def _restart_kubelet(self) -> None:
        self._rig.kubelet.restart()
        # Without the API server no agent of HAMi's is ready.
        self._end_outage()
        self._rig.wait_until_ready()

    # People and programs.

    def _scrape(self) -> None:
        self._rig.scrape(self._random.choice(("/metrics", "/metrics", "/readyz", "/nothing")))

    def _status(self) -> None:
        self._rig.ask(self._random.choice(("status", "events")))

    def _flip(self) -> None:
        verb = self._random.choice(("fail", "lose", "recover", "recover"))
        card = self._random.choice(("nvidia/0", "nvidia/1", "nvidia", "all"))
        more = {} if verb == "recover" else {"for": self._random.choice(("50ms", "500ms", "2s"))}
        self._rig.ask(verb, targets=[card], **more)

    def _view(self) -> None:
        """Open another view, and close one that was open."""
        viewer = socket.socket(socket.AF_UNIX)
        viewer.connect(str(self._rig.control))
        command = self._random.choice(("watch", "follow"))
        viewer.sendall(json.dumps({"command": command, "arguments": {}}).encode() + b"\n")
        self._viewers.append(viewer)
        if len(self._viewers) > 4:
            self._viewers.pop(self._random.randrange(4)).close()

    def _garbage(self) -> None:
        """Say to each socket what it can't understand."""
        data = self._random.randbytes(self._random.choice((1, 100, 100_000)))
        endpoint = self._rig.kubelet.registrations[-1].endpoint
        plugin = str(self._rig.kubelet.folder / endpoint)
        for family, address in (
            (socket.AF_INET, ("127.0.0.1", self._rig.port)),
            (socket.AF_UNIX, str(self._rig.control)),
            (socket.AF_UNIX, str(self._rig.setters)),
            (socket.AF_UNIX, plugin),
        ):
            with socket.socket(family) as connection, suppress(OSError):
                connection.settimeout(_SECONDS)
                connection.connect(address)
                connection.sendall(data)

    def _scenario(self) -> None:
        text = "steps: [{every: 200ms, times: 5, fail: nvidia, choose: 1, for: 100ms}]"
        self._rig.ask("play", text=text, name="soak", seed=self._random.randrange(1000))

    def _set(self) -> None:
        cards = str(self._random.randint(1, 3))
        self._rig.ask("set", values={"nvidia-cards": cards}, reset=self._random.random() < 0.5)

    def _rewrite(self) -> None:
        """Write another file, now and then one that is wrong."""
        text = config(
            self._random.randint(1, 3),
            self._random.choice((1000, 2000)),
            self._random.randint(0, 2),
        )
        self._rig.config.write_text(text if self._random.random() < 0.8 else text[:-9])

    def _reload(self) -> None:
        if self._random.random() < 0.5:
            self._rig.agent.reload()
        else:
            self._rig.ask("reload")

    # The API server.

    def _outage(self) -> None:
        """Let it refuse, forget or break off for a while."""
        self._outage_until = time.monotonic() + self._random.uniform(0.5, 3)
        status = self._random.choice((500, 503, 429, 403))

        def refuse(line: str) -> int | None:
            # Units whose Node nobody may write any more would become devices, and stay so for as
            # long as somebody holds one: the agent would be another one at the end.
            is_units = line in (f"get nodes {NODE}", f"patch nodes/status {NODE}")
            return None if status == 403 and is_units else status

        def begin() -> None:
            self._rig.api.refuse = refuse
            self._rig.api.end_watches(abrupt=status == 500)

        self._rig.portal.call(begin)

    def _end_outage(self) -> None:
        self._outage_until = 0.0

        def end() -> None:
            self._rig.api.refuse = lambda line: None

        self._rig.portal.call(end)
