"""python -m tests.e2e.harness: a cluster to try things on, from a terminal."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from .cluster import Cluster
from .container_build import build_image
from .containerd_program import containerd_with_cdi
from .errors import HarnessError
from .feature_gates import dra_gates
from .kwok_program import kueue
from .prepare import prepare, prepare_fleet
from .progress import Progress
from .versions import DEFAULT, WORDS, KubernetesVersion, parse_version, parse_versions


def main() -> int:
    arguments = _parser().parse_args()
    # A `kill` ends the cluster in the same order as Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if arguments.command == "prepare":
            _prepare(arguments)
        elif arguments.command == "build-image":
            build_image(
                arguments.file,
                arguments.context,
                arguments.name,
                arguments.output,
                Progress(),
            )
        else:
            version = parse_version(arguments.kubernetes)
            gates = dra_gates(version) if arguments.dra_gates else {}
            _up(version, arguments.image, gates, containerd_with_cdi() if arguments.cdi else None)
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _prepare(arguments: argparse.Namespace) -> None:
    versions = parse_versions(arguments.kubernetes)
    if arguments.fleet:
        prepare_fleet(versions, Progress())
    else:
        prepare(versions, Progress())
    if arguments.cdi:
        containerd_with_cdi()
    if arguments.kueue:
        kueue()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.harness", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start a cluster and keep it until Ctrl-C")
    up.add_argument("--kubernetes", default=str(DEFAULT), metavar="1.X[.Y]")
    up.add_argument(
        "--image",
        type=Path,
        action="append",
        default=[],
        metavar="ARCHIVE",
        help="an image archive to load; may be repeated",
    )
    up.add_argument(
        "--dra-gates",
        action="store_true",
        help="turn on the feature gates that a DRA driver needs and the release has off",
    )
    fill = commands.add_parser("prepare", help="fill the cache: programs and base image")
    fill.add_argument(
        "--kubernetes",
        action="append",
        default=[],
        metavar="1.X[.Y]",
        help=f"may be repeated, or {', '.join(WORDS)}",
    )
    fill.add_argument("--fleet", action="store_true", help="only what a fleet's sandbox needs")
    fill.add_argument("--kueue", action="store_true", help="also compile Kueue")
    for command, what in ((up, "use"), (fill, "also compile")):
        command.add_argument("--cdi", action="store_true", help=f"{what} a containerd with CDI")
    build = commands.add_parser("build-image", help="build a Containerfile into an archive")
    build.add_argument("--file", type=Path, default=Path("Containerfile"))
    build.add_argument("--context", type=Path, default=Path())
    build.add_argument("--name", required=True)
    build.add_argument("--output", type=Path, required=True)
    return parser


def _up(
    version: KubernetesVersion,
    images: list[Path],
    gates: Mapping[str, bool],
    runtime: Path | None,
) -> None:
    progress = Progress()
    with Cluster.start(version, progress, feature_gates=gates, runtime=runtime) as cluster:
        for archive in images:
            with progress.step(f"load {archive}"):
                cluster.load_image(archive)
        command = shlex.join(cluster.kubectl_argv())
        print(f"The cluster is up until Ctrl-C (process {os.getpid()}). From another terminal:")
        print(f"  alias k='{command}'")
        print("  k get nodes", flush=True)
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
