"""A Prometheus that runs for a test, on this machine only."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.harness.commands import run
from tests.prometheus.expressions import RULES, SCRAPE_CONFIG

_PATIENCE_SECONDS = 60.0
NODE = "node-a"


@dataclass
class Prometheus:
    url: str
    log: Path

    def ask(self, expression: str) -> list[Any]:
        """Return what an expression comes to now: a list of series with a value each."""
        found: list[Any] = self._get("query", {"query": expression})["result"]
        return found

    def ask_range(self, expression: str, begin: float, end: float, step: float) -> list[Any]:
        """Return what an expression came to over time: a list of series with values."""
        when = {"start": str(begin), "end": str(end), "step": str(step)}
        found: list[Any] = self._get("query_range", {"query": expression, **when})["result"]
        return found

    def data(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Return the labels and values that an expression comes to, as soon as there are any."""
        rows = self.wait(expression, lambda: self.ask(expression))
        return [(row["metric"], float(row["value"][1])) for row in rows]

    def firing(self) -> set[str]:
        """Return the alerts that fire now."""
        return _alerts(self.ask('ALERTS{alertstate="firing"}'))

    def fired(self) -> set[str]:
        """Return the alerts that fire, or have fired: some do so for a few seconds only."""
        return _alerts(self.ask('last_over_time(ALERTS{alertstate="firing"}[5m])'))

    def wait_until_scraped(self, jobs: Iterable[str]) -> None:
        """Wait until each job is up, and all rules were evaluated since."""
        self.wait("all targets are scraped", lambda: self._health() == dict.fromkeys(jobs, "up"))
        now = datetime.now(UTC)
        self.wait("the rules are evaluated", lambda: all(moment > now for moment in self._looks()))

    def _health(self) -> dict[str, str]:
        found = self._get("targets", {})["activeTargets"]
        return {each["labels"]["job"]: each["health"] for each in found}

    def _looks(self) -> list[datetime]:
        groups = self._get("rules", {})["groups"]
        return [datetime.fromisoformat(group["lastEvaluation"]) for group in groups]

    def wait(self, what: str, is_so: Callable[[], Any]) -> Any:
        """Return what comes of a question as soon as it is something."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < end:
            try:
                answer = is_so()
            except urllib.error.URLError:  # It is starting.
                answer = None
            if answer:
                return answer
            # Prometheus tells nobody when it has scraped.
            time.sleep(0.2)
        raise AssertionError(
            f"{what}: not in {_PATIENCE_SECONDS:.0f} s; {self.log.read_text()[-2000:]}"
        )

    def _get(self, path: str, parameters: Mapping[str, str]) -> Any:
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=10) as response:
            return json.load(response)["data"]


def _alerts(rows: Iterable[Any]) -> set[str]:
    return {row["metric"]["alertname"] for row in rows}


@contextmanager
def running(program: Path, folder: Path, targets: Mapping[str, str]) -> Iterator[Prometheus]:
    """Run Prometheus with our example's jobs, but on these addresses, and with our alerts."""
    config = folder / "prometheus.yml"
    config.write_text(yaml.safe_dump(_config(targets, folder)))
    run([program.with_name("promtool"), "check", "config", config])
    port = _free_port()
    log = folder / "prometheus.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--web.console.templates=/nonexistent",
                "--web.console.libraries=/nonexistent",
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
    try:
        yield Prometheus(f"http://127.0.0.1:{port}", log)
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _config(targets: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """Return the configuration: our example's, with the places of this test."""
    jobs = {
        job["job_name"]: job for job in yaml.safe_load(SCRAPE_CONFIG.read_text())["scrape_configs"]
    }
    for name, address in targets.items():
        job = jobs.setdefault(name, {"job_name": name})
        job.pop("kubernetes_sd_configs", None)
        job.pop("relabel_configs", None)
        job["static_configs"] = [{"targets": [address], "labels": {"node": NODE}}]
    rules = yaml.safe_load(RULES.read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            # Nobody wants to wait here.
            rule.pop("for", None)
            rule["expr"] = rule["expr"].replace("offset 5m", "offset 5s")
    (folder / "rules.yml").write_text(yaml.safe_dump(rules))
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(folder / "rules.yml")],
        "scrape_configs": [jobs[name] for name in targets],
    }


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port
