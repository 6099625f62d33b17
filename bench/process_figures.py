"""Start time, memory and idle processor time of the agent."""

import time
from statistics import median

from bench.agent import RESOURCES, agent, bare_imports, milliseconds_per_tick
from bench.progress import say
from bench.report import Figure, Section
from bench.workspace import Workspace

_SETTLE_SECONDS = 2.0


def start_figures(work: Workspace, repeats: int) -> Section:
    """Measure the way from the start of the process to all first lists."""
    starts, imports = [], []
    # The first round fills the page cache and writes bytecode; it doesn't count.
    for number in range(repeats + 1):
        say(f"start: {number} of {repeats}")
        bare = bare_imports(work)
        with agent(work) as running:
            start = running.start_seconds
        if number:
            imports.append(bare * 1000)
            starts.append(start * 1000)
    ratios = [start / bare for start, bare in zip(starts, imports, strict=True)]
    return Section(
        f"Start: {RESOURCES} resources registered and listed, against bare imports",
        [
            Figure("all registered and listed, best", min(starts), "ms"),
            Figure("all registered and listed, median", median(starts), "ms"),
            Figure("bare imports, best", min(imports), "ms"),
            Figure("bare imports, median", median(imports), "ms"),
            Figure("best / best", min(starts) / min(imports), "x", 1.5),
            Figure("median of the pairs' ratios", median(ratios), "x", 1.5),
        ],
        notes=[f"{repeats} interleaved runs, from the start of the process on; HTTP is on."],
    )


def idle_figures(work: Workspace, seconds: float) -> Section:
    """Measure memory and processor time of an agent that has nothing to do."""
    with agent(work) as running:
        say("idle: settling")
        time.sleep(_SETTLE_SECONDS)
        idle_memory = running.resident_mb()
        ticks_before, ms_before = running.cpu_ticks(), running.cpu_ms()
        say(f"idle: {seconds:.0f} s of processor time")
        time.sleep(seconds)
        ticks, used_ms = running.cpu_ticks() - ticks_before, running.cpu_ms() - ms_before
        later_memory = running.resident_mb()
        running.scrape()
        scraped_memory = running.resident_mb()
    return Section(
        "Idle: default flags, registered and watched, HTTP on",
        [
            Figure("resident, never scraped", idle_memory, "MB", 45),
            Figure(f"resident, {seconds:.0f} s later", later_memory, "MB", 45),
            Figure("resident, after a scrape", scraped_memory, "MB", 45),
            Figure(f"processor time in {seconds:.0f} s", ticks, "ticks", 1),
            Figure("the same, counted by the scheduler", used_ms, "ms"),
        ],
        notes=[
            f"A tick is {milliseconds_per_tick():.0f} ms; 1 may be what was left over from the "
            "start."
        ],
    )
