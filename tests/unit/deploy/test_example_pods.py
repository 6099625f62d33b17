"""The pods of examples/pods ask for what the agent really registers, and no more than it has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.defaults import DEFAULT_COUNTS
from tests.unit.deploy.kustomizations import COMPONENTS, OVERLAYS, variables
from tests.unit.deploy.program import ROOT, planned

PODS = ROOT / "examples" / "pods"
EVERY = sorted(PODS.rglob("*.yaml"))


def pods(file: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(file.read_text()))


def asked(file: Path) -> Counter[str]:
    """What all pods of a file ask for together."""
    total: Counter[str] = Counter()
    for pod in pods(file):
        for container in pod["spec"]["containers"]:
            total.update(container["resources"]["limits"])
    return total


def assert_fits(file: Path, node: Mapping[str, int]) -> None:
    assert {n: count for n, count in asked(file).items() if count > node.get(n, 0)} == {}


@pytest.mark.parametrize("file", sorted(PODS.glob("*.yaml")), ids=lambda file: file.stem)
def test_the_first_ones_fit_a_node_without_flags(file: Path) -> None:
    assert_fits(file, DEFAULT_COUNTS)


@pytest.mark.parametrize("kubelet", ["1.35", "1.36", "1.37"])
def test_every_vendor_has_one_that_fits_the_overlay_with_all_vendors(kubelet: str) -> None:
    node = planned(variables(OVERLAYS["all-vendors"]), f"--kubelet-version={kubelet}")
    left = set(node) - {"nvidia.com/gpumem-percentage"}  # memory, said another way
    for file in (PODS / "vendors").glob("*.yaml"):
        assert_fits(file, node)
        left -= set(asked(file))
    assert left == set(), "no pod asks for these"


def test_what_hami_calls_otherwise_has_one_too() -> None:
    told = variables(COMPONENTS["all-vendors"]) | variables(COMPONENTS["hami"])
    node, plain = planned(told), planned(variables(COMPONENTS["all-vendors"]))
    files = [*(PODS / "hami").glob("*.yaml"), *(PODS / "vendors").glob("*.yaml")]
    # Cores of an Ascend chip are asked for only where HAMi's library slices it (hami-core).
    renamed = set(node) - set(plain) - {"huawei.com/Ascend910B3-core"}
    assert renamed <= set().union(*map(asked, files))
    for file in (PODS / "hami").glob("*.yaml"):
        assert_fits(file, node)


@pytest.mark.parametrize("file", EVERY, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_pod_is_small_explained_and_stops_at_once(file: Path) -> None:
    assert file.read_text().startswith("# ")
    for pod in pods(file):
        assert pod["metadata"]["name"].startswith(file.stem)
        assert pod["spec"]["terminationGracePeriodSeconds"] == 1
        for container in pod["spec"]["containers"]:
            assert container["image"] == "busybox:1.37"
            assert container["imagePullPolicy"] == "IfNotPresent"
            assert container["command"][2].startswith("env | sort; ")
