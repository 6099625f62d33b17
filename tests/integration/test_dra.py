"""The DRA driver against a kubelet made of grpcio and an API server made of aiohttp."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest

from hami_mock.cluster import kubernetes as kubernetes_module
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.faults.actions import Action, perform
from hami_mock.kit.concurrency import Backoff
from hami_mock.kubelet.holder import Holder
from hami_mock.node.state import NodeState
from hami_mock.vendors.dra import Profile
from hami_mock.views.dra import plugin as plugin_module
from hami_mock.views.dra import publisher as publisher_module
from hami_mock.views.dra.view import DraView, Places
from tests.integration.dra_kubelet import DraKubelet
from tests.integration.fake_api_server import FakeApiServer, api_server
from tests.integration.waiting import until
from tests.unit.builders import NODE
from tests.unit.views.dra import rig
from tests.unit.views.dra.rig import DRIVER_VERSION, HAMI, NVIDIA, state_of

SLICES, CLAIMS = "resourceslices", "resourceclaims"
HAMI_DRIVER = "hami-core-gpu.project-hami.io"
HEALTHY, UNHEALTHY = 1, 2


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    def backoff() -> Backoff:
        return Backoff(first=0.01, longest=0.05)

    monkeypatch.setattr(plugin_module, "Backoff", backoff)
    monkeypatch.setattr(publisher_module, "Backoff", backoff)
    monkeypatch.setattr(kubernetes_module, "Backoff", backoff)


@dataclass
class Rig:
    server: FakeApiServer
    folder: Path
    kubelet: DraKubelet
    state: NodeState
    profile: Profile = HAMI

    @property
    def places(self) -> Places:
        return Places(
            str(self.folder / "plugins"), str(self.folder / "registry"), str(self.folder / "cdi")
        )

    @property
    def slices(self) -> dict[str, dict[str, Any]]:
        return {
            name: thing["spec"]
            for (resource, _, name), thing in self.server.objects.items()
            if resource == SLICES
        }

    @property
    def devices(self) -> dict[str, dict[str, Any]]:
        return {each["name"]: each for one in self.slices.values() for each in one["devices"]}

    @asynccontextmanager
    async def driver(self) -> AsyncIterator[DraView]:
        """A driver that has published its slices and is registered, until the end."""
        async with Kubernetes() as kubernetes, anyio.create_task_group() as tasks:
            view = DraView(self.state, kubernetes, [self.profile], DRIVER_VERSION, self.places)
            await tasks.start(view.run)
            await self.kubelet.register()
            await until(lambda: not view.not_ready)
            yield view
            tasks.cancel_scope.cancel()

    def claim(self, name: str, *results: dict[str, Any], uid: str = "") -> tuple[str, str]:
        """Let the scheduler allocate a claim; return its name and UID."""
        thing = rig.claim(*results, name=name, uid=uid or f"uid-{name}")
        self.server.put(CLAIMS, thing)
        return name, thing["metadata"]["uid"]

    def part(self, name: str, device: str, memory: str = "30Gi") -> tuple[str, str]:
        """Allocate a part of a card of HAMi's driver."""
        own: dict[str, Any] = {
            "consumedCapacity": {"memory": memory, "cores": "30"},
            "shareID": f"s-{name}",
        }
        pool = rig.pool_of(self.state, self.profile)
        return self.claim(name, rig.result(pool.driver, device, **own))


Scenario = Callable[[Rig], Awaitable[None]]


@pytest.fixture
def play(
    socket_folder: Path, tmp_path: Path, dra_messages: tuple[ModuleType, ...]
) -> Callable[..., None]:
    """Play a scenario with all of it."""
    (socket_folder / "registry").mkdir()

    def run(scenario: Scenario, state: NodeState | None = None, profile: Profile = HAMI) -> None:
        async def with_server() -> None:
            with anyio.fail_after(60):
                async with api_server(tmp_path) as server:
                    server.put("nodes", {"metadata": {"name": NODE, "uid": "node-uid"}})
                    kubelet = DraKubelet(socket_folder / "registry", dra_messages)
                    await scenario(
                        Rig(server, socket_folder, kubelet, state or state_of(), profile)
                    )

        anyio.run(with_server)

    return run


