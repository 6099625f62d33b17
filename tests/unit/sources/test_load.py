"""Loads and readings of a node whose containers come and go."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from hami_mock.faults.actions import Action, perform
from hami_mock.kit.broadcast import Broadcast
from hami_mock.kubelet.holder import Container, Holder
from hami_mock.node.cards import Card
from hami_mock.node.holders import Load
from hami_mock.node.pods import Pod
from hami_mock.node.readings import Reading, Throttle
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import Settings, load
from hami_mock.sources.load import LoadSource
from tests.unit.builders import NODE, laid_out, problems_of

GPU, MEMORY, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
MAIN: Container = ("default", "train-0", "main")
SIDE: Container = ("default", "train-0", "side")
OTHER: Container = ("team", "serve-1", "main")
FLAGS = {"mlu_cards": 0, "iluvatar_cards": 0, "ascend_cards": 0, "nvidia_split": 20}
BEGIN = 1_800_000_000.0
CONTEXT = 420


class Rig:
    def __init__(self, **flags: object) -> None:
        self.state = NodeState(laid_out(None, **(FLAGS | flags)))
        self.settings: Settings = load(
            {"node-name": NODE} | {n.replace("_", "-"): str(v) for n, v in flags.items()}
        )
        self.settings_changes = Broadcast()
        self.source = LoadSource(
            self.state, lambda: self.settings, lambda: BEGIN, self.settings_changes
        )
        self.first, self.second = self.state.node.cards[:2]

    def hold(self, held: Mapping[Container, Mapping[Card, Mapping[str, int]]]) -> None:
        """Let containers hold so many devices of resources, on cards."""
        taken: dict[tuple[str, str], int] = {}
        holders = []
        for container, cards in held.items():
            devices: dict[str, list[str]] = {}
            for card, amounts in cards.items():
                for name, count in amounts.items():
                    start = taken.get((card.uuid, name), 0)
                    ids = [*self.state.resources[name].devices.ids(card)][start : start + count]
                    taken[card.uuid, name] = start + count
                    devices.setdefault(name, []).extend(ids)
            holders.append(Holder(container, devices))
        self.state.holders.name(holders)

    def annotate(self, container: Container, **annotations: str) -> None:
        """Give a container's pod annotations: load is hami-mock.io/load."""
        names = {"load": "hami-mock.io/load", "run_ai": "run.ai/simulated-gpu-utilization"}
        found = {
            names.get(name, f"hami-mock.io/load.{name.removeprefix('load_')}"): text
            for name, text in annotations.items()
        }
        namespace, pod, _ = container
        self.state.pods[namespace, pod] = Pod(namespace, pod, uid="1", annotations=found)

    def load(self, container: Container = MAIN) -> Load:
        return self.state.loads[self.first.uuid, container]

    def reading(self, card: Card | None = None) -> Reading:
        return self.state.readings[(card or self.first).uuid]


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_node_that_nobody_uses(rig: Rig) -> None:
    told = rig.state.load_changes.next()
    rig.source.advance(1.0)
    assert told.is_set()
    assert rig.state.loads == {}
    assert rig.state.readings.keys() == rig.state.cards.keys()
    assert (rig.reading().busy, rig.reading().memory_used, rig.reading().energy) == (0, 0, 39_000)


def test_a_container_without_a_load_is_idle_and_holds_its_context(rig: Rig) -> None:
    rig.source.advance(1.0)
    bare = rig.reading()
    rig.hold({MAIN: {rig.first: {GPU: 1}}})
    rig.source.advance(1.0)
    assert rig.load() == Load(0, CONTEXT)
    assert rig.reading().power > bare.power
    assert rig.reading(rig.second).power == bare.power


def test_an_annotation_says_how_busy(rig: Rig) -> None:
    rig.hold({MAIN: {rig.first: {GPU: 1, MEMORY: 8000}}})
    rig.annotate(MAIN, load="80:memory=25")
    rig.source.advance(1.0)
    assert rig.load() == Load(80, 2000)
    reading = rig.reading()
    assert (reading.busy, reading.memory_used) == (80, 2000)
    assert reading.memory_used + reading.memory_reserved + reading.memory_free == rig.first.memory


def test_two_containers_of_a_pod_have_loads_of_their_own(rig: Rig) -> None:
    rig.hold({MAIN: {rig.first: {GPU: 1}}, SIDE: {rig.first: {GPU: 1}}})
    rig.annotate(MAIN, load="30", load_side="50", run_ai="99")
    rig.source.advance(1.0)
    assert [rig.load(each).busy for each in (MAIN, SIDE)] == [30, 50]
    assert rig.reading().busy == 80


def test_fake_gpu_operators_annotation_is_understood(rig: Rig) -> None:
    rig.hold({MAIN: {rig.first: {GPU: 1}}})
    rig.annotate(MAIN, run_ai="10-30")
    values = set()
    for _ in range(300):
        rig.source.advance(1.0)
        values.add(rig.reading().busy)
    assert values <= {*range(10, 31)}
    assert len(values) > 8


