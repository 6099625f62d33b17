import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hami_mock.cli.commands import run
from tests.unit.builders import problems_of
from tests.unit.doctor.patients import HANDSHAKE, node, pod


def main(arguments: list[str]) -> int:
    return run("doctor", arguments)


QUIET = {HANDSHAKE: "Requesting_"}


@pytest.fixture
def node_file(tmp_path: Path) -> str:
    path = tmp_path / "node.json"
    path.write_text(json.dumps(node(annotations=QUIET)))
    return str(path)


def write(folder: Path, document: dict[str, Any] | str) -> str:
    path = folder / "other"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(path)


def test_nothing_wrong_is_0(node_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-f", node_file]) == 0
    assert capsys.readouterr().out.endswith("\nNo problems found.\n")


def test_an_error_is_1(node_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ill = write(tmp_path, pod({"nvidia.com/gpumem": "1"}))
    assert main(["-f", node_file, "-f", ill]) == 1
    out = capsys.readouterr().out
    assert "Node n1\nok       NVIDIA" in out
    assert "Pod default/p1\nerror    container c0\n" in out


def test_a_warning_is_0(tmp_path: Path) -> None:
    assert main(["-f", write(tmp_path, node(annotations={HANDSHAKE: None}))]) == 0


@pytest.mark.parametrize(("output", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_scripts_get_rows(
    node_file: str, capsys: pytest.CaptureFixture[str], output: str, load: Any
) -> None:
    assert main(["-f", node_file, "-o", output]) == 0
    (row,) = load(capsys.readouterr().out)
    assert row["subject"] == "Node n1"
    assert row["severity"] == "ok"


def test_the_names_come_from_the_device_configuration(node_file: str, tmp_path: Path) -> None:
    config = write(tmp_path, "nvidia: {resourceCountName: x.com/gpu}")
    assert main(["-f", node_file, "--device-config-file", config]) == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["-f", "/nowhere"], "/nowhere: can't be read: No such file or directory"),
        (
            ["--device-config-file", "/nowhere"],
            "--device-config-file: '/nowhere' can't be read: No such file or directory",
        ),
        (["--pot", "x"], "--pot: there is no such flag; did you mean --pod?"),
    ],
)
def test_wrong_input_is_a_usage_error(arguments: list[str], problem: str) -> None:
    assert problem in problems_of(lambda: main(arguments))


def test_a_device_configuration_that_is_none(node_file: str, tmp_path: Path) -> None:
    bad = write(tmp_path, "nvidia: [")
    (problem,) = problems_of(lambda: main(["-f", node_file, "--device-config-file", bad]))
    assert problem.startswith(f"{bad}: not valid YAML")


def test_no_cluster_to_ask_is_3_and_a_plain_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["n1"]) == 3
    assert capsys.readouterr().err == (
        "hami-mock: doctor: no cluster found: this is not a pod, KUBECONFIG is not set, "
        "and there is no ~/.kube/config; set KUBECONFIG, or read files: kubectl get node NAME -o "
        "json | hami-mock doctor -f -\n"
    )


def test_an_api_server_that_is_away_is_3(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]\n"
        "users: [{name: u, user: {}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
    )
    monkeypatch.setenv("KUBECONFIG", str(config))
    assert main(["n1"]) == 3
    assert "doctor: can't get nodes n1" in capsys.readouterr().err


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    assert "hami-mock doctor --pod default/trainer-0" in capsys.readouterr().out


def test_the_cluster_is_asked_where_there_are_no_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from hami_mock.doctor import gathering
    from hami_mock.doctor.pod_object import PodObject

    async def asked(node_name: str | None, pod_name: str | None) -> gathering.Gathered:
        assert (node_name, pod_name) == ("n1", "default/p1")
        return gathering.Gathered([node(annotations=QUIET)], [PodObject.read(pod())], (), [])

    monkeypatch.setattr(gathering, "from_cluster", asked)
    assert main(["n1", "--pod", "default/p1"]) == 0
    assert "Pod default/p1\n\nNo problems found." in capsys.readouterr().out


def test_a_pods_node_is_its_own_or_the_only_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = node(), node(resources={"nvidia.com/gpu": "0"})
    other["metadata"]["name"] = "n2"
    short = "error    nvidia.com/gpu\n         the pod asks for 1; node n2 has 0 allocatable"
    for nodes, own, is_short in (
        ([one, other], "n2", True),
        ([one, other], "n1", False),
        ([other], "", True),
        ([one, other], "", False),
    ):
        items = [*nodes, pod(nodeName=own)]
        main(["-f", write(tmp_path, {"kind": "List", "items": items})])
        out = capsys.readouterr().out.partition("Pod default/p1")[2]
        assert (short in out) is is_short


@pytest.mark.parametrize(
    ("variables", "gates"),
    [
        ({"HAMI_MOCK_DRA": "hami", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}, {"n1": 1, "n2": 0}),
        ({"HAMI_MOCK_DRA": "hami"}, {"n1": 0}),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, {"n1": 0}),
    ],
)
def test_in_its_pod_the_agent_is_asked_for_gates(
    node_file: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variables: dict[str, str],
    gates: dict[str, int],
) -> None:
    for name in ("HAMI_MOCK_DRA", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for name, many in gates.items():
        status = {"node": name, "views": {"dra": {"d.io": {"gates_off": ["DRADeviceTaints"]}}}}
        monkeypatch.setattr("hami_mock.cli.doctor.ask", lambda *_, told=status: iter([told]))
        main(["-f", node_file, "-o", "json"])
        found = [row["where"] for row in json.loads(capsys.readouterr().out)]
        assert found.count("d.io") == many


def test_an_agent_that_does_not_answer_is_passed_over(
    node_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAMI_MOCK_DRA", "hami")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("HAMI_MOCK_CONTROL_SOCKET", str(tmp_path / "nobody.sock"))
    assert main(["-f", node_file]) == 0
