"""`hami-mock fleet doctor`: explain what is wrong with the fleet, its API server or KWOK."""

import sys
from typing import Any

import anyio

from hami_mock.cli.fleet.place import asked, has_process, with_fleet
from hami_mock.cli.output import show
from hami_mock.cli.parser import Parsed, Parser
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.doctor import report
from hami_mock.doctor.finding import has_errors
from hami_mock.doctor.report import Examined
from hami_mock.errors import ClusterError, StartError
from hami_mock.fleet.examining import Facts, examine
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.looking import look
from hami_mock.settings.settings import load_pools

NOBODY_TO_ASK = 3

_NOTES = """\
It looks for nodes that are no longer ready because their leases have expired, for missing KWOK, \
for nodes that somebody else changes, for an API server that is slow or refuses writes, for \
kube-scheduler's sampling of nodes, and for HAMi's slow first pass. With FILE it compares each \
node with the file.

Exit codes: 0 no errors, 1 errors found, 2 wrong input, 3 no API server."""


def parser() -> Parser:
    parser = Parser(
        "fleet doctor",
        "explain what is wrong with the fleet, its API server or KWOK",
        usage="[FILE] [FLAGS]",
        notes=_NOTES,
        examples=("fleet doctor", "fleet doctor fleet.yaml -o json"),
    )
    parser.add("file", "the configuration file with the pools", metavar="FILE", nargs="?")
    return with_fleet(parser).add_output()


def run(parsed: Parsed) -> int:
    """Examine and print; return 1 if there are errors, 3 if there is nobody to ask, else 0."""
    fleet = Fleet(parsed.name, load_pools(parsed.file)) if parsed.file else None
    status = asked(parsed, "status") if has_process(parsed) else None
    try:
        facts = anyio.run(_look, parsed.name, fleet, status)
    except (StartError, ClusterError) as error:
        told = f"{error}; name the API server's kubeconfig in $KUBECONFIG"
        print(f"hami-mock: fleet doctor: {told}", file=sys.stderr)
        return NOBODY_TO_ASK
    examined = [Examined(f"Fleet {parsed.name}", examine(facts))]
    show(report.rows(examined), parsed.output, report.lines(examined))
    return int(any(has_errors(one.findings) for one in examined))


async def _look(name: str, fleet: Fleet | None, status: dict[str, Any] | None) -> Facts:
    async with Kubernetes() as kubernetes:
        return await look(kubernetes, name, fleet, status)
