"""`hami-mock top`: the node live in a terminal, from the running agent's control socket."""

from typing import Any

from hami_mock.cli.ctl.client import Conversation, ask
from hami_mock.cli.ctl.parser import with_common
from hami_mock.cli.live import draw, happenings, live_screen, window
from hami_mock.cli.output import show
from hami_mock.cli.parser import Parsed, Parser
from hami_mock.cli.top_screen import frame
from hami_mock.control.protocol import TOP, Request
from hami_mock.kit.terminal import WIDEST, width

_NOTES = (
    "It updates once a second, and at once when a card changes; q or Ctrl-C quits.\n\n"
    "A bar is green, yellow from 70 % on and red from 90 % on; a card's name is red while it is "
    "unhealthy or lost, and yellow while it is degraded. A pod has the same colour wherever it is "
    "shown. The page at --http-listen shows the same, with temperature and power over time.\n\n"
    "Without a terminal, or with -o json or -o yaml, it prints the node once and ends."
)


def parser() -> Parser:
    parser = Parser(
        "top",
        notes=_NOTES,
        examples=("top", "top --once", "top -o json", "kubectl exec -it POD -- hami-mock top"),
    )
    parser.add("--once", "print the node as it is now, and end", action="store_true")
    return with_common(parser)


def run(parsed: Parsed) -> None:
    """Raises StartError if there is no agent to be had, or it goes away."""
    if parsed.once or parsed.output != "table" or width() is None:
        snapshot = next(ask(parsed.control_socket, Request("snapshot")))
        show(snapshot, parsed.output, frame(snapshot, width() or WIDEST))
        return
    with Conversation(parsed.control_socket, Request(TOP)) as agent, live_screen() as screen:
        shown: Any = None
        for ready in happenings(screen, [agent]):
            for snapshot in agent.answers() if ready else ():
                shown = snapshot
            if shown is not None:
                draw(frame(shown, *window()))