def test_a_container_on_several_cards_loads_each_and_their_links() -> None:
    rig = Rig()
    linked = tuple(replace(card, link="0.0") for card in rig.state.node.cards)
    rig.state.change(replace(rig.state.node, cards=linked))
    rig.hold({MAIN: {rig.first: {GPU: 1}, rig.second: {GPU: 1}}})
    rig.annotate(MAIN, load="70")
    rig.source.advance(1.0)
    rig.source.advance(1.0)
    assert [rig.reading(card).busy for card in (rig.first, rig.second)] == [70, 70]
    assert rig.reading().nvlink_bytes > 0
    rig.hold({MAIN: {rig.first: {GPU: 1}}})
    rig.source.advance(1.0)
    before = rig.reading().nvlink_bytes
    rig.source.advance(1.0)
    assert rig.reading().nvlink_bytes == before


def test_memory_and_compute_stay_within_what_the_container_may_have(rig: Rig) -> None:
    rig.hold(
        {MAIN: {rig.first: {GPU: 1, MEMORY: 3000, CORES: 30}}, OTHER: {rig.first: {MEMORY: 9}}}
    )
    rig.annotate(MAIN, load="90:memory=100")
    rig.source.advance(1.0)
    assert rig.load() == Load(30, 3000)
    assert rig.load(OTHER) == Load(0, 9)


def test_more_than_a_card_has_is_shared(rig: Rig) -> None:
    rig.hold({("default", f"p{i}", "main"): {rig.first: {GPU: 1}} for i in range(5)})
    rig.settings = load({"load": "80:memory=90"})
    rig.source.advance(1.0)
    loads = [*rig.state.loads.values()]
    assert [each.busy for each in loads] == [20] * 5
    reading = rig.reading()
    assert reading.busy == 100
    assert reading.memory_used == sum(each.memory for each in loads)
    assert reading.memory_free == 0
    assert Throttle.POWER_CAP in reading.throttles


