"""Play two hours, let a real Prometheus read them, and draw its answers: docs/pictures/*.svg."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from hami_mock.kit.plotting import Point
from tests.e2e.harness.commands import run
from tests.e2e.harness.errors import HarnessError
from tests.prometheus.program import prometheus
from tests.prometheus.server import Prometheus, running
from tools.pictures import afternoon
from tools.pictures.afternoon import BEGIN, HOT_CARD, MINUTE, SCRAPE_SECONDS, SECONDS, VISITS
from tools.pictures.charts import Line, Picture, Strip, draw

FOLDER = Path("docs/pictures")
_END = BEGIN + SECONDS
_SHARED_CARD = 1
_GIB = 2**30


class Recorded:
    """What Prometheus knows of the two hours."""

    def __init__(self, server: Prometheus) -> None:
        self._server = server

    def series(self, expression: str, label: str) -> dict[str, list[Point]]:
        """Return the points of all series, by one of their labels.

        Files have no marks for a series' end as scrapes do, so only fresh values count.
        """
        fresh = f"max by ({label}) (last_over_time({expression}[{SCRAPE_SECONDS - 1}s]))"
        rows = self._server.ask_range(fresh, BEGIN, _END, SCRAPE_SECONDS)
        if not rows:
            raise SystemExit(f"Prometheus has nothing for {fresh}")
        return {
            row["metric"][label]: [(float(time), float(value)) for time, value in row["values"]]
            for row in rows
        }

    def card(self, metric: str, card: int) -> list[Point]:
        return self.series(f'{metric}{{gpu="{card}"}}', "gpu")[str(card)]


def pictures(recorded: Recorded) -> Iterator[tuple[str, Picture]]:
    """Yield all pictures, by name."""
    yield "utilization", _cards(recorded, "GPU utilization", "DCGM_FI_DEV_GPU_UTIL", "%", 100)
    yield "power", _cards(recorded, "Power draw", "DCGM_FI_DEV_POWER_USAGE", "W", 700)
    yield "shared-card", _shared(recorded)
    yield "hot-card", _hot(recorded)


def _cards(recorded: Recorded, title: str, metric: str, unit: str, high: float) -> Picture:
    found = recorded.series(metric, "gpu")
    strips = [
        Strip(f"GPU {card}", f"{unit} · {_guests(int(card))}", [Line(card, points)], high=high)
        for card, points in sorted(found.items())
    ]
    return _picture(f"{title} of four H100s: {metric}", strips)


def _guests(card: int) -> str:
    return ", ".join(f"{visit.pod} ({visit.load})" for visit in VISITS if visit.card == card)


def _shared(recorded: Recorded) -> Picture:
    pods = [visit.pod for visit in VISITS if visit.card == _SHARED_CARD]
    chosen = f'{{pod=~"{"|".join(pods)}"}}'
    busy = recorded.series(f"hami_container_device_utilization_ratio{chosen}", "pod")
    memory = recorded.series(f"hami_vgpu_memory_used_bytes{chosen}", "pod")
    busy_whole = recorded.card("DCGM_FI_DEV_GPU_UTIL", _SHARED_CARD)
    memory_whole = recorded.card("DCGM_FI_DEV_FB_USED", _SHARED_CARD)
    in_gib = {pod: _scaled(points, 1 / _GIB) for pod, points in memory.items()}
    strips = [
        _stack("hami_container_device_utilization_ratio", "%", busy, busy_whole, "GPU_UTIL"),
        _stack(
            "hami_vgpu_memory_used_bytes", "GiB", in_gib, _scaled(memory_whole, 1 / 1024), "FB_USED"
        ),
    ]
    return _picture("Two pods on one card, in HAMi's names and in DCGM's", strips)


def _stack(
    title: str, unit: str, parts: dict[str, list[Point]], whole: list[Point], whole_name: str
) -> Strip:
    pods = [visit.pod for visit in VISITS if visit.pod in parts]  # the steady one at the bottom
    lines = [Line(pod, parts[pod], colour) for colour, pod in enumerate(pods)]
    return Strip(
        title, unit, [*lines, Line(f"DCGM's {whole_name}", whole, is_whole=True)], is_stacked=True
    )


def _scaled(points: list[Point], factor: float) -> list[Point]:
    return [(time, value * factor) for time, value in points]


def _hot(recorded: Recorded) -> Picture:
    shown = (
        ("DCGM_FI_DEV_GPU_TEMP", "°C", 1, 40.0, 100.0),
        ("DCGM_FI_DEV_SM_CLOCK", "MHz", 0, 0.0, 2000.0),
        ("DCGM_FI_DEV_POWER_USAGE", "W", 2, 0.0, 700.0),
    )
    strips = [
        Strip(metric, unit, [Line(metric, recorded.card(metric, HOT_CARD), colour)], low, high)
        for metric, unit, colour, low, high in shown
    ]
    marks: dict[float, str] = {
        BEGIN + afternoon.TROUBLE * MINUTE: "ctl degrade --reason thermal",
        BEGIN + afternoon.REPAIR * MINUTE: "ctl recover",
    }
    return _picture("A card without cooling", strips, marks)


def _picture(title: str, strips: list[Strip], marks: dict[float, str] | None = None) -> Picture:
    return Picture(title, strips, BEGIN, _END, marks or {})


def main() -> None:
    """Write the pictures."""
    with tempfile.TemporaryDirectory(prefix="hami-mock-pictures-") as name:
        folder = Path(name)
        try:
            program = prometheus()
        except HarnessError as error:
            raise SystemExit(str(error)) from error
        scrapes = folder / "scrapes.txt"
        scrapes.write_text("\n".join(afternoon.lines()) + "\n")
        load = ("tsdb", "create-blocks-from", "openmetrics")
        run([program.with_name("promtool"), *load, scrapes, folder / "data"])
        with running(program, folder, {}) as server:
            server.wait("Prometheus has begun", lambda: server.ask("vector(1)"))
            drawn = {
                each: draw(shown, SCRAPE_SECONDS) for each, shown in pictures(Recorded(server))
            }
    FOLDER.mkdir(exist_ok=True)
    for each, text in drawn.items():
        path = FOLDER / f"{each}.svg"
        path.write_text(text, encoding="utf-8")
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
