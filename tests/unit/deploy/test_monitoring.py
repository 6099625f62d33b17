"""The dashboard, the rules and the scrape examples ask for what the exporters serve."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hami_mock.settings.options import BY_NAME
from hami_mock.vendors import VENDORS
from hami_mock.views.exporters import dcgm_extras, hami_monitor
from hami_mock.views.http.metrics import _METRICS
from tests.prometheus import expressions
from tests.prometheus.expressions import (
    DASHBOARD_12239,
    DASHBOARD_HAMI,
    SCHEDULER,
    metric_names,
    our_dashboard,
    our_expressions,
    our_variables,
    rules,
)

OWN = {
    f"hami_mock_{name}_total" if kind == "counter" else f"hami_mock_{name}"
    for name, (kind, *_) in _METRICS.items()
}
EXPORTED = {
    metric.name for vendor in VENDORS if vendor.exporter for metric in vendor.exporter().metrics
}
MONITORED = {metric.name for metric in (*hami_monitor.METRICS, *hami_monitor.LEGACY)}
SERVED = OWN | EXPORTED | MONITORED | {hami_monitor.BUILD, *dcgm_extras.NAMES}


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("a", {"a"}),
        ('sum by (x) (rate(a_total{b="c", d=~"e|f"}[5m])) / 1000', {"a_total"}),
        ("100 * a / b", {"a", "b"}),
        ("a offset 5m unless on (UUID) b", {"a", "b"}),
        ('{__name__=~"a|b", node="c"}', {"a", "b"}),
        ('label_replace(a, "x", "$1", "y", "(.*)") and on (x) group_left (z) b > 3', {"a", "b"}),
    ],
)
def test_names_are_found_in_expressions(expression: str, names: set[str]) -> None:
    assert metric_names(expression) == names


@pytest.mark.parametrize("expression", our_expressions())
def test_a_panel_asks_for_what_is_served(expression: str) -> None:
    assert metric_names(expression) - SERVED == set()
    assert metric_names(expression)


@pytest.mark.parametrize("query", our_variables().values())
def test_a_variable_asks_for_what_is_served(query: str) -> None:
    label_of = query.removeprefix("label_values(").rpartition(",")[0]
    assert metric_names(label_of) - SERVED == set()


@pytest.mark.parametrize(("alert", "expression"), rules().items())
def test_an_alert_asks_for_what_is_served(alert: str, expression: str) -> None:
    assert metric_names(expression) - SERVED - {"up"} == set(), alert


@pytest.mark.parametrize("expression", [*DASHBOARD_12239, *DASHBOARD_HAMI])
def test_other_peoples_dashboards_ask_for_what_is_served(expression: str) -> None:
    assert metric_names(expression) - SERVED - set(SCHEDULER) == set()


def test_there_are_as_many_panels_as_they_have() -> None:
    assert (len(DASHBOARD_12239), len(DASHBOARD_HAMI)) == (8, 17)


def test_the_dashboard_is_whole() -> None:
    dashboard = our_dashboard()
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    rows = [panel["title"] for panel in panels if panel["type"] == "row"]
    assert rows == ["Nodes", "Cards", "Pods", "Faults"]
    assert all(panel["title"] for panel in panels)
    places = [panel["gridPos"] for panel in panels]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    # No two panels lie upon each other.
    cells = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    names = {each["name"] for each in dashboard["templating"]["list"]}
    assert names == {"datasource", "node", "gpu", "namespace"}


def copies(rows: list[Any], source: str, target: str) -> dict[str, str]:
    return {row[target]: ",".join(row[source]) for row in rows}


def test_jobs_honor_labels_and_copy_those_of_pods() -> None:
    jobs = yaml.safe_load(expressions.SCRAPE_CONFIG.read_text())["scrape_configs"]
    documents = [*yaml.safe_load_all(expressions.SERVICE_MONITOR.read_text())]
    service, monitor = documents
    endpoints = monitor["spec"]["endpoints"]
    assert {job["honor_labels"] for job in jobs} == {True}
    assert {each["honorLabels"] for each in endpoints} == {True}
    expected = {f"exported_{name}": name for name in ("namespace", "pod", "container")}
    for job in jobs[1:3]:
        rows = job["metric_relabel_configs"]
        assert copies(rows, "source_labels", "target_label") == expected
    for endpoint in endpoints[1:3]:
        rows = endpoint["metricRelabelings"]
        assert copies(rows, "sourceLabels", "targetLabel") == expected
    assert [each["port"] for each in endpoints] == [p["name"] for p in service["spec"]["ports"]]
    assert service["metadata"]["labels"] == monitor["spec"]["selector"]["matchLabels"]


def test_the_ports_are_those_of_the_options() -> None:
    documents = [*yaml.safe_load_all(expressions.SERVICE_MONITOR.read_text())]
    ports = {each["name"]: each["port"] for each in documents[0]["spec"]["ports"]}
    assert f":{ports['agent']}" == BY_NAME["http-listen"].default
    assert f":{ports['dcgm']} " in BY_NAME["dcgm-listen"].help
    assert f":{ports['hami-monitor']} " in BY_NAME["hami-monitor-listen"].help
    jobs = yaml.safe_load(expressions.SCRAPE_CONFIG.read_text())["scrape_configs"]
    scraped = [rule["replacement"] for job in jobs for rule in job["relabel_configs"][1:2]]
    assert scraped == [f"$1:{port}" for port in ports.values()]


@pytest.mark.parametrize(("alert", "expression"), rules().items())
def test_every_alert_says_what_is_wrong(alert: str, expression: str) -> None:
    groups = yaml.safe_load(expressions.RULES.read_text())["groups"]
    (rule,) = (r for group in groups for r in group["rules"] if r["alert"] == alert)
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert "{{ $labels." in rule["annotations"]["summary"]