def test_the_order_of_what_decides(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("time,utilization,name\n0,40,default/train-0\n")
    rig = Rig(load="20", load_trace=str(file))
    rig.hold({MAIN: {rig.first: {GPU: 1}}, OTHER: {rig.first: {GPU: 1}}})

    def busy() -> list[int]:
        rig.source.advance(6.0)
        return [load.busy for load in rig.state.loads.values()]

    async def read_trace() -> None:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                await tasks.start(rig.source.run)
                tasks.cancel_scope.cancel()

    assert busy() == [20, 20]
    anyio.run(read_trace)
    rig.hold({MAIN: {rig.first: {GPU: 1}}, OTHER: {rig.first: {GPU: 1}}})
    assert busy() == [40, 20]
    rig.annotate(MAIN, load="30")
    assert busy() == [30, 20]
    rig.annotate(MAIN, load="30", load_main="35")
    assert busy() == [35, 20]
    rig.source.set_rule("default/train-0", "10")
    assert busy() == [10, 20]
    rig.source.set_rule("nvidia/0", "5", frozenset({rig.first.uuid}))
    assert busy() == [5, 5]
    assert rig.source.status()["set"] == {"default/train-0": "10", "nvidia/0": "5"}
    assert rig.source.clear_rules(["nvidia/0"]) == ["nvidia/0"]
    assert busy() == [10, 20]
    assert problems_of(lambda: rig.source.clear_rules(["x"])) == (
        "load: nothing is set for 'x': it is for default/train-0",
    )
    rig.source.clear_rules()
    assert busy() == [35, 20]


def test_what_is_set_shows_at_once_and_begins_then(rig: Rig) -> None:
    rig.hold({MAIN: {rig.first: {GPU: 1}}})
    rig.source.advance(1000.0)
    rig.source.set_rule("default/*", "ramp:10-90:80s")
    assert (rig.load().busy, rig.reading().busy) == (10, 10)
    rig.source.advance(20.0)
    assert rig.reading().busy == 30
    rig.source.set_rule("default/*", "50")
    assert rig.reading().busy == 50


def test_an_odd_annotation_is_told_once_and_passed_over(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.hold({MAIN: {rig.first: {GPU: 1}}, SIDE: {rig.first: {GPU: 1}}})
    rig.annotate(MAIN, load="a lot\n", run_ai="15")
    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            rig.source.advance(1.0)
    assert [each.busy for each in rig.state.loads.values()] == [15, 15]
    (record,) = caplog.records
    text = record.getMessage()
    assert text.startswith("pod default/train-0: annotation hami-mock.io/load: 'a lot\\n' is not")
    assert "write a percentage (80)" in text
    assert text.isprintable()


def test_when_a_pod_is_gone_its_load_is_gone(rig: Rig) -> None:
    rig.hold({MAIN: {rig.first: {GPU: 1}}})
    rig.annotate(MAIN, load="80")
    rig.source.advance(1.0)
    rig.hold({})
    rig.source.advance(1.0)
    assert rig.state.loads == {}
    assert (rig.reading().busy, rig.reading().memory_used) == (0, 0)


def test_a_lost_card_shows_nothing(rig: Rig) -> None:
    rig.hold({MAIN: {rig.first: {GPU: 1}}})
    rig.settings = load({"load": "50"})
    rig.source.advance(60.0)
    energy = rig.reading().energy
    perform(Action("lose", ("nvidia/0",)), rig.state)
    rig.source.advance(1.0)
    assert rig.state.readings.keys() == {rig.second.uuid}
    assert rig.state.loads == {}
    perform(Action("return", ("nvidia/0",)), rig.state)
    rig.source.advance(1.0)
    assert rig.reading().energy > energy


def test_faults_show(rig: Rig) -> None:
    rig.hold({MAIN: {rig.first: {GPU: 1}}})
    rig.settings = load({"load": "50"})
    perform(Action("fail", ("nvidia/0",), {"xid": 48}), rig.state)
    perform(Action("fail", ("nvidia/0",), {"xid": 31}), rig.state)
    rig.source.advance(1.0)
    found = rig.reading()
    assert (found.ecc_errors, found.retired_uncorrectable, found.last_xid) == (1, 1, 31)
    perform(Action("fail", ("nvidia/0",), {"xid": 48}), rig.state)
    rig.source.advance(1.0)
    assert (rig.reading().ecc_errors, rig.reading().last_xid) == (2, 48)
    perform(Action("fail", ("nvidia/0",), {"xid": 79}), rig.state)
    rig.source.advance(1.0)
    assert (rig.reading().busy, rig.load().busy) == (0, 0)
    perform(Action("recover", ("nvidia/0",)), rig.state)
    perform(Action("degrade", ("nvidia/0",), {"reason": "thermal"}), rig.state)
    for _ in range(150):
        rig.source.advance(1.0)
    assert rig.reading().throttles == {Throttle.HARDWARE_THERMAL}
    assert rig.reading(rig.second).throttles == {Throttle.IDLE}


def test_fast_time_is_the_same_as_much_time() -> None:
    """Integrals agree within a percent, though steps are longer."""
    slow, fast = Rig(load="sine:20-80:10m"), Rig(load="sine:20-80:10m", time_factor=600)
    for rig in (slow, fast):
        rig.hold({MAIN: {rig.first: {GPU: 1}}})
    for _ in range(3600):
        slow.source.advance(1.0)
    for _ in range(6):
        fast.source.advance(1.0)
    assert fast.source.time == slow.source.time == BEGIN + 3600
    assert fast.reading().energy == pytest.approx(slow.reading().energy, rel=0.01)
    assert fast.reading().temperature == pytest.approx(slow.reading().temperature, abs=1.5)
    assert fast.reading().busy == slow.reading().busy


def test_the_same_seed_shows_the_same() -> None:
    def series(seed: int) -> list[float]:
        rig = Rig(load="0-100", seed=seed)
        rig.hold({MAIN: {rig.first: {GPU: 1}}})
        found = []
        for _ in range(50):
            rig.source.advance(10.0)
            found.append(rig.reading().busy)
        return found

    assert series(7) == series(7)
    assert series(7) != series(8)


def test_a_pod_that_began_before_the_agent_is_as_far_as_it_is(rig: Rig) -> None:
    rig.hold({MAIN: {rig.first: {GPU: 1}}})
    rig.annotate(MAIN, load="ramp:0-100:100s")
    pod = rig.state.pods["default", "train-0"]
    rig.state.pods["default", "train-0"] = replace(pod, started=BEGIN - 40)
    rig.source.advance(0.0)
    assert rig.reading().busy == 40
    rig.source.advance(20.0)
    assert rig.reading().busy == 60
    rig.state.pods["default", "train-0"] = replace(pod, uid="2", started=BEGIN)
    rig.source.advance(6.0)
    assert rig.reading().busy < 10


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "--load-trace: can't read '{file}': No such file or directory"),
        (b"a,b\n", "--load-trace {file}, line 1: the header 'a,b' isn't known"),
        (b"time,utilization\n0,\xff\n", "--load-trace {file}, line 1: 'utf-8' codec can't"),
    ],
)
def test_a_trace_that_cant_be_used_is_an_error_at_the_start(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    file = tmp_path / "t.csv"
    if content is not None:
        file.write_bytes(content)
    rig = Rig(load_trace=str(file))
    (line,) = problems_of(lambda: anyio.run(rig.source.run))
    assert line.startswith(problem.format(file=file))


def test_there_is_a_limit_to_what_is_set(rig: Rig) -> None:
    for number in range(1000):
        rig.source._chooser.rules[f"p{number}"] = None  # type: ignore[assignment]
    (line,) = problems_of(lambda: rig.source.set_rule("one/more", "5"))
    assert "clear some first" in line