def test_the_kubelet_finds_the_driver_and_its_services(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver() as view:
            info = rig.kubelet.info
            assert (info.type, info.name) == ("DRAPlugin", HAMI_DRIVER)
            assert info.endpoint == str(rig.folder / "plugins" / HAMI_DRIVER / "dra.sock")
            assert [*info.supported_versions] == [
                "v1.DRAPlugin",
                "v1.DRAResourceHealth",
                "v1alpha1.DRAResourceHealth",
            ]
            assert view.status()[HAMI_DRIVER]["registered"]
            assert Path(info.endpoint).stat().st_mode & 0o777 == 0o600
        assert not [*rig.folder.rglob("*.sock")]

    play(scenario)


def test_a_driver_that_the_kubelet_refuses_isnt_ready(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver() as view:
            await rig.kubelet.register(error="no such version")
            assert view.not_ready == f"{HAMI_DRIVER}: refused: no such version"
            await rig.kubelet.register()
            assert not view.not_ready

    play(scenario)


def test_a_driver_waits_for_the_kubelets_folder_and_then_for_the_kubelet(
    play: Callable[..., None],
) -> None:
    async def scenario(rig: Rig) -> None:
        registry = rig.folder / "registry"
        registry.rmdir()
        async with Kubernetes() as kubernetes, anyio.create_task_group() as tasks:
            view = DraView(rig.state, kubernetes, [HAMI], DRIVER_VERSION, rig.places)
            await tasks.start(view.run)
            await until(lambda: view.not_ready == f"{HAMI_DRIVER}: there is no folder {registry}")
            registry.mkdir()
            waiting = f"{HAMI_DRIVER}: the kubelet hasn't registered it yet"
            await until(lambda: view.not_ready == waiting)
            await rig.kubelet.register()
            await until(lambda: not view.not_ready)
            tasks.cancel_scope.cancel()

    play(scenario)


def test_sockets_that_somebody_removed_are_made_again(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver() as view:
            (registration,) = (rig.folder / "registry").iterdir()
            registration.unlink()
            await rig.kubelet.register()
            assert view.status()[HAMI_DRIVER]["registrations"] == 2
            rig.part("a", "hami-gpu-0")
            assert not (await rig.kubelet.prepare(("a", "uid-a")))["uid-a"].error

    play(scenario)


def test_sockets_of_a_killed_agent_are_no_hindrance(play: Callable[..., None]) -> None:
    import socket

    async def scenario(rig: Rig) -> None:
        folder = rig.folder / "plugins" / HAMI_DRIVER
        folder.mkdir(parents=True)
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(folder / "dra.sock"))
        async with rig.driver():
            assert rig.kubelet.info.name == HAMI_DRIVER

    play(scenario)


def test_slices_are_written_once_and_go_with_the_driver(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver() as view:
            assert [*rig.devices] == ["hami-gpu-0", "hami-gpu-1"]
            ((_, thing),) = [
                (key, each) for key, each in rig.server.objects.items() if key[0] == SLICES
            ]
            assert thing["metadata"]["ownerReferences"] == [
                {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": "node-uid"}
            ]
            assert thing["spec"]["pool"] == {
                "name": NODE,
                "generation": 1,
                "resourceSliceCount": 1,
            }
            rig.state.changes.send()
            perform(Action("degrade", ("nvidia/0",)), rig.state)
            await anyio.sleep(0.1)
            assert view.status()[HAMI_DRIVER]["writes"] == 1
        assert not rig.slices

    play(scenario)


def test_health_reaches_the_slice(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver():
            perform(Action("fail", ("nvidia/1",), {"xid": 79}), rig.state)
            await rig.server.wait_until(lambda: "taints" in rig.devices["hami-gpu-1"])
            assert "taints" not in rig.devices["hami-gpu-0"]
            perform(Action("recover", ("nvidia/1",)), rig.state)
            await rig.server.wait_until(lambda: "taints" not in rig.devices["hami-gpu-1"])

    play(scenario)


def test_a_slice_that_was_deleted_or_edited_is_put_right(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver():
            (name,) = rig.slices
            rig.server.remove(SLICES, name)
            await rig.server.wait_until(lambda: bool(rig.slices))
            thing = json.loads(json.dumps(rig.server.objects[SLICES, "", name]))
            thing["spec"]["devices"] = thing["spec"]["devices"][:1]
            rig.server.put(SLICES, thing)
            await rig.server.wait_until(lambda: len(rig.devices) == 2)

    play(scenario)


def test_slices_come_back_with_a_node_that_is_made_anew(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver() as view:
            (name,) = rig.slices
            rig.server.remove("nodes", NODE)
            rig.server.remove(SLICES, name)  # what the node owns goes with it
            await until(lambda: "can't get nodes" in view.not_ready)
            # Of the node, nothing is watched here.
            rig.server.put("nodes", {"metadata": {"name": NODE, "uid": "another"}})
            await rig.server.wait_until(lambda: len(rig.slices) == 1)
            (owner,) = rig.server.objects[SLICES, "", name]["metadata"]["ownerReferences"]
            assert owner["uid"] == "another"
            await until(lambda: not view.not_ready)

    play(scenario)


def test_a_pool_of_many_slices_has_one_generation(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver():
            assert len(rig.slices) == 2
            perform(Action("fail", ("nvidia/0",)), rig.state)
            await rig.server.wait_until(lambda: "taints" in rig.devices["hami-gpu-0"])
            # A single slice is replaced in its generation; of a change of both, there is a new one.
            assert {each["pool"]["generation"] for each in rig.slices.values()} == {1}
            perform(Action("fail", ("nvidia/1", "nvidia/127")), rig.state)
            await rig.server.wait_until(
                lambda: {each["pool"]["generation"] for each in rig.slices.values()} == {2}
            )
            assert "taints" in rig.devices["hami-gpu-127"]

    play(scenario, state_of(cards=128))


def test_slices_of_an_agent_before_are_taken_over(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver():
            ((name, spec),) = rig.slices.items()
        kept = {"metadata": {"name": name}, "spec": spec}
        rig.server.put(SLICES, kept)
        rig.server.put(SLICES, {"metadata": {"name": "stale"}, "spec": spec})
        async with rig.driver() as view:
            assert [*rig.slices] == [name]
            assert rig.slices[name]["pool"]["resourceSliceCount"] == 1
            assert view.status()[HAMI_DRIVER]["slices"] == 1

    play(scenario)


def without_gates(server: FakeApiServer, *fields: str) -> None:
    """Let the API server drop fields, as one does whose gates are off."""
    put = server.put

    def dropping(resource: str, thing: dict[str, Any]) -> dict[str, Any]:
        for each in [thing.get("spec", {}), *thing.get("spec", {}).get("devices", [])]:
            for field in fields:
                each.pop(field, None)
        return put(resource, thing)

    server.put = dropping  # type: ignore[method-assign]


def test_a_gate_that_is_off_is_named(
    play: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(rig: Rig) -> None:
        without_gates(rig.server, "allowMultipleAllocations")
        async with rig.driver() as view:
            assert "DRAConsumableCapacity" in view.notice
            assert view.status()[HAMI_DRIVER]["gates_off"] == ["DRAConsumableCapacity"]
            assert "feature gate DRAConsumableCapacity" in caplog.text
            await anyio.sleep(0.1)
            assert view.status()[HAMI_DRIVER]["writes"] == 1

    play(scenario)


def test_without_counters_only_whole_cards_are_left(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        without_gates(rig.server, "sharedCounters", "consumesCounters")
        async with rig.driver() as view:
            assert [*rig.devices] == ["gpu-0", "gpu-1"]
            assert "DRAPartitionableDevices" in view.notice

    play(scenario, state_of(nvidia_mig=""), NVIDIA)


def test_without_taints_a_card_that_fails_isnt_offered(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        without_gates(rig.server, "taints")
        async with rig.driver():
            perform(Action("fail", ("nvidia/0",)), rig.state)
            await rig.server.wait_until(lambda: [*rig.devices] == ["hami-gpu-1"])
            perform(Action("recover", ("nvidia/0",)), rig.state)
            await rig.server.wait_until(lambda: len(rig.devices) == 2)

    play(scenario)


@pytest.mark.parametrize("verb", ["list", "create"])
def test_an_api_server_that_refuses_is_asked_again(play: Callable[..., None], verb: str) -> None:
    async def scenario(rig: Rig) -> None:
        rig.server.refuse = lambda line: 403 if line.startswith(verb) else None
        async with Kubernetes() as kubernetes, anyio.create_task_group() as tasks:
            view = DraView(rig.state, kubernetes, [HAMI], DRIVER_VERSION, rig.places)
            await tasks.start(view.run)
            await until(lambda: f"the verb {verb} for resourceslices" in view.not_ready)
            assert "the kubelet hasn't registered it yet; " in view.not_ready
            await rig.kubelet.register()
            rig.server.refuse = lambda _: None
            await rig.server.wait_until(lambda: bool(rig.slices))
            await until(lambda: not view.not_ready)
            tasks.cancel_scope.cancel()

    play(scenario)


def test_claims_are_prepared_held_and_given_back(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver() as view:
            name, uid = rig.part("a", "hami-gpu-1")
            (device,) = (await rig.kubelet.prepare((name, uid)))[uid].devices
            assert [*device.request_names] == ["gpu"]
            assert (device.pool_name, device.device_name) == (NODE, "hami-gpu-1")
            assert device.share_id == "s-a"
            assert [*device.cdi_device_ids] == [f"k8s.{HAMI_DRIVER}/claim={uid}-gpu"]
            (spec,) = (rig.folder / "cdi").iterdir()
            (edits,) = (each["containerEdits"] for each in json.loads(spec.read_text())["devices"])
            assert "CUDA_DEVICE_MEMORY_LIMIT_0=30720m" in edits["env"]
            assert view.status()[HAMI_DRIVER]["claims"] == {"default/a": ["hami-gpu-1"]}
            rig.state.holders.name([Holder(("default", "p", "main"), {HAMI_DRIVER: ["default/a"]})])
            card = rig.state.node.cards[1]
            ((container, memory, cores),) = (
                (each.container, each.memory, each.cores)
                for each in rig.state.holdings()[card.uuid]
            )
            assert container == ("default", "p", "main")
            assert (memory, cores) == (30720, 30)
            # Once more changes nothing, and isn't asked of the API server.
            rig.server.remove(CLAIMS, name, "default")
            again = (await rig.kubelet.prepare((name, uid)))[uid]
            assert again.devices[0] == device
            for _ in range(2):
                assert not (await rig.kubelet.unprepare((name, uid)))[uid].error
            assert not [*(rig.folder / "cdi").iterdir()]
            assert not rig.state.holdings()
            assert not view.status()[HAMI_DRIVER]["claims"]

    play(scenario)


def test_one_claim_that_fails_leaves_the_others_alone(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver() as view:
            good, bad = rig.part("good", "hami-gpu-0"), rig.part("bad", "hami-gpu-9")
            stale = rig.part("stale", "hami-gpu-0")[0], "another-uid"
            answers = await rig.kubelet.prepare(good, bad, stale, ("gone", "uid-gone"))
            assert not answers[good[1]].error
            assert answers[bad[1]].error == "there is no device hami-gpu-9 any more"
            assert "it was deleted and made again" in answers["another-uid"].error
            assert answers["uid-gone"].error == "there is no claim default/gone any more"
            assert view.status()[HAMI_DRIVER]["claim_errors"] == 3
            (figures,) = view.figures()
            assert (figures.driver, figures.is_registered) == (HAMI_DRIVER, True)
            assert (figures.devices, figures.slices, figures.slice_writes) == (2, 1, 1)
            assert (figures.claims, figures.claim_errors, figures.gates_off) == (1, 3, [])
            assert figures.prepare_seconds.number == 1
            odd = await rig.kubelet.prepare(("a", "../../etc/passwd"))
            assert "is not a claim's UID" in odd["../../etc/passwd"].error

    play(scenario)


def test_prepared_claims_survive_the_agent(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver():
            claim = rig.part("a", "hami-gpu-1")
            before = (await rig.kubelet.prepare(claim))[claim[1]]
        rig.server.remove(CLAIMS, "a", "default")
        rig.state = state_of()
        async with rig.driver() as view:
            assert view.status()[HAMI_DRIVER]["claims"] == {"default/a": ["hami-gpu-1"]}
            rig.state.holders.name([Holder(("default", "p", "main"), {HAMI_DRIVER: ["default/a"]})])
            assert [*rig.state.holdings()] == [rig.state.node.cards[1].uuid]
            assert (await rig.kubelet.prepare(claim))[claim[1]] == before
            assert not (await rig.kubelet.unprepare(claim))[claim[1]].error
        async with rig.driver() as view:
            assert not view.status()[HAMI_DRIVER]["claims"]

    play(scenario)


def test_a_claim_is_given_back_also_when_its_cards_went_with_the_agent_before(
    play: Callable[..., None],
) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver():
            claim = rig.part("a", "hami-gpu-1")
            await rig.kubelet.prepare(claim)
        rig.state = state_of(cards=0)
        async with rig.driver() as view:
            assert view.status()[HAMI_DRIVER]["claims"] == {"default/a": ["hami-gpu-1"]}
            assert not (await rig.kubelet.unprepare(claim))[claim[1]].error
        async with Kubernetes() as kubernetes, anyio.create_task_group() as tasks:
            view = DraView(rig.state, kubernetes, [HAMI], DRIVER_VERSION, rig.places)
            await tasks.start(view.run)
            assert not view.status()
            tasks.cancel_scope.cancel()

    play(scenario)


def test_an_api_server_that_is_away_is_the_claims_answer(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver():
            claim = rig.part("a", "hami-gpu-0")
            rig.server.refuse = lambda line: 503 if line.startswith("get") else None
            error = (await rig.kubelet.prepare(claim))[claim[1]].error
            assert error.startswith("can't get resourceclaims default/a")
            rig.server.refuse = lambda _: None
            assert not (await rig.kubelet.prepare(claim))[claim[1]].error

    play(scenario)


def test_a_folder_of_specs_that_cant_be_written_is_the_claims_answer(
    play: Callable[..., None],
) -> None:
    async def scenario(rig: Rig) -> None:
        (rig.folder / "cdi").write_text("")
        async with rig.driver() as view:
            claim = rig.part("a", "hami-gpu-0")
            assert "--cdi-dir" in (await rig.kubelet.prepare(claim))[claim[1]].error
            assert not view.status()[HAMI_DRIVER]["claims"]

    play(scenario)


def test_a_spec_that_a_restart_of_the_machine_removed_comes_back(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver():
            claim = rig.part("a", "hami-gpu-0")
            await rig.kubelet.prepare(claim)
            (spec,) = (rig.folder / "cdi").iterdir()
            before = spec.read_text()
            spec.unlink()
            await rig.kubelet.prepare(claim)
            assert spec.read_text() == before

    play(scenario)


def test_cards_that_come_and_go_are_published(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver():
            rig.state.change(state_of(cards=3).node)
            await rig.server.wait_until(lambda: len(rig.devices) == 3)
            rig.state.change(state_of(cards=0).node)
            await rig.server.wait_until(lambda: not rig.slices)
            rig.state.change(state_of(cards=1).node)
            await rig.server.wait_until(lambda: [*rig.devices] == ["hami-gpu-0"])

    play(scenario)


def test_each_maker_of_a_profile_has_a_driver_of_its_own(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        async with Kubernetes() as kubernetes, anyio.create_task_group() as tasks:
            view = DraView(rig.state, kubernetes, [HAMI], DRIVER_VERSION, rig.places)
            await tasks.start(view.run)
            assert [*view.status()] == [HAMI_DRIVER]
            rig.state.change(state_of(ascend_cards=1).node)
            await rig.server.wait_until(lambda: "npu-0-0" in rig.devices)
            sockets = {"ascend.project-hami.io-reg.sock", f"{HAMI_DRIVER}-reg.sock"}
            await until(
                lambda: {path.name for path in (rig.folder / "registry").iterdir()} == sockets
            )
            tasks.cancel_scope.cancel()

    play(scenario)


def test_two_pods_share_a_claim(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver():
            await rig.kubelet.prepare(rig.part("a", "hami-gpu-0"))
            pods = [("default", name, "main") for name in ("one", "two")]
            rig.state.holders.name(
                Holder(pod, {HAMI_DRIVER: ["default/a"], "x.com/y": ["1"]}) for pod in pods
            )
            (held,) = rig.state.holdings().values()
            assert [each.container for each in held] == pods

    play(scenario)


def test_an_instance_of_a_claim_is_there_for_all_who_show_the_card(
    play: Callable[..., None],
) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver():
            pool = rig_pool(rig)
            name = "gpu-0-mig-3g40gb-9-4"
            claim = rig.claim("a", {**result(pool, name)})
            assert not (await rig.kubelet.prepare(claim))[claim[1]].error
            rig.state.holders.name(
                [Holder(("default", "p", "main"), {"gpu.nvidia.com": ["default/a"]})]
            )
            (instance,) = rig.state.instances(rig.state.node.cards[0])
            assert (instance.profile, instance.start) == ("3g.40gb", 4)
            await rig.kubelet.unprepare(claim)
            assert not rig.state.instances(rig.state.node.cards[0])

    play(scenario, state_of(nvidia_mig=""), NVIDIA)


def rig_pool(of: Rig) -> Any:
    return rig.pool_of(of.state, of.profile)


def result(pool: Any, device: str) -> dict[str, Any]:
    return rig.result(pool.driver, device)


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_the_kubelet_hears_of_each_change_of_health(
    play: Callable[..., None], version: str
) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver(), rig.kubelet.watch_health(version) as lists:
            first = await anext(lists)
            assert first == {"hami-gpu-0": (HEALTHY, ""), "hami-gpu-1": (HEALTHY, "")}
            perform(Action("fail", ("nvidia/0",), {"reason": "no power"}), rig.state)
            then = await anext(lists)
            assert then["hami-gpu-0"] == (UNHEALTHY, "unhealthy: no power")
            assert then["hami-gpu-1"] == (HEALTHY, "")
            # What changes no health is no news.
            rig.state.changes.send()
            perform(Action("recover", ("nvidia/0",)), rig.state)
            assert await anext(lists) == first

    play(scenario)


def test_health_streams_end_with_the_driver(play: Callable[..., None]) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.driver():
            watching = rig.kubelet.watch_health()
            lists = await watching.__aenter__()
            await anext(lists)
        with pytest.raises(StopAsyncIteration):
            await anext(lists)
        await watching.__aexit__(None, None, None)

    play(scenario)
