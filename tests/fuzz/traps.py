"""Targets that are broken on purpose: whoever fuzzes them must notice."""

import logging
import os

from tests.fuzz.target import Target, folder


def _hang(data: bytes) -> None:
    folder()
    while True:
        pass


def _die(data: bytes) -> None:
    os._exit(3)


def _be_greedy(data: bytes) -> None:
    bytearray(4 * 1024 * 1024 * 1024)


def _raise(data: bytes) -> None:
    raise KeyError("nothing")


def _log(data: bytes) -> None:
    logging.getLogger("trap").error("something is wrong")


TARGETS = tuple(
    Target(f"trap-{name}", run, (), [b"x"], is_guided=name != "hang")
    for name, run in {
        "hang": _hang,
        "die": _die,
        "greedy": _be_greedy,
        "raise": _raise,
        "log": _log,
    }.items()
)
