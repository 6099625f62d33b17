"""A vendor is one object and its rows of the catalog: all rooms know an invented one."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.agents import AgentProcess
from tests.integration.grpcio_kubelet import GrpcioKubelet

PROGRAM = [sys.executable, "-m", "tests.integration.acme"]
ONLY_ACME = ("--vendors=acme", "--node-name=n1")
NAMES = {"acme.example/gpu", "acme.example/memory", "acme.example/cores"}


def run(*arguments: str, expected: int = 0) -> str:
    """Run the program to its end and return what it prints."""
    ran = subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == expected, ran.stderr
    return ran.stdout


def evaluate(code: str) -> Any:
    """Return the JSON that some lines print in a process that knows the vendor."""
    lines = f"import json, tests.integration.acme\n{code}"
    ran = subprocess.run(
        [sys.executable, "-c", lines], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


ANNOTATIONS = """
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from hami_mock.views.hami.registration import registration

settings = load({"node-name": "n1", "hami": "on", "vendors": "acme"})
print(json.dumps(dict(registration(NodeState(configured_node(settings, None))).annotations)))
"""

COMPANION = """
import sys
from hami_mock.settings.settings import load
from hami_mock.sources.annotated.derive import derive

derived = derive(%r, load({"node-name": "n1", "source": "hami"}))
print(json.dumps({r.name: r.count for r in derived.node.resources}))
"""


@pytest.fixture(scope="module")
def annotations() -> Any:
    return evaluate(ANNOTATIONS)


def node(annotations: Any, **counts: str) -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {"name": "n1", "annotations": annotations},
        "status": {
            "capacity": counts,
            "allocatable": counts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def test_plan_shows_its_resources() -> None:
    planned = json.loads(run("plan", *ONLY_ACME, "-o", "json"))
    assert {row["resource"]: row["count"] for row in planned["resources"]} == {
        "acme.example/gpu": 10,
        "acme.example/memory": 16,
        "acme.example/cores": 200,
    }


def test_it_has_flags_and_a_model() -> None:
    text = run("run", "--help")
    assert all(f"--acme-{name}" in text for name in ("cards", "model", "split", "memory-factor"))
    assert json.loads(run("models", "acme", "-o", "json"))[0]["product"] == "Acme One"


def test_hamis_device_configuration_names_its_resources(tmp_path: Path) -> None:
    file = tmp_path / "device-config.yaml"
    file.write_text("acme: {resourceCountName: a/gpu}\n")
    planned = json.loads(run("plan", *ONLY_ACME, f"--device-config-file={file}", "-o", "json"))
    assert planned["resources"][0]["resource"] == "a/gpu"


def test_the_device_plugin_lists_its_devices(kubelet: GrpcioKubelet, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*PROGRAM, "run", f"--socket-dir={kubelet.folder}", "--http-listen=", *ONLY_ACME],
        stderr=subprocess.PIPE,
        text=True,
    )
    agent = AgentProcess(process, tmp_path / "agent.log")
    try:
        kubelet.wait_for_lists(NAMES)
        slots = kubelet.devices("acme.example/gpu")
        assert len(slots) == 10
        assert all(slot.startswith("ACME-") for slot in slots)
        first = next(iter(slots))
        (answer,) = kubelet.plugin("acme.example/gpu").allocate([first])
        assert answer.envs["ACME_VISIBLE_DEVICES"] == first.rpartition("-")[0]
    finally:
        assert agent.stop() == 0
        process.communicate()


def test_hami_sees_its_cards(annotations: Any) -> None:
    (register,) = annotations
    assert register == "hami.io/node-acme-register"
    cards = json.loads(annotations[register])
    assert [(card["count"], card["devmem"], card["type"]) for card in cards] == [
        (5, 8192, "ACME"),
        (5, 8192, "ACME"),
    ]


def test_the_companion_registers_what_its_plugin_does_not(annotations: Any) -> None:
    real = node(annotations, **{"acme.example/gpu": "10"})
    assert evaluate(COMPANION % real) == {"acme.example/memory": 16, "acme.example/cores": 200}


def test_the_doctor_knows_what_is_wrong_with_it(annotations: Any, tmp_path: Path) -> None:
    file = tmp_path / "node.json"
    counts = {"acme.example/gpu": "10", "acme.example/memory": "16", "acme.example/cores": "200"}
    file.write_text(json.dumps(node(annotations, **counts)))
    assert "ACME: 2 cards with 16384 MiB" in run("doctor", "-f", str(file))
    file.write_text(json.dumps(node({}, **counts)))
    told = run("doctor", "-f", str(file), expected=1)
    assert "hami.io/node-acme-register" in told
