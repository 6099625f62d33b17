"""`hami-mock doctor`: examine nodes and pods, and print what is wrong with them."""

import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import anyio

from hami_mock.cli.ctl.client import ask
from hami_mock.cli.output import show
from hami_mock.cli.parser import Parsed, Parser
from hami_mock.control.protocol import DEFAULT_SOCKET, Request
from hami_mock.doctor import gathering, report
from hami_mock.doctor.case import SCHEDULER, NodeCase, PodCase
from hami_mock.doctor.examine import examine_node, examine_pod
from hami_mock.doctor.finding import has_errors
from hami_mock.doctor.gathering import Gathered
from hami_mock.doctor.pod_object import PodObject
from hami_mock.doctor.report import Examined
from hami_mock.errors import ClusterError, StartError, UsageError
from hami_mock.kit.files import MOST_BYTES, read_bytes
from hami_mock.kit.text import cut
from hami_mock.settings.hami_config.device_config import DeviceConfig, parse

NOBODY_TO_ASK = 3
"""The exit code when there is no API server: neither well nor ill."""

_NOTES = (
    "The node and its pods are read from files, or from the API server: in a pod with its service "
    "account, elsewhere with $KUBECONFIG or ~/.kube/config. To judge a pod's claims, files need "
    "resourceslices, resourceclaims and deviceclasses too. Exit codes: 0 no errors, 1 errors "
    "found, 2 wrong input, 3 no API server: it can't be reached, or nothing says where it is."
)


def parser() -> Parser:
    parser = Parser(
        "doctor",
        usage="[NODE] [FLAGS]",
        notes=_NOTES,
        examples=(
            "doctor gpu-node-1",
            "doctor --pod default/trainer-0",
            "kubectl get node gpu-node-1 -o json | hami-mock doctor -f -",
            "doctor -f node.json -f pods.json --device-config-file device-config.yaml -o json",
        ),
    )
    text = "name of the node [$NODE_NAME, then the host name]"
    parser.add("node", text, nargs="?", metavar="NODE")
    text = "examine this pod, and the node that it is on or could be placed on"
    parser.add("--pod", text, metavar="NS/NAME")
    text = "read nodes, pods and objects of DRA from this file, written by `kubectl get -o json`; "
    text += "- for standard "
    parser.add("-f --file", f"{text}input; may be repeated", action="append", metavar="FILE")
    text = "read resource names from HAMi's device-config.yaml"
    parser.add("--device-config-file", text, metavar="FILE")
    text = f"name of HAMi's scheduler [{SCHEDULER}]"
    parser.add("--scheduler-name", text, default=SCHEDULER, metavar="NAME")
    return parser.add_output()


def run(parsed: Parsed) -> int:
    """Examine and print; return 1 if there are errors, 3 if there is nobody to ask, else 0."""
    config = _config(parsed.device_config_file)
    try:
        if parsed.file:
            found = gathering.from_files(parsed.file, parsed.node, parsed.pod)
        else:
            found = anyio.run(gathering.from_cluster, parsed.node, parsed.pod)
    except (StartError, ClusterError) as error:
        advice = (
            "set KUBECONFIG, or read files: kubectl get node NAME -o json | hami-mock doctor -f -"
        )
        print(f"hami-mock: doctor: {error}; {advice}", file=sys.stderr)
        return NOBODY_TO_ASK
    examined = list(_examine(found, parsed.scheduler_name, config))
    show(report.rows(examined), parsed.output, report.lines(examined))
    return int(any(has_errors(one.findings) for one in examined))


def _config(path: str | None) -> DeviceConfig | None:
    if not path:
        return None
    try:
        return parse(read_bytes(path, MOST_BYTES + 1).decode(), path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"--device-config-file: {path!r} can't be read: {reason}") from error


def _examine(found: Gathered, scheduler: str, config: DeviceConfig | None) -> Iterator[Examined]:
    now = datetime.now(UTC)
    for node in found.nodes:
        case = NodeCase(
            node, now, config, found.node_pods, found.refusal, found.dra, found.around,
            _gates_off(gathering.name_of(node)),
        )  # fmt: skip
        yield Examined(cut(f"Node {case.node.name}"), examine_node(case))
    nodes = [
        NodeCase(node, now, config, found.around, dra=found.dra)
        for node in found.candidates or found.nodes
    ]
    for pod in found.pods:
        here = _node_of(pod, nodes if found.nodes else ())
        elsewhere = () if here else nodes
        own = PodCase(pod, now, here, config, scheduler, elsewhere, found.dra)
        findings = examine_pod(own)
        yield Examined(cut(f"Pod {pod.full_name}"), findings)


def _gates_off(node: str) -> dict[str, list[str]]:
    """Ask the agent of this pod, if it is the node's, which gates its DRA drivers found off."""
    if not os.environ.get("HAMI_MOCK_DRA") or "KUBERNETES_SERVICE_HOST" not in os.environ:
        return {}
    path = os.environ.get("HAMI_MOCK_CONTROL_SOCKET") or DEFAULT_SOCKET
    try:
        told = next(ask(path, Request("status")))
    except (StartError, UsageError):
        return {}  # the slices show the most of it
    drivers = told["views"].get("dra", {}) if told["node"] == node else {}
    return {name: driver["gates_off"] for name, driver in drivers.items()}


def _node_of(pod: PodObject, nodes: Sequence[NodeCase]) -> NodeCase | None:
    """Return the node that a pod is for: its own, or the only one there is."""
    own = (case for case in nodes if case.node.name == pod.for_node)
    return next(own, nodes[0] if len(nodes) == 1 else None)
