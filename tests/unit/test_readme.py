"""The README tells the truth about what can be checked."""

import re
from pathlib import Path

import pytest
import yaml

from hami_mock.settings.options import OPTIONS, Option
from hami_mock.settings.settings import load

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()
FLAGS = (ROOT / "docs/flags.md").read_text()


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_flag_has_a_row_with_its_variable_default_and_help(option: Option) -> None:
    row = next(line for line in FLAGS.splitlines() if line.startswith(f"| `--{option.name}`"))
    assert option.variables[0] in row
    assert option.help in row
    assert f"`{option.shown_default}`" in row or not option.shown_default


def test_the_yaml_of_the_readme_is_valid(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    file = tmp_path / "config.yaml"
    file.write_text(block)
    assert len(yaml.safe_load(block)["nodes"]) == 2
    settings = load({"config": str(file), "node-name": "a100-1"})
    assert [group.cards for group in settings.vendors[0].groups] == [8]


def test_the_image_is_built_from_a_file_that_is_there() -> None:
    # Docker looks for a Dockerfile by itself; podman for a Containerfile too.
    (build,) = re.findall(r"docker build (.*)", README)
    assert (ROOT / re.findall(r"-f (\S+)", build)[0]).is_file()


@pytest.mark.parametrize("node", ["a100-1", "mixed-7", "ascend-0", "anything"])
def test_the_example_fleet_is_valid(node: str) -> None:
    file = ROOT / "overlays/fleet/fleet.yaml"
    settings = load({"config": str(file), "node-name": node})
    assert any(vendor.groups for vendor in settings.vendors)


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
LINKS = [
    pytest.param(page, *link, id=f"{page.name}: {''.join(link)}")
    for page in PAGES
    for link in sorted(set(re.findall(r"\]\(((?!http)[^)#]*)(#[^)]+)?\)", page.read_text())))
]


@pytest.mark.parametrize(("page", "path", "anchor"), LINKS)
def test_every_link_leads_somewhere(page: Path, path: str, anchor: str) -> None:
    target = page.parent / path if path else page
    assert target.exists()
    if anchor:
        titles = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
        known = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
        assert anchor.removeprefix("#") in known


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 200
