"""GetPreferredAllocation: towards the cards that HAMi assigned, and never in the kubelet's way."""

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web

from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.hami.lock import NodeLock
from hami_mock.node.pods import Pod
from hami_mock.node.resources import Resource
from hami_mock.sources.pods import read_pod
from hami_mock.views.hami import allocator as module
from hami_mock.views.hami.allocator import Allocator
from tests.integration.fake_api_server import FakeApiServer, api_server
from tests.makers import BY_WORD
from tests.unit.builders import NODE
from tests.unit.views.hami.rig import cards_of, count_resource, pod, segment, state_with

LOCK = "hami.io/mutex.lock"
TO_ALLOCATE = "hami.io/vgpu-devices-to-allocate"
GPU = count_resource()
THREE = count_resource(cards=cards_of(GPU.vendor, 3))
A, B, C = (card.uuid for card in THREE.cards)

Ask = Callable[..., Awaitable[list[list[str]]]]
Scenario = Callable[[FakeApiServer, Ask], Awaitable[None]]


def run(
    folder: Path, scenario: Scenario, resource: Resource = GPU, seen: Sequence[Pod] = ()
) -> FakeApiServer:
    """Ask for cards; `seen` are pods that a watch has told of."""

    async def main() -> FakeApiServer:
        with anyio.fail_after(30):
            async with api_server(folder) as server, Kubernetes() as kubernetes:
                server.put("nodes", {"metadata": {"name": NODE, "annotations": {}}})
                state = state_with(resource)
                state.pods.update({(pod.namespace, pod.name): pod for pod in seen})
                allocator = Allocator(state, kubernetes)

                async def ask(*sizes: int) -> list[list[str]]:
                    return [[*cards] for cards in await allocator.cards_for(resource, sizes)]

                await scenario(server, ask)
                return server

    return anyio.run(main)


def lock(server: FakeApiServer, name: str) -> None:
    value = NodeLock(datetime.now(UTC), "default", name).encode()
    server.annotate("nodes", NODE, {LOCK: value})


def test_the_card_of_the_pod_that_is_being_bound(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, ask: Ask) -> None:
        server.put("pods", pod("p1", vgpu=segment(A), bind_time=100))
        server.put("pods", pod("p2", vgpu=segment(B), bind_time=200))
        assert await ask(1) == [[A]], "without a lock, who waits longest"
        lock(server, "p2")
        assert await ask(1) == [[B]]

    assert run(tmp_path, scenario).writes == [], "nothing is taken"


def test_containers_in_their_order_and_all_cards_of_each(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, ask: Ask) -> None:
        server.put("pods", pod(vgpu=f";{segment(B)}{segment(A, B)}"))
        assert await ask(1) == [[B]]
        assert await ask(1, 2) == [[B], [A, B]]
        assert await ask(2) == [[]], "no container of that size is next"

    run(tmp_path, scenario)


def with_containers(
    bound: dict[str, Any], init: dict[str, int], sidecars: dict[str, int], main: dict[str, int]
) -> dict[str, Any]:
    """A pod whose containers ask for so many devices each."""

    def made(asking: dict[str, int], **more: str) -> list[dict[str, Any]]:
        limits = {name: {"limits": {GPU.name: str(count)}} for name, count in asking.items()}
        return [{"name": name, "resources": each, **more} for name, each in limits.items()]

    inits = made(init) + made(sidecars, restartPolicy="Always")
    return {**bound, "spec": {**bound["spec"], "initContainers": inits, "containers": made(main)}}


@pytest.mark.parametrize(
    ("init", "sidecars", "main", "assigned", "expected"),
    [
        pytest.param({"i": 1}, {}, {"a": 1}, [(A,), (B,)], [B], id="what is passed on"),
        pytest.param({"i": 2}, {}, {"a": 1, "b": 1}, [(A, B), (C,), (B,)], [C, B], id="to two"),
        pytest.param({"i": 2}, {}, {"a": 1}, [(A, B), (C,)], [C, A], id="and what is left over"),
        pytest.param({"i": 1, "j": 1}, {}, {"a": 1}, [(A,), (B,), (C,)], [C], id="twice"),
        pytest.param({"i": 1}, {"s": 1}, {"a": 1}, [(A,), (B,), (C,)], [B], id="to a sidecar"),
        pytest.param({}, {"s": 1}, {"a": 1}, [(A,), (B,)], [A], id="what a sidecar keeps"),
        pytest.param({}, {}, {"a": 1, "b": 1}, [(A,), (B,)], [A], id="without init containers"),
    ],
)
def test_slots_are_of_the_card_of_whoever_has_them_longest(
    tmp_path: Path,
    *,
    init: dict[str, int],
    sidecars: dict[str, int],
    main: dict[str, int],
    assigned: list[tuple[str, ...]],
    expected: list[str],
) -> None:
    """The kubelet gives an init container's slots to those after it, before it asks for others."""

    async def scenario(server: FakeApiServer, ask: Ask) -> None:
        bound = pod(vgpu="".join(segment(*cards) for cards in assigned))
        server.put("pods", with_containers(bound, init, sidecars, main))
        assert await ask(len(assigned[0])) == [expected]
        # Once it has its own, the next is no init container any more.
        rest = ";" * (len(assigned) - 1) + segment(*assigned[-1])
        server.annotate("pods", "p1", {TO_ALLOCATE: rest}, "default")
        assert await ask(len(assigned[-1])) == [[*assigned[-1]]]

    run(tmp_path, scenario, THREE)


