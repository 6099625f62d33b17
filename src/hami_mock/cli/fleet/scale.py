"""`hami-mock fleet scale`: change how many nodes pools have."""

from hami_mock.cli.fleet.place import asked, with_fleet
from hami_mock.cli.output import show
from hami_mock.cli.parser import Parsed, Parser, reads
from hami_mock.errors import UsageError
from hami_mock.kit.values import Kind
from hami_mock.settings.pools import MOST_NODES


def _size(value: object) -> tuple[str, int]:
    pool, equals, number = str(value).partition("=")
    if not (pool and equals and number.isascii() and number.isdecimal() and len(number) < 9):
        raise ValueError("not POOL=NUMBER")
    if int(number) > MOST_NODES:
        raise ValueError("too many")
    return pool, int(number)


_SIZE = Kind(_size, f"POOL=NUMBER, with at most {MOST_NODES} nodes", metavar="POOL=NUMBER")


def parser() -> Parser:
    parser = Parser(
        "fleet scale",
        "change how many nodes pools have",
        usage=None,
        notes="Nodes without pods go first, the highest numbers before the others; pods on "
        "nodes that go are deleted. The number holds until the fleet is started again: then the "
        "file decides.",
        examples=("fleet scale a100=1200", "fleet scale a100=0 h100=50"),
    )
    parser.add("sizes", "a pool, and how many nodes it should have", nargs="+", **reads(_SIZE))
    return with_fleet(parser).add_output()


def run(parsed: Parsed) -> None:
    sizes = dict(parsed.sizes)
    if len(sizes) < len(parsed.sizes):
        raise UsageError("fleet scale: a pool is named twice")
    answer = asked(parsed, "scale", pools=sizes)
    show(answer, parsed.output, answer["summary"])
