"""Labels of a real Node: they come with the component, survive an edit, and go if asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.defaults import DEFAULT_COUNTS
from tests.unit.deploy.kustomizations import COMPONENTS, write_combination

from .mock import OVERLAYS, TIMEOUT_S, Mock

COUNT, PRODUCT = "nvidia.com/gpu.count", "nvidia.com/gpu.product"
NOTE = "hami-mock.io/labels"
EXPECTED = {
    COUNT: "2",
    PRODUCT: "Tesla-V100-SXM2-32GB-SHARED",
    "nvidia.com/gpu.present": "true",
    "feature.node.kubernetes.io/pci-10de.present": "true",
    "gpu": "on",
    "ascend": "on",
    "iluvatar.com/gpu.count": "2",
    "accelerator": "huawei-Ascend910",
}


def metadata(mock: Mock) -> Any:
    return mock.cluster.get("node", mock.cluster.node_name)["metadata"]


def wait_for_labels(mock: Mock, what: str, condition: Callable[[dict[str, str]], bool]) -> None:
    mock.cluster.wait(what, lambda: metadata(mock)["labels"], condition, timeout=TIMEOUT_S)


def label(mock: Mock, *words: str) -> None:
    mock.cluster.kubectl("label", "node", mock.cluster.node_name, "--overwrite", *words)


def test_labels_come_survive_an_edit_and_stay(mock: Mock) -> None:
    before = metadata(mock)["labels"]
    label(mock, "mlu=mine")
    try:
        with mock.applied(OVERLAYS / "labels"):
            wait_for_labels(mock, "the labels", lambda found: found.items() >= EXPECTED.items())
            # They came after the resources.
            mock.wait_for(DEFAULT_COUNTS)
            mock.wait_until_ready()
            label(mock, f"{COUNT}=80", f"{PRODUCT}-", "accelerator=none")
            wait_for_labels(mock, "the labels again", lambda now: now.items() >= EXPECTED.items())
            mock.ctl("lose", "nvidia/1")
            wait_for_labels(mock, "one card less", lambda found: found[COUNT] == "1")
            mock.ctl("return", "nvidia/1")
            wait_for_labels(mock, "both cards", lambda found: found[COUNT] == "2")
            assert metadata(mock)["labels"]["mlu"] == "mine", "it is somebody else's"
        assert metadata(mock)["labels"].items() >= EXPECTED.items(), "they stay if not asked"
    finally:
        ours = metadata(mock)["annotations"].get(NOTE, "").split(",")
        label(mock, *(f"{key}-" for key in (*filter(None, ours), "mlu")))
        mock.cluster.kubectl("annotate", "node", mock.cluster.node_name, f"{NOTE}-")
    assert metadata(mock)["labels"] == before


def test_labels_are_gone_after_a_clean_stop_if_asked(mock: Mock, tmp_path: Path) -> None:
    folder = write_combination(tmp_path, ["labels"])
    told = yaml.safe_load((folder / "kustomization.yaml").read_text())
    patch = yaml.safe_load((COMPONENTS["labels"] / "daemonset.yaml").read_text())
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    container["env"] = [{"name": "HAMI_MOCK_LABELS_REMOVE", "value": "on"}]
    (folder / "remove.yaml").write_text(yaml.safe_dump(patch))
    told["patches"] = [{"path": "remove.yaml"}]
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(told))
    before = metadata(mock)["labels"]
    with mock.applied(folder):
        wait_for_labels(mock, "the labels", lambda found: found.items() >= EXPECTED.items())
        mock.wait_until_ready()
    assert metadata(mock)["labels"] == before
    assert NOTE not in metadata(mock)["annotations"]
