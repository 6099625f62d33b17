"""The commands: each is a module of its own, loaded only when it is wanted."""

from importlib import import_module
from typing import Any

COMMANDS = {
    "run": "register the resources with the kubelet and keep them there (the default)",
    "plan": "show the cards and resources that a node would get; register nothing",
    "demo": "run the agent against an embedded kubelet; no cluster needed",
    "ctl": "inspect and change a running agent: status, fail, recover, set, events, …",
    "top": "watch the cards, the pods on them and the events, live in a terminal",
    "smi": "show the cards as their makers' own tools do: a table, a list, or chosen fields",
    "driver": "make or remove a driver root, on which NVML's clients see the cards",
    "doctor": "explain why HAMi or the kubelet would refuse a node or a pod",
    "fleet": "create thousands of nodes in a real API server, with KWOK: up, status, fail, …",
    "whatif": "show what fits on a fleet: which pods do, which don't and why, and what would help",
    "scenario": "check a scenario and show its timeline, without playing it",
    "init": "write a configuration file that lists every option in comments",
    "schema": "print the JSON Schema of a configuration or scenario file",
    "models": "list the card models",
    "completion": "print a script that completes commands in bash, zsh or fish",
    "version": "print the version",
}
HELP = ("-h", "--help", "-help", "help")


def load(command: str) -> Any:
    """Return the module of a command: `run` takes what its `parser` made of the words."""
    return import_module(f"hami_mock.cli.{command}")


def run(command: str, arguments: list[str]) -> int:
    """Run a command; return its exit code. Raises an error of ours."""
    if command == "ctl":
        from hami_mock.cli.ctl.client import main

        return main(arguments)
    if command == "fleet":
        from hami_mock.cli.fleet.dispatch import main as fleet

        return fleet(arguments)
    module = load(command)
    return module.run(module.parser().parse(arguments)) or 0
