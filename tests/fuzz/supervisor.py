"""Starts the workers, gives them their work, and notices when an input is too much for one."""

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.target import CASES, Finding, Target
from tests.fuzz.worker import HEAD, SIZE

CPU_SECONDS = 10.0
"""What an input may take of a processor. Not of the clock: other programs run here too."""
WALL_SECONDS = 120.0
"""What it may take of the clock: whoever waits that long waits for ever."""

_SLICE_INPUTS = 5_000
_SLICE_SECONDS = 1.0
_LOOK_SECONDS = 0.5
_TICKS = os.sysconf("SC_CLK_TCK")
_ROOT = Path(__file__).parent.parent.parent


@dataclass
class Score:
    """What was done for one target."""

    target: Target
    inputs: int = 0
    seconds: float = 0.0
    kept: dict[int, int] = field(default_factory=dict)
    ways: dict[int, int] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    is_busy: int = 0
    """How many workers have it now."""


@dataclass(frozen=True)
class Goal:
    """When it is enough: after so many inputs and so many of each target, or after so long."""

    inputs: int
    least: int
    seconds: float | None


class Worker:
    """A process, what it works on, and the input that it has."""

    def __init__(self, number: int, seed: str, folder: Path) -> None:
        self.number = number
        self.score: Score | None = None
        self._slate = folder / f"input-{number}-{time.monotonic_ns()}"
        with self._slate.open("wb") as file:
            file.truncate(SIZE)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.worker", seed, str(self._slate)],
            cwd=_ROOT,
            # It is killed in the end: what it has made goes with the folder.
            env={**os.environ, "TMPDIR": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._input = 0
        self._since = (0.0, 0.0)

    def give(self, score: Score, inputs: int) -> None:
        self.score = score
        score.is_busy += 1
        assert self.process.stdin is not None
        self.process.stdin.write(f"{score.target.name} {inputs} {_SLICE_SECONDS}\n")
        self.process.stdin.flush()

    def take(self) -> dict[str, Any] | None:
        """Return what came of the work; None if the process is gone."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def current(self) -> tuple[int, bytes]:
        """Return the number of the input that runs, and the input."""
        content = self._slate.read_bytes()
        number, length = HEAD.unpack_from(content)
        return number, content[HEAD.size : HEAD.size + length]

    def is_stuck(self, cpu_seconds: float) -> str:
        """Say how an input has taken too long, if one has."""
        with self._slate.open("rb") as file:
            number, _ = HEAD.unpack(file.read(HEAD.size))
        now = (time.monotonic(), self._cpu_seconds())
        if number != self._input or not number:
            self._input, self._since = number, now
        wall, cpu = now[0] - self._since[0], now[1] - self._since[1]
        if cpu > cpu_seconds:
            return f"more than {cpu_seconds:g} s of a processor"
        return f"no end after {WALL_SECONDS:.0f} s" if wall > WALL_SECONDS else ""

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()
        self._slate.unlink(missing_ok=True)

    def _cpu_seconds(self) -> float:
        try:
            stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        except OSError:
            return 0.0
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / _TICKS


class Supervisor:
    """Keeps the workers busy with the target that had least, until it is enough."""

    def __init__(
        self,
        targets: tuple[Target, ...],
        goal: Goal,
        *,
        seed: int = 1,
        workers: int = 1,
        cases: Path = CASES,
        cpu_seconds: float = CPU_SECONDS,
    ) -> None:
        self.scores = [Score(target) for target in targets]
        self._cases = cases
        self._cpu_seconds = cpu_seconds
        self._seed = seed
        self._goal = goal
        self._workers = workers
        self._restarts = 0
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def inputs(self) -> int:
        return sum(score.inputs for score in self.scores)

    def run(self) -> Iterator[Score]:
        """Yield each score that has changed."""
        with tempfile.TemporaryDirectory(prefix="hm-fuzz-") as name, self._started(name) as ready:
            while ready.get_map():
                for key, _ in ready.select(_LOOK_SECONDS):
                    worker = key.data
                    done, result = worker.score, worker.take()
                    if result is None:
                        self._bury(worker, "the process ended", ready, Path(name))
                    else:
                        self._note(worker, result)
                        self._next(worker, ready)
                    if done is not None:
                        yield done
                for key in list(ready.get_map().values()):
                    if key.data.score is not None and (
                        reason := key.data.is_stuck(self._cpu_seconds)
                    ):
                        done = key.data.score
                        self._bury(key.data, reason, ready, Path(name))
                        yield done

    @contextmanager
    def _started(self, folder: str) -> Iterator[selectors.BaseSelector]:
        ready = selectors.DefaultSelector()
        try:
            for number in range(self._workers):
                self._start(number, ready, Path(folder))
            yield ready
        finally:
            for key in list(ready.get_map().values()):
                key.data.stop()
            ready.close()

    def _start(self, number: int, ready: selectors.BaseSelector, folder: Path) -> None:
        seed = f"{self._seed}/{number}/{self._restarts}"
        worker = Worker(number, seed, folder)
        ready.register(worker.process.stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]

    def _next(self, worker: Worker, ready: selectors.BaseSelector) -> None:
        score = self._needy()
        if score is None:
            ready.unregister(worker.process.stdout)  # type: ignore[arg-type]
            worker.stop()
        else:
            worker.give(score, _SLICE_INPUTS)

    def _needy(self) -> Score | None:
        """Return the target that had least time and needs more; None if it is enough."""
        goal = self._goal
        if goal.seconds is not None:
            rest = self.scores if self.seconds < goal.seconds else []
        elif self.inputs < goal.inputs:
            rest = self.scores
        else:
            rest = [score for score in self.scores if score.inputs < goal.least]
        return min(rest, key=lambda score: score.seconds + score.is_busy, default=None)

    def _note(self, worker: Worker, result: dict[str, Any]) -> None:
        score, worker.score = worker.score, None
        if score is None:
            return  # it has only said that it is there
        score.is_busy -= 1
        score.inputs += result["inputs"]
        score.seconds += result["seconds"]
        score.kept[worker.number] = result["kept"]
        score.ways[worker.number] = result["ways"]
        for found in result["findings"]:
            self._save(score, Finding(found["name"], found["text"]), bytes.fromhex(found["data"]))

    def _bury(
        self, worker: Worker, reason: str, ready: selectors.BaseSelector, folder: Path
    ) -> None:
        """Keep the input that a worker couldn't bear, and start another worker."""
        number, data = worker.current()
        ready.unregister(worker.process.stdout)  # type: ignore[arg-type]
        worker.stop()
        score = worker.score
        if score is None or not number:
            raise SystemExit("a worker ended before it had an input; its error is above")
        score.is_busy -= 1
        score.inputs += 1
        code = worker.process.returncode
        what = "hang" if "s of" in reason or "no end" in reason else f"died-{code}"
        self._save(score, Finding(f"{what}-{len(score.findings)}", f"{reason} ({code})"), data)
        self._restarts += 1
        self._start(worker.number, ready, folder)

    def _save(self, score: Score, found: Finding, data: bytes) -> None:
        if found.name in score.findings:
            return
        score.findings[found.name] = found
        path = self._cases / score.target.name / found.name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or len(data) < path.stat().st_size:
            path.write_bytes(data)
