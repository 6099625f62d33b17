"""Components combine, and the overlays are made of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.defaults import DEFAULT_COUNTS
from tests.unit.deploy.kustomizations import (
    COMPONENTS,
    OVERLAYS,
    fullest_combinations,
    not_with,
    patches,
    read,
    rendered,
    rendered_at_once,
    renderer,
    sensible_combinations,
    variables,
    write_combination,
)
from tests.unit.deploy.program import ROOT, planned, vendors

# Where the pod finds a file → where it stands here.
FILES = {
    "/etc/hami-mock/fleet.yaml": ROOT / "overlays/fleet/fleet.yaml",
    "/etc/hami-mock-scenarios/chaos.yaml": ROOT / "examples/scenarios/chaos.yaml",
}

RENDERED = [
    *(combinations := sensible_combinations()),
    *(names for names in fullest_combinations() if names not in combinations),
]
AT_ONCE = 25
"""More of them make a rendering disproportionately slow."""

Documents = list[dict[str, Any]]


def joined(names: Iterable[str]) -> str:
    return "+".join(names)


def as_here(told: dict[str, str]) -> dict[str, str]:
    return {name: str(FILES.get(value, value)) for name, value in told.items()}


@pytest.fixture(scope="module")
def kustomize() -> list[str]:
    command = renderer()
    if command is None:
        pytest.skip("neither kustomize nor kubectl is here; `make e2e` renders all of it too")
    return command


@pytest.fixture(scope="module")
def documents_of(
    kustomize: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[tuple[str, ...]], Documents]:
    """Gives what a combination renders to; those that come next are rendered along."""
    known: dict[tuple[str, ...], Documents] = {}

    def look_up(names: tuple[str, ...]) -> Documents:
        if names not in known:
            first = RENDERED.index(names)
            folder = tmp_path_factory.mktemp("rendered")
            known.update(rendered_at_once(kustomize, folder, RENDERED[first : first + AT_ONCE]))
        return known[names]

    return look_up


@pytest.mark.parametrize("name", [name for name in OVERLAYS if name != "companion"])
def test_the_program_accepts_what_an_overlay_sets(name: str) -> None:
    resources = planned(as_here(variables(OVERLAYS[name])))
    # These offer their cards in other ways.
    assert bool(resources) == (name not in ("below-nvidia-plugin", "dra"))


def test_hami_and_all_vendors_add_up(tmp_path: Path) -> None:
    """Every card fits at 1 MiB a unit, and has the name that HAMi's scheduler knows."""
    counts = planned(variables(write_combination(tmp_path, ["hami", "all-vendors"])))
    assert counts["huawei.com/Ascend910B3-memory"] == 4 * 65536
    assert counts["amd.com/gpumem"] == 2 * 65520


def test_all_vendors_need_no_coarser_units_on_any_kubelet() -> None:
    told = variables(OVERLAYS["all-vendors"])
    assert "auto" not in told.values()
    old, new = (planned(told, f"--kubelet-version={version}") for version in ("1.35", "1.37"))
    assert old == new
    assert new["nvidia.com/gpumem"] == 4 * 32768


def test_nvidia_only_is_the_default_node_without_the_others() -> None:
    expected = {name: n for name, n in DEFAULT_COUNTS.items() if name.startswith("nvidia.com/")}
    assert planned(variables(COMPONENTS["nvidia-only"])) == expected


def test_all_vendors_has_every_vendor_that_the_program_knows() -> None:
    told = variables(OVERLAYS["all-vendors"])
    wanted = {f"HAMI_MOCK_{name.replace('-', '_').upper()}_CARDS" for name in vendors()}
    assert len(wanted) >= 16
    assert {
        name for name, count in told.items() if name.endswith("_CARDS") and int(count)
    } == wanted


def test_no_variable_is_set_by_two_components_that_go_together() -> None:
    """So their order doesn't matter. Of more than two, some two would."""
    for names in sensible_combinations(most=2):
        sets = [set(variables(COMPONENTS[name])) for name in names]
        assert len(set().union(*sets)) == sum(map(len, sets)), names


def test_nothing_patches_the_arguments() -> None:
    """A list of arguments has no keys: of two patches the last would win."""
    for folder in (*COMPONENTS.values(), *OVERLAYS.values()):
        for patch in patches(folder):
            for container in patch["spec"]["template"]["spec"].get("containers", ()):
                assert "args" not in container


def test_every_component_is_one_and_says_what_it_does() -> None:
    for folder in COMPONENTS.values():
        assert read(folder)["kind"] == "Component"
        assert (folder / "kustomization.yaml").read_text().startswith("# ")


def test_the_readme_has_every_component_and_contradicts_itself_nowhere() -> None:
    apart = not_with()
    assert set(apart) == set(COMPONENTS)
    for one, others in apart.items():
        assert all(one in apart[other] for other in others)


def test_the_combination_of_the_readme_is_right(tmp_path: Path) -> None:
    text = (ROOT / "components" / "README.md").read_text()
    (block,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    told = yaml.safe_load(block)
    names = [Path(component).name for component in told["components"]]
    made = read(write_combination(tmp_path, names))
    assert {key: value for key, value in told.items() if isinstance(value, str)} == {
        key: value for key, value in made.items() if isinstance(value, str)
    }
    assert told["configMapGenerator"] == made["configMapGenerator"]
    assert tuple(sorted(names)) in sensible_combinations()


def test_every_scenario_is_in_the_config_map() -> None:
    (made,) = read(ROOT / "examples")["configMapGenerator"]
    there = sorted((ROOT / "examples/scenarios").glob("*.yaml"))
    assert made["files"] == [f"scenarios/{file.name}" for file in there]


@pytest.mark.parametrize("names", RENDERED, ids=joined)
def test_a_combination_has_all_of_each(
    documents_of: Callable[[tuple[str, ...]], Documents], tmp_path: Path, names: tuple[str, ...]
) -> None:
    """Each component alone, every two and every three that go together, and as many as can."""
    documents = documents_of(names)
    assert set_variables(documents) == variables(write_combination(tmp_path, names))
    present = {(doc["kind"], doc["metadata"]["name"]) for doc in documents}
    for name in ("hami", "dra", "labels"):
        assert (("ClusterRole", f"hami-mock-{name}") in present) == (name in names)
    assert (("Role", "hami-mock-events") in present) == ("events" in names)
    assert mounted(documents) == {name for kind, name in present if kind == "ConfigMap"}, (
        "a ConfigMap that isn't there lets the pod wait for ever"
    )


@pytest.mark.parametrize("name", OVERLAYS)
def test_an_overlay_renders_to_what_its_components_say(kustomize: list[str], name: str) -> None:
    assert set_variables(rendered(kustomize, OVERLAYS[name])) == variables(OVERLAYS[name])


def set_variables(documents: Documents) -> dict[str, str]:
    (container,) = pod_spec(documents)["containers"]
    assert container["args"] == ["run"]
    return {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}


def mounted(documents: Documents) -> set[str]:
    spec = pod_spec(documents)
    maps = {v["name"]: v["configMap"]["name"] for v in spec["volumes"] if "configMap" in v}
    return {
        maps[mount["name"]]
        for mount in spec["containers"][0]["volumeMounts"]
        if mount["name"] in maps
    }


def pod_spec(documents: Documents) -> dict[str, Any]:
    (daemon_set,) = (doc for doc in documents if doc["kind"] == "DaemonSet")
    spec: dict[str, Any] = daemon_set["spec"]["template"]["spec"]
    return spec