def known(name: str = "p1", **more: Any) -> Pod:
    return read_pod(pod(name, **more))


def test_an_api_server_that_is_silent_is_not_needed_if_the_pod_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PREFERENCE_SECONDS", 0.05)
    seen = [
        known("late", vgpu=segment(A), bind_time=200),
        known("early", vgpu=segment(B), bind_time=100),
        known("served", vgpu=";", bind_time=50),
        known("failed", vgpu=segment(A), bind_time=50, phase="Failed"),
        known("elsewhere", vgpu=segment(A), bind_time=50, node="another"),
        known("larger", vgpu=segment(A, B), bind_time=50),
    ]

    async def hang(_: FakeApiServer, __: web.Request) -> web.Response:
        await anyio.sleep_forever()
        raise AssertionError

    async def refused(server: FakeApiServer, ask: Ask) -> None:
        server.refuse = lambda _: 503
        assert await ask(1) == [[B]]

    async def silent(server: FakeApiServer, ask: Ask) -> None:
        assert await ask(1) == [[B]]

    run(tmp_path, refused, seen=seen)
    monkeypatch.setattr(FakeApiServer, "handle", hang)
    run(tmp_path, silent, seen=seen)


@pytest.mark.parametrize(
    "there",
    [
        [],
        [pod(vgpu="")],
        [pod(vgpu="GPU-x,NVIDIA,many,0:;")],
        [pod(vgpu=segment("GPU-nobody-has-this"))],
        [pod(vgpu=segment(B), phase="Running")],
        [pod(vgpu=segment(B), bind_phase="failed")],
        [pod(vgpu=segment(B), node="another")],
    ],
)
def test_with_nothing_to_go_by_any_card_will_do(
    tmp_path: Path, there: list[dict[str, Any]]
) -> None:
    async def scenario(server: FakeApiServer, ask: Ask) -> None:
        for each in there:
            server.put("pods", each)
        assert await ask(1) == [[]]

    run(tmp_path, scenario)


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
def test_a_refusal_is_no_error(tmp_path: Path, status: int) -> None:
    async def scenario(server: FakeApiServer, ask: Ask) -> None:
        server.put("pods", pod(vgpu=segment(B)))
        server.refuse, server.retry_after = lambda _: status, "30"
        assert await ask(1, 1) == [[], []]

    run(tmp_path, scenario)


@pytest.mark.parametrize("body", [b"", b"<html>", json.dumps({"items": 7}).encode()])
def test_nor_is_an_odd_answer(tmp_path: Path, body: bytes) -> None:
    async def scenario(server: FakeApiServer, ask: Ask) -> None:
        server.answer = lambda _: body
        assert await ask(1) == [[]]

    run(tmp_path, scenario)


def test_nor_is_a_mistake_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def trip(_: object) -> None:
        raise RuntimeError

    async def scenario(server: FakeApiServer, ask: Ask) -> None:
        server.put("pods", pod(vgpu=segment(B)))
        monkeypatch.setattr("hami_mock.views.hami.attempt.Attempt.find", trip)
        assert await ask(1) == [[]]

    run(tmp_path, scenario)


def test_a_server_that_says_nothing_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert module._PREFERENCE_SECONDS <= 1
    monkeypatch.setattr(module, "_PREFERENCE_SECONDS", 0.05)

    async def hang(_: FakeApiServer, __: web.Request) -> web.Response:
        await anyio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(FakeApiServer, "handle", hang)

    async def scenario(server: FakeApiServer, ask: Ask) -> None:
        with anyio.fail_after(3):
            assert await ask(1) == [[]]

    run(tmp_path, scenario)


def test_who_allocates_holds_nobody_up(tmp_path: Path) -> None:
    """The kubelet asks for one pod while another's Allocate waits for the API server."""

    async def main() -> None:
        with anyio.fail_after(30):
            async with api_server(tmp_path) as server, Kubernetes() as kubernetes:
                server.put("nodes", {"metadata": {"name": NODE, "annotations": {}}})
                server.put("pods", pod(vgpu=segment(B)))
                allocator = Allocator(state_with(GPU), kubernetes)
                async with allocator._one_at_a_time:
                    assert await allocator.cards_for(GPU, [1]) == [(B,)]

    anyio.run(main)


def test_cards_that_hami_only_numbers(tmp_path: Path) -> None:
    mlu = count_resource(BY_WORD["MLU"])

    async def scenario(server: FakeApiServer, ask: Ask) -> None:
        server.put("pods", pod(words={"cambricon-mlu": segment(f"{NODE}-cambricon-mlu-1")}))
        assert await ask(1) == [[mlu.cards[1].uuid]]

    run(tmp_path, scenario, mlu)
