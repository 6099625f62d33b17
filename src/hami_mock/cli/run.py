"""`hami-mock run`: the agent itself."""

import asyncio
import ctypes
import gc
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio

from hami_mock.cli.flags import flag_values, options_parser
from hami_mock.cli.parser import Parsed, Parser
from hami_mock.errors import HamiMockError
from hami_mock.kit import logs
from hami_mock.kit.concurrency import innermost
from hami_mock.settings.settings import load

_START_SECONDS = 2.0
"""By then the kubelet has all lists, if it is there; to look meanwhile would hold them up."""


_M_MMAP_THRESHOLD = -3
_LARGE_BYTES = 128 * 1024
"""What is larger goes back to the kernel as soon as it is free; lists have megabytes. glibc begins
with this figure and raises it with the first list that it frees: the next ones then leave gaps."""


def parser() -> Parser:
    return options_parser(
        "run",
        examples=(
            "run --nvidia-cards 8 --nvidia-model A100-SXM4-80GB",
            "run --config /etc/hami-mock/config.yaml --node-name $NODE_NAME",
            "run --hami on",
            "run --scenario drill.yaml --seed 7",
        ),
    )


def run(parsed: Parsed) -> None:
    from hami_mock import agent

    flags = flag_values(parsed)
    settings = load(flags)
    logs.set_up(settings.log_level, settings.log_format, settings.warnings)
    run_async(agent.run, settings, flags)


def run_async(function: Callable[..., Awaitable[None]], *arguments: object) -> None:
    """Run, and take an error of ours out of the groups that task groups wrap it in."""

    with suppress(AttributeError):  # musl has no such thing, and needs none
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    # All that is loaded by now stays: nobody need look through it again and again.
    gc.freeze()
    gc.enable()

    async def run() -> None:
        asyncio.get_running_loop().call_later(_START_SECONDS, _collect_garbage)
        await function(*arguments)

    try:
        anyio.run(run)
    except BaseExceptionGroup as group:
        error = innermost(group)
        if isinstance(error, HamiMockError):
            raise error from None
        raise


def _collect_garbage() -> None:
    """Look once for what the imports left behind (`__main__` puts that off)."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
