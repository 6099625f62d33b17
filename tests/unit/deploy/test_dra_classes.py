"""DeviceClasses and examples use names that the driver publishes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hami_mock.doctor.dra_objects import DeviceClass, Slice
from hami_mock.doctor.dra_selectors import matches
from hami_mock.kubelet.dra_gates import GATES, VERSIONS
from hami_mock.vendors import VENDORS, catalog
from hami_mock.vendors.dra import Profile, driver_of
from tests.makers import ASCEND
from tests.unit.deploy.program import ROOT
from tests.unit.views.dra.rig import devices, pool_of, specs, state_of

CLASSES = ROOT / "components" / "dra" / "deviceclasses.yaml"
CHART = ROOT / "charts" / "hami-mock" / "templates" / "deviceclasses.yaml"
EXAMPLES = sorted((ROOT / "examples" / "dra").glob("*.yaml"))
DRIVERS = {
    driver.name
    for vendor in VENDORS
    for profile in Profile
    if (driver := driver_of(vendor, profile))
}


def documents(file: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(file.read_text()))


def names() -> set[str]:
    return {each["metadata"]["name"] for each in documents(CLASSES)}


def test_every_class_selects_a_driver_and_every_driver_has_a_class() -> None:
    selected = set()
    for each in documents(CLASSES):
        (selector,) = each["spec"]["selectors"]
        expression = selector["cel"]["expression"]
        (driver,) = re.findall(r"device\.driver == '([^']+)'", expression)
        assert set(re.findall(r"attributes\['([^']+)'\]", expression)) <= {driver}
        selected.add(driver)
    assert selected == DRIVERS


def test_the_types_that_classes_ask_for_are_published() -> None:
    asked = set(re.findall(r"type == '([^']+)'", CLASSES.read_text()))
    states = (state_of(nvidia_mig=""), state_of(nvidia_cards=0, ascend_cards=1))
    published = {
        each["attributes"]["type"]["string"]
        for state in states
        for profile in (Profile.HAMI, Profile.NVIDIA)
        if driver_of(state.node.cards[0].vendor, profile)
        for each in devices(pool_of(state, profile)).values()
    }
    assert asked == published


@pytest.mark.parametrize("profile", Profile)
def test_the_plan_knows_the_classes_of_every_device(profile: Profile) -> None:
    """As the scheduler would choose them by the classes' selectors."""
    classes = [DeviceClass.read(each) for each in documents(CLASSES)]
    ascend: dict[str, Any] = {"nvidia_cards": 0, "ascend_cards": 1}
    states = (
        state_of(nvidia_mig=""),
        state_of(nvidia_mig="3g.40gb"),
        state_of(**ascend),
        state_of(**ascend, ascend_mode="hami-core"),
    )
    for state in states:
        driver = driver_of(state.node.cards[0].vendor, profile)
        if driver is None:
            continue
        pool = pool_of(state, profile)
        for one in map(Slice.read, ({"spec": each} for each in specs(pool))):
            for device in one.devices:
                selected = {each.name for each in classes if matches(each.selectors, device)}
                assert selected == {*driver.classes(device.attributes)}


def test_the_docs_have_the_gates_as_the_plan_does() -> None:
    text = (ROOT / "docs" / "dra.md").read_text()
    header = "| gate | what it is for | " + " | ".join(f"{a}.{b}" for a, b in VERSIONS) + " |"
    table = text.partition(f"{header}\n|---|---|---|---|---|\n")[2].partition("\n\n")[0]
    rows = [line.replace("`", "").strip("| ").split(" | ") for line in table.splitlines()]
    assert rows == [[name, gate.use, *gate.defaults] for name, gate in GATES.items()]


def test_every_chip_has_a_class() -> None:
    chips = {model.product for model in catalog.models()[ASCEND.maker].values()}
    assert {f"npu-{chip.lower()}.project-hami.io" for chip in chips} <= names()


def test_one_class_alone_maps_a_resource() -> None:
    told = [each["spec"].get("extendedResourceName") for each in documents(CLASSES)]
    assert [name for name in told if name] == ["nvidia.com/gpu"]


def test_the_chart_has_the_same_classes() -> None:
    """By name; `make e2e` has helm, and compares what they select."""
    text = CHART.read_text()
    (row,) = re.findall(r"range list (.+) }}", text)
    chips = re.findall(r'"([^"]+)"', row)
    told = {f"npu-{chip.lower()}.project-hami.io" for chip in chips}
    assert told | set(re.findall(r'"([a-z.-]+\.(?:io|com))"', text)) == names()


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_is_complete(file: Path) -> None:
    made = documents(file)
    claims = {each["metadata"]["name"] for each in made if each["kind"] != "Pod"}
    classes = set(re.findall(r"deviceClassName: (\S+)", file.read_text()))
    assert classes <= names()
    for pod in (each for each in made if each["kind"] == "Pod"):
        (claim,) = pod["spec"]["resourceClaims"]
        own = claim.get("resourceClaimTemplateName") or claim["resourceClaimName"]
        assert own in claims
        (container,) = pod["spec"]["containers"]
        assert container["resources"]["claims"] == [{"name": claim["name"]}]
