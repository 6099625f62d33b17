import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hami_mock.doctor.gathering import Objects, name_of, read
from tests.unit.builders import problems_of
from tests.unit.doctor.patients import node, pod


def test_json_yaml_and_standard_input_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "node.json").write_text(json.dumps(node()))
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod()))
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(pod(name="p2"))))
    found = read([str(tmp_path / "node.json"), str(tmp_path / "pod.yaml"), "-"])
    assert [name_of(each) for each in found.nodes] == ["n1"]
    assert [each.full_name for each in found.pods] == ["default/p1", "default/p2"]


def test_lists_are_taken_apart() -> None:
    found = Objects()
    found.add({"kind": "List", "items": [node(), pod()]}, "x")
    bare = {key: value for key, value in node().items() if key != "kind"}
    found.add({"kind": "NodeList", "items": [bare]}, "y")
    assert (len(found.nodes), len(found.pods)) == (2, 1)


def test_lists_in_lists_in_lists_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    deep: dict[str, Any] = node()
    for _ in range(5000):
        deep = {"kind": "List", "items": [deep]}
    monkeypatch.setattr("hami_mock.doctor.gathering._load", lambda *_: deep)
    assert problems_of(lambda: read(["x"])) == ("x: is nested too deeply",)


def test_what_is_of_no_use_is_named(tmp_path: Path) -> None:
    texts = {"a": "{", "b": "[1]", "c": '{"kind": "Secret"}', "d": '{"kind":"List","items":[1]}'}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in (*texts, "missing")]
    problems = problems_of(lambda: read(paths))
    ends = [
        problem.removeprefix(f"{path}: ") for path, problem in zip(paths, problems, strict=True)
    ]
    assert ends[0].startswith("is neither JSON nor YAML: ")
    kinds = "Node, Pod, ResourceSlice, ResourceClaim, ResourceClaimTemplate, DeviceClass"
    assert ends[1] == f"must be a Kubernetes {kinds}, or a list of them"
    assert ends[2] == f"kind is 'Secret': it must be {kinds} or a list of them"
    assert ends[3] == f"items[0]: must be a Kubernetes {kinds}, or a list of them"
    assert ends[4] == "can't be read: No such file or directory"
