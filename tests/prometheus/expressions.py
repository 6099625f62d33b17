"""What dashboards and rules ask Prometheus, and which metrics that takes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "dashboards" / "hami-mock.json"
RULES = ROOT / "examples" / "prometheus" / "alert-rules.yaml"
SCRAPE_CONFIG = ROOT / "examples" / "prometheus" / "scrape-config.yaml"
SERVICE_MONITOR = ROOT / "examples" / "prometheus" / "service-monitor.yaml"

# NVIDIA's dashboard 12239 for dcgm-exporter: its eight panels.
_CHOSEN = '{instance=~"$instance", gpu=~"$gpu"}'
DASHBOARD_12239 = (
    f"DCGM_FI_DEV_GPU_TEMP{_CHOSEN}",
    f"avg(DCGM_FI_DEV_GPU_TEMP{_CHOSEN})",
    f"DCGM_FI_DEV_POWER_USAGE{_CHOSEN}",
    f"sum(DCGM_FI_DEV_POWER_USAGE{_CHOSEN})",
    f"DCGM_FI_DEV_SM_CLOCK{_CHOSEN} * 1000000",
    f"DCGM_FI_DEV_GPU_UTIL{_CHOSEN}",
    f"DCGM_FI_DEV_FB_USED{_CHOSEN}",
    f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{_CHOSEN}",
)

# HAMi's own dashboard: what it asks of the scheduler, which isn't ours, and of the monitor.
SCHEDULER = (
    "hami_gpu_memory_limit_bytes",
    "hami_gpu_memory_allocated_bytes",
    "hami_gpu_shared_count",
    "hami_node_gpu_memory_allocated_ratio",
    "hami_gpu_core_allocated_ratio",
)
_NODE, _NAMESPACE = '{node=~"$node"}', '{namespace=~"$namespace"}'
_LIMIT, _ALLOCATED = (
    f"hami_gpu_memory_limit_bytes{_NODE}",
    f"hami_gpu_memory_allocated_bytes{_NODE}",
)
DASHBOARD_HAMI = (
    f"count({_LIMIT})",
    f"sum({_LIMIT})",
    f"sum({_ALLOCATED})",
    f"100 * sum({_ALLOCATED}) / sum({_LIMIT})",
    f"sum(hami_gpu_shared_count{_NODE})",
    f"hami_host_gpu_memory_used_bytes and on (device_uuid) {_LIMIT}",
    f"hami_host_gpu_utilization_ratio and on (device_uuid) {_LIMIT}",
    f"sum by (node) ({_ALLOCATED})",
    f"sum by (node) ({_LIMIT})",
    f"hami_node_gpu_memory_allocated_ratio{_NODE}",
    f"hami_gpu_core_allocated_ratio{_NODE}",
    f"hami_gpu_shared_count{_NODE}",
    f"hami_vgpu_memory_used_bytes{_NAMESPACE}",
    f"hami_vgpu_memory_limit_bytes{_NAMESPACE}",
    f"hami_container_device_utilization_ratio{_NAMESPACE}",
    f"100 * hami_vgpu_memory_used_bytes{_NAMESPACE} / hami_vgpu_memory_limit_bytes{_NAMESPACE}",
    f"topk(10, hami_vgpu_memory_used_bytes{_NAMESPACE})",
)


def our_dashboard() -> Any:
    return json.loads(DASHBOARD.read_text())


def our_expressions() -> list[str]:
    return [target["expr"] for panel in our_dashboard()["panels"] for target in _targets(panel)]


def _targets(panel: Any) -> list[Any]:
    found: list[Any] = panel.get("targets", [])
    return found


def our_variables() -> dict[str, str]:
    """Return the queries of our dashboard's variables, by their names."""
    variables = our_dashboard()["templating"]["list"]
    return {each["name"]: each["query"]["query"] for each in variables if each["type"] == "query"}


def rules() -> dict[str, str]:
    """Return the expressions of our alerts, by their names."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


_NAMES = re.compile(r'__name__=~"([^"]*)"')
_WORDS = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_NO_METRICS = {"and", "or", "unless", "offset", "by", "on", "without", "ignoring", "bool"}


def metric_names(expression: str) -> set[str]:
    """Return the metrics that an expression is about."""
    named = {name for found in _NAMES.findall(expression) for name in found.split("|")}
    plain = re.sub(r'"[^"]*"', '""', expression)
    plain = re.sub(r"\{[^}]*\}", " ", plain)
    plain = re.sub(r"\[[^\]]*\]", " ", plain)
    plain = re.sub(r"\b(by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)", " ", plain)
    plain = re.sub(r"\boffset\s+\w+", " ", plain)
    return named | set(_words(plain))


def _words(plain: str) -> Iterator[str]:
    for match in _WORDS.finditer(plain):
        is_function = plain[match.end() :].lstrip().startswith("(")
        if not is_function and match[0] not in _NO_METRICS:
            yield match[0]


def filled_in(expression: str) -> str:
    """Return a dashboard's expression as Grafana would send it, with all variables at All."""
    expression = expression.replace("$__rate_interval", "5s")
    return re.sub(r"\$(instance|gpu|node|namespace)\b", ".*", expression)
