"""The tables of docs/observability.md, made from what the exporters serve."""

import re
from collections.abc import Iterable, Iterator

from hami_mock import vendors
from hami_mock.vendors.exporter import Exporter, Metric, Per
from hami_mock.views.exporters.dcgm_extras import EXTRAS
from hami_mock.views.exporters.hami_monitor import BUILD, LEGACY, METRICS
from hami_mock.views.exporters.pages import VENDOR_OPTION

_MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_UNIT = re.compile(r" \((?:in )?([^()]+)\)\.$")
_UNITS_BY_WORDS = (
    (r"^Bytes .* a second", "bytes/s"),
    (r"^KB .* a second", "KB/s"),
    (r"^Part of", "0 to 1"),
    (r"^Seconds", "s"),
    (r"^Fan speed in turns per minute", "1/min"),
    (r"^Rows", "rows"),
    (r"^Pages", "pages"),
    (r"^Utilization", "%"),
    (r"emory .*(container|card)|^Memory of", "bytes"),
)
"""Units of metrics whose help doesn't have them in brackets."""
_ROWS = {
    Per.CONTAINER: " A row for each container.",
    Per.SLICE: " A row for each container.",
    Per.INSTANCE: " A row for each instance.",
}
_MEMORY_PARTS = "assumed parts of the container's memory"
_SOURCES = {
    "zero": "always 0",
    "one": "always 1",
    "busy": "the containers' loads together",
    "busy_exactly": "the containers' loads together",
    "memory_busy": "9 % of the utilization",
    "memory_used": "the containers' memory together",
    "memory_reserved": "the model (the driver's part)",
    "memory_free": "what is neither used nor reserved",
    "memory_not_used": "what is not used",
    "memory_total": "the card",
    "memory_percent": "the containers' memory together",
    "power": "idle, context and utilization",
    "power_limit": "the model",
    "energy": "integral of power since the agent began",
    "temperature": "power, with inertia; thermal faults",
    "memory_temperature": "as the chip's, some degrees more",
    "fan_turns": "temperature",
    "sm_clock": "held or not, power limit, faults",
    "memory_clock": "the model, and whether the card is held",
    "tensor": "55 % of the utilization",
    "dram": "30 % of the utilization",
    "pcie_sent": "2 % of the bus, by utilization",
    "pcie_received": "6 % of the bus, by utilization",
    "nvlink_speed": "containers that hold several linked cards",
    "remapped_correctable": "Xid 92",
    "remapped_uncorrectable": "Xids 48, 63, 94, 95",
    "remap_failed": "Xid 64",
    "retired_correctable": "Xid 92",
    "retired_uncorrectable": "Xids 48, 63, 94, 95",
    "retirement_pending": "the same, until the card is mended",
    "is_healthy": "faults",
    "last_xid": "the last Xid of a fault",
    "container_busy": "the container's load",
    "container_memory": "the container's load",
    "container_memory_bytes": "the container's load",
    "container_memory_limit": "who holds what",
    "container_context": _MEMORY_PARTS,
    "container_module": _MEMORY_PARTS,
    "container_buffer": _MEMORY_PARTS,
    "container_idle": "when its load was last above 0",
}
"""Where a value comes from. One without a sentence here stops `make references`."""
_EXTRA_SOURCES = {
    "DCGM_EXP_CLOCK_EVENTS_COUNT": "clocks held down, in samples of the last 5 minutes",
    "DCGM_EXP_XID_ERRORS_COUNT": "Xids of faults in the last 5 minutes",
    "DCGM_EXP_GPU_HEALTH_STATUS": "faults, Xids and throttling",
    "DCGM_FI_DEV_FAN_SPEED": "temperature; only cards with a fan",
}


def with_tables(page: str) -> str:
    """Return a page with its tables made anew."""
    tables = {"dcgm": _dcgm(), "dcgm-extras": _extras(), "hami-monitor": _monitor()}
    tables |= {"hami-monitor-legacy": _legacy(), "vendors": _vendors()}
    return _MARKED.sub(lambda found: f"{found[1]}\n{tables[found[2]]}\n{found[3]}", page)


def _dcgm() -> str:
    (exporter,) = (each for _, each in _exporters() if each.option != VENDOR_OPTION)
    of_cards = [metric for metric in exporter.metrics if metric.per is Per.CARD]
    return _table(of_cards) + _labels(exporter)


def _extras() -> str:
    rows = [
        _row(name, kind, *_unit_and_text(text), _EXTRA_SOURCES[name])
        for name, text, kind, _ in EXTRAS
    ]
    return _joined(rows)


def _monitor() -> str:
    build = _row(BUILD, "gauge", "", "Always 1.", "the version of HAMi that is imitated")
    return _table(METRICS) + build + "\n"


def _legacy() -> str:
    return _table(LEGACY)


def _vendors() -> str:
    own = [(title, each) for title, each in _exporters() if each.option == VENDOR_OPTION]
    return "\n".join(
        f"#### {title}\n\nThe real one listens on port {each.port}.\n\n"
        f"{_table(each.metrics)}{_labels(each)}"
        for title, each in own
    )


def _exporters() -> Iterator[tuple[str, Exporter]]:
    """Yield each maker's exporter once: some makers have two kinds of cards."""
    seen = set()
    for vendor in vendors.VENDORS:
        if vendor.exporter and vendor.maker not in seen:
            seen.add(vendor.maker)
            yield vendor.title, vendor.exporter()


def _labels(exporter: Exporter) -> str:
    cards = ", ".join(f"`{name}`" for name, _ in exporter.card_labels)
    known = {name for name, _ in exporter.card_labels}
    parts = ", ".join(f"`{name}`" for name, _ in exporter.instance_labels if name not in known)
    holders = ", ".join(f"`{name}`" for name, _ in exporter.container_labels)
    return "".join(
        (
            f"\nLabels of all rows: {cards}.",
            f" Of an instance: {parts}." if parts else "",
            f" Of a card that one container alone holds: {holders}." if holders else "",
            "\n",
        )
    )


def _table(metrics: Iterable[Metric]) -> str:
    # One name can be there for several kinds of rows.
    return _joined(dict.fromkeys(map(_metric_row, metrics)))


def _joined(rows: Iterable[str]) -> str:
    head = "| metric | type | unit | | from |\n|---|---|---|---|---|\n"
    return head + "".join(f"{row}\n" for row in rows)


def _metric_row(metric: Metric) -> str:
    unit, text = _unit_and_text(metric.help)
    text += _ROWS.get(metric.per, "")
    if metric.live:
        text += f" Also as {', '.join(f'`{name}`' for name, *_ in metric.live)}."
    return _row(metric.name, metric.kind, unit, text, _SOURCES[metric.reads])


def _unit_and_text(text: str) -> tuple[str, str]:
    found = _UNIT.search(text)
    if not found:
        return next((unit for words, unit in _UNITS_BY_WORDS if re.search(words, text)), ""), text
    unit = found[1].replace("0-100", "%")
    return {"C": "°C"}.get(unit, unit), _UNIT.sub(".", text)


def _row(*cells: str) -> str:
    name, *others = cells
    return f"| `{name}` | {' | '.join(others)} |"
