"""Metrics of all nodes at once: what each card shows, and whose it is."""

from collections import defaultdict
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.metrics import FleetMetrics
from hami_mock.fleet.readings import Readings
from hami_mock.node.pods import Pod
from hami_mock.settings.settings import load_pools
from hami_mock.sources.load import LoadSource
from hami_mock.views.deviceplugin.counters import Histogram
from hami_mock.views.exporters.pages import DcgmPage
from hami_mock.views.http.messages import Pieces, answer_to
from tests.unit.builders import config_file
from tests.unit.views.hami.rig import segment

GPU = "nvidia.com/gpu"
POOLS = """
hami: true
pools:
  - {name: a, nodes: 3, nvidia: {cards: 2, model: A100-SXM4-80GB}}
  - {name: m, nodes: 2, nvidia: {cards: 1}, mlu: {cards: 2}}
"""


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Rig:
    def __init__(self, folder: Path) -> None:
        self.fleet = Fleet("f", load_pools(config_file(folder, POOLS)))
        self.clock = Clock()
        self.metrics = FleetMetrics(self.fleet, readings=Readings(self.fleet, clock=self.clock))

    def run(self, name: str, node: str, *cards: str, load: str = "80") -> None:
        """Let a pod of HAMi's hold a part of some cards, or a pod of nobody's some slots."""
        given = {"hami.io/vgpu-devices-allocated": segment(*cards)} if cards else {}
        annotations = {**given, "hami-mock.io/load": load}
        count = len(cards) or 1
        member = self.fleet.members[node]
        pod = Pod(
            "default",
            name,
            f"uid-{name}",
            annotations,
            (),
            ("c",),
            self.clock.now,
            {"c": {GPU: count}},
        )
        member.pods = {**(member.pods or {}), ("default", name): pod}

    def end(self, name: str, node: str) -> None:
        member = self.fleet.members[node]
        pods = {key: pod for key, pod in (member.pods or {}).items() if key[1] != name}
        member.pods = pods or None

    def cards(self, node: str) -> list[str]:
        return [card.uuid for card in self.fleet.state(self.fleet.members[node]).node.cards]

    def scrape(self) -> dict[str, Metric]:
        text = b"".join(self.metrics.everything()).decode()
        families: dict[str, Metric] = {}
        for family in text_string_to_metric_families(text):
            assert family.name not in families, "all lines of a metric stand together"
            families[family.name] = family
        return families

    def values(self, name: str) -> dict[tuple[str, str], float]:
        """By the node and the card's number."""
        samples = self.scrape()[name].samples
        found = {(s.labels["Hostname"], s.labels["gpu"]): s.value for s in samples}
        assert len(found) == len(samples)
        return found


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_each_idle_card_shows_what_it_would_on_a_node_of_its_own(rig: Rig) -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for line in b"".join(rig.metrics.everything()).decode().splitlines():
        if line.startswith("DCGM"):
            found[line.partition('Hostname="')[2].partition('"')[0]].add(line)
    assert found.keys() == {"a-0", "a-1", "a-2", "m-0", "m-1"}
    for name, lines in found.items():
        member = rig.fleet.members[name]
        state = rig.fleet.state(member)
        settings = member.pool.settings
        LoadSource(state, lambda settings=settings: settings).advance(0.0)  # type: ignore[misc]
        page = DcgmPage(state, settings.driver_version).render().decode()
        expected = {line for line in page.splitlines() if line.startswith("DCGM")}
        # What it has used since it began depends on the moment.
        energy = "DCGM_FI_DEV_TOTAL_ENERGY"
        assert {x for x in lines if energy not in x} == {x for x in expected if energy not in x}


