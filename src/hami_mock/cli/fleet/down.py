"""`hami-mock fleet down`: delete exactly what the fleet has made."""

import sys
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from hami_mock.cli.fleet.place import asked, chosen_socket, has_process, with_fleet
from hami_mock.cli.fleet.up import check_name
from hami_mock.cli.output import show
from hami_mock.cli.parser import Parsed, Parser, reads
from hami_mock.cli.run import run_async
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.errors import StartError
from hami_mock.fleet.budget import Budget
from hami_mock.fleet.removal import Removal
from hami_mock.kit.terminal import bar
from hami_mock.kit.values import or_text, whole

_LIVE_SECONDS = 0.2
_END_SECONDS = 10.0


def parser() -> Parser:
    parser = Parser(
        "fleet down",
        "delete exactly what the fleet has created",
        notes="That is every Node and every ResourceSlice with the label hami-mock.io/fleet=NAME, "
        "whether or not the fleet's process is still running; if it runs here, it ends first. Pods "
        "that are bound to these nodes stay until Kubernetes' garbage collector finds them, or go "
        "too with --pods.",
        examples=("fleet down", "fleet down --name test --pods"),
    )
    parser.add("--pods", "delete the pods that are bound to its nodes too", action="store_true")
    text = "writes a second to the API server, at most; 0 for no limit [0]"
    parser.add("--writes", text, default=0, **reads(or_text(whole(0, 100_000))))
    return with_fleet(parser).add_output()


def run(parsed: Parsed) -> None:
    check_name(parsed.name)
    run_async(_down, parsed)


async def _down(parsed: Parsed) -> None:
    await _end_process(parsed)
    async with Kubernetes() as kubernetes:
        removal = Removal(kubernetes, parsed.name, Budget(parsed.writes), with_pods=parsed.pods)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_tell, removal)
            await removal.run()
            tasks.cancel_scope.cancel()
    gone: dict[str, Any] = {"fleet": parsed.name, **removal.gone}
    told = ", ".join(f"{count} {what}" for what, count in removal.gone.items())
    show(gone, parsed.output, [f"deleted: {told}"])
    if removal.others:
        raise StartError(
            f"{removal.others} nodes of the fleet {parsed.name!r} have come back: a `hami-mock "
            "fleet up` is still running somewhere else; stop it first"
        )


async def _end_process(parsed: Parsed) -> None:
    """End the process of the fleet, if it runs here: or it would create the nodes again."""
    if not has_process(parsed):
        return
    with suppress(StartError):  # it may end before we have its answer
        await anyio.to_thread.run_sync(partial(asked, parsed, "end"))
    with anyio.move_on_after(_END_SECONDS):
        while has_process(parsed):  # noqa: ASYNC110 - nobody tells that a process has ended
            await anyio.sleep(0.05)
        return
    path = chosen_socket(parsed)
    raise StartError(
        f"the fleet's process at {path} didn't stop when asked: stop it, then run this again"
    )


async def _tell(removal: Removal) -> None:
    """Show how far it is on a terminal."""
    while sys.stderr.isatty():
        done = removal.gone["nodes"]
        text = f"{bar(done / max(removal.found, 1))} {done} of {removal.found} nodes deleted"
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        await anyio.sleep(_LIVE_SECONDS)
