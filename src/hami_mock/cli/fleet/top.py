"""`hami-mock fleet top`: the fleet live in a terminal, every node a sign."""

from typing import Any

from hami_mock.cli.fleet.place import asked, with_fleet
from hami_mock.cli.live import draw, happenings, live_screen, window
from hami_mock.cli.output import show
from hami_mock.cli.parser import Parsed, Parser
from hami_mock.fleet.screen import frame
from hami_mock.kit.terminal import WIDEST, width

_LOOK_SECONDS = 1.0
_NOTES = (
    "It updates once a second; q or Ctrl-C quits. The higher and darker a tile, the fuller the "
    "node: whichever of memory, slots and cores is fullest counts. If there are more nodes than "
    "fit, a tile stands for several, and shows the worst fault among them. The "
    "page at --http-listen of `hami-mock fleet up` shows the same, and each node's cards and "
    "pods.\n\n"
    "Without a terminal, or with -o json or -o yaml, it prints the fleet once and ends."
)


def parser() -> Parser:
    parser = Parser(
        "fleet top",
        "watch the fleet live in a terminal: every node a tile",
        notes=_NOTES,
        examples=("fleet top", "fleet top --once", "fleet top -o json"),
    )
    parser.add("--once", "print the fleet as it is now, and end", action="store_true")
    return with_fleet(parser).add_output()


def run(parsed: Parsed) -> None:
    """Raises StartError if no process of the fleet runs here, or it goes away."""
    if parsed.once or parsed.output != "table" or width() is None:
        snapshot = _snapshot(parsed)
        show(snapshot, parsed.output, frame(snapshot, width() or WIDEST))
        return
    first = _snapshot(parsed)
    with live_screen() as screen:
        draw(frame(first, *window()))
        for _ in happenings(screen, seconds=_LOOK_SECONDS):
            draw(frame(_snapshot(parsed), *window()))


def _snapshot(parsed: Parsed) -> Any:
    return asked(parsed, "snapshot")