def test_a_pod_makes_its_card_busy_and_no_other(rig: Rig) -> None:
    first, second = rig.cards("a-1")[:2]
    rig.run("p1", "a-1", second)
    busy = rig.values("DCGM_FI_DEV_GPU_UTIL")
    # As much as it was assigned: 30 percent of the compute.
    assert {key: value for key, value in busy.items() if value} == {("a-1", "1"): 30}
    rows = rig.scrape()["DCGM_FI_DEV_GPU_UTIL"].samples
    pods = {row.labels["UUID"]: row.labels.get("pod") for row in rows}
    assert (pods[second], pods[first]) == ("p1", None)
    rig.end("p1", "a-1")
    assert not any(rig.values("DCGM_FI_DEV_GPU_UTIL").values())


def test_heat_and_energy_follow_the_load_and_never_run_back(rig: Rig) -> None:
    def energies() -> list[float]:
        found = rig.values("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")
        return [found["a-0", "0"], found["a-0", "1"]]

    rig.run("p1", "a-0", rig.cards("a-0")[0], load="100")
    before = energies()
    rig.clock.now += 300
    used, idle = energies()
    assert used > idle > before[1]
    temperatures = rig.values("DCGM_FI_DEV_GPU_TEMP")
    assert temperatures["a-0", "0"] > temperatures["a-0", "1"]
    rig.end("p1", "a-0")
    rig.clock.now += 3600
    assert energies()[0] - used == pytest.approx(energies()[1] - idle, rel=0.01)
    temperatures = rig.values("DCGM_FI_DEV_GPU_TEMP")
    assert temperatures["a-0", "0"] == temperatures["a-0", "1"]


def test_pods_without_an_assignment_have_cards_and_keep_them(rig: Rig) -> None:
    def held() -> dict[str, str]:
        rows = rig.scrape()["DCGM_FI_DEV_GPU_UTIL"].samples
        return {row.labels["pod"]: row.labels["gpu"] for row in rows if "pod" in row.labels}

    rig.run("p1", "a-2")
    rig.run("p2", "a-2")
    assert held() == {"p1": "0", "p2": "1"}
    rig.end("p1", "a-2")
    assert held() == {"p2": "1"}
    rig.run("p3", "a-2")
    assert held() == {"p2": "1", "p3": "0"}


def test_faults_show(rig: Rig) -> None:
    rig.fleet.act("fail", rig.fleet.find(["a-0:0"]), {"xid": 79})
    rig.fleet.act("lose", rig.fleet.find(["a-2:1"]))
    util = rig.values("DCGM_FI_DEV_GPU_UTIL")
    assert ("a-2", "1") not in util
    assert ("a-2", "0") in util
    assert rig.values("DCGM_FI_DEV_XID_ERRORS")["a-0", "0"] == 79


def test_other_makers_say_of_which_node_they_are(rig: Rig) -> None:
    rows = rig.scrape()["mlu_utilization"].samples
    assert {(row.labels["node"], row.labels["mlu"]) for row in rows} >= {("m-0", "0"), ("m-1", "1")}


def test_the_own_figures_of_the_fleet(rig: Rig) -> None:
    rig.run("p1", "a-1", rig.cards("a-1")[0])
    rig.fleet.members["a-1"].is_ready = True
    took = Histogram()
    took.observe(0.02)
    rig.metrics = FleetMetrics(rig.fleet, figures=lambda: {"writes": 7, "bind_seconds": took})
    found = {
        (sample.name.removeprefix("hami_mock_fleet_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(rig.metrics.own().decode())
        for sample in family.samples
    }
    assert (found["nodes", "a"], found["nodes_ready", "a"], found["pods", "a"]) == (3, 1, 1)
    assert (found["resources", "a", GPU], found["allocated", "a", GPU]) == (60, 1)
    assert (found["writes_total",], found["bind_seconds_count",]) == (7, 1)
    assert found["bind_seconds_bucket", "0.05"] == 1


def test_so_many_scrapes_at_once_and_no_more(rig: Rig) -> None:
    def scrape() -> Pieces:
        found = answer_to(b"GET /metrics HTTP/1.1\r\n\r\n", rig.metrics.routes)
        assert isinstance(found, Pieces)
        return found

    running = [scrape().make() for _ in range(4)]
    for each in running:
        next(each)
    with pytest.raises(RuntimeError, match="already"):
        scrape()
    running[0].close()
    scrape()
