"""One process of the fuzzing: python -m tests.fuzz.worker SEED FILE.

It obeys lines on stdin, `TARGET INPUTS SECONDS`, and answers each with a line of JSON. Before each
input it writes it to FILE, so that the supervisor has it when this process hangs or dies.
"""

import json
import mmap
import resource
import struct
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.guide import Guide
from tests.fuzz.mutator import LARGEST, Mutator
from tests.fuzz.table import BY_NAME
from tests.fuzz.target import Finding, Target, judge, watch_log

HEAD = struct.Struct("QQ")
"""The number of the input that runs, from 1 on (0: none does), and its length."""
SIZE = HEAD.size + LARGEST
MEMORY = 1024 * 1024 * 1024
"""What a worker may have on top of what it has when it starts."""

_TRACED = 8
"""One of so many inputs is traced."""
_MOST_KEPT = 2000
_SHRINKS, _SHRINK_SECONDS = 400, 5.0


class Slate:
    """The file that says which input runs."""

    def __init__(self, path: str) -> None:
        with Path(path).open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), SIZE)
        self._number = 0

    def write(self, data: bytes) -> None:
        self._number += 1
        self._map[HEAD.size : HEAD.size + len(data)] = data
        self._map[: HEAD.size] = HEAD.pack(self._number, len(data))

    def clear(self) -> None:
        self._map[: HEAD.size] = HEAD.pack(0, 0)


class Stream:
    """The inputs of one target, one after the other: the same for the same seed."""

    def __init__(self, target: Target, seed: str, slate: Slate) -> None:
        self.target = target
        self._random = Random(f"{seed}/{target.name}")
        self._mutator = Mutator(self._random, target.words)
        self._guide = Guide()
        self._kept = list(target.seeds)
        self._slate = slate
        self._number = 0
        self._known: set[str] = set()

    def run(self, inputs: int, seconds: float) -> dict[str, Any]:
        """Run so many inputs, or for so long; return what came of it."""
        began = time.monotonic()
        count = 0
        findings = []
        while count < inputs and time.monotonic() - began < seconds:
            count += 1
            data = self._next()
            found = self._try(data)
            if found is not None and found.name not in self._known:
                self._known.add(found.name)
                small = self._shrink(data, found)
                findings.append({"name": found.name, "text": found.text, "data": small.hex()})
        self._slate.clear()
        return {
            "inputs": count,
            "seconds": time.monotonic() - began,
            "kept": len(self._kept) - len(self.target.seeds),
            "ways": self._guide.ways,
            "findings": findings,
        }

    def _next(self) -> bytes:
        self._number += 1
        if self._number <= len(self.target.seeds):
            return self.target.seeds[self._number - 1]
        choose = self._random.choice
        return self._mutator.mutate(choose(self._kept), choose(self._kept))

    def _try(self, data: bytes) -> Finding | None:
        self._slate.write(data)
        if not self.target.is_guided or self._number % _TRACED:
            return judge(self.target, data)
        found, is_new = self._guide.follow(lambda: judge(self.target, data))
        # Large ones would make all that come of them slow.
        if is_new and len(data) < 16_384 and len(self._kept) < _MOST_KEPT:
            self._kept.append(data)
        return found

    def _shrink(self, data: bytes, found: Finding) -> bytes:
        """Take away what the finding doesn't need."""
        tries, size, end = 0, max(1, len(data) // 2), time.monotonic() + _SHRINK_SECONDS
        while size and tries < _SHRINKS:
            start = 0
            while start < len(data) and tries < _SHRINKS and time.monotonic() < end:
                tries += 1
                less = data[:start] + data[start + size :]
                self._slate.write(less)
                again = judge(self.target, less)
                if again is not None and again.name == found.name:
                    data = less
                else:
                    start += size
            size //= 2
        return data


def main() -> None:
    seed, path = sys.argv[1:]
    slate = Slate(path)
    streams: dict[str, Stream] = {}
    watch_log()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    print(json.dumps({}), flush=True)
    for line in sys.stdin:
        name, inputs, seconds = line.split()
        if name not in streams:
            streams[name] = Stream(BY_NAME[name], seed, slate)
        print(json.dumps(streams[name].run(int(inputs), float(seconds))), flush=True)


if __name__ == "__main__":
    main()
