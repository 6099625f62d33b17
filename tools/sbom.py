"""Write dist/hami-mock-VERSION.cdx.json: what the image installs with pip, as a CycloneDX SBOM.

It lists each requirement with its version, its hashes and the licence that its installed metadata
declares, prints them as a table, and fails if a licence isn't one of ALLOWED. It has no time in it:
the same requirements make the same file.
"""

import argparse
import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any, NamedTuple

from hami_mock.kit.terminal import table

# Each may be used by a program under Apache-2.0 that leaves its dependencies as they are.
ALLOWED = frozenset(
    {"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0", "PSF-2.0"}
)
# How metadata older than licence expressions writes them.
ALIASES = {"Apache 2.0": "Apache-2.0", "The MIT License (MIT)": "MIT"}
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)==([^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class Requirement(NamedTuple):
    """A line of the requirements, with what is known of it here."""

    name: str
    version: str
    hashes: list[str]
    licence: str

    @property
    def is_allowed(self) -> bool:
        """Whether every licence that its expression names is."""
        words = set(re.split(r"[\s()]+", self.licence)) - {"", "AND", "OR"}
        return bool(words) and words <= ALLOWED


def read(file: Path) -> Iterator[Requirement]:
    """Yield the requirements of a file. Exits if one isn't installed here in its version."""
    blocks = re.split(r"\n(?=[A-Za-z0-9])", file.read_text())
    for block in blocks:
        if found := _REQUIREMENT.match(block):
            name, version = found.groups()
            yield Requirement(name, version, _HASH.findall(block), licence_of(name, version))


def licence_of(name: str, version: str) -> str:
    """Return the licence that a package declares, as an SPDX expression where it is one."""
    try:
        told = metadata(name).json
    except PackageNotFoundError:
        sys.exit(f"{name} is not installed here: run `make setup`")
    if told["version"] != version:
        sys.exit(f"{name} is {told['version']} here, not {version}: run `make clean setup`")
    stated = str(told.get("license_expression") or told.get("license") or "")
    # Some repeat the whole text under its title.
    title = stated.split("\n", maxsplit=1)[0].strip()
    return ALIASES.get(title, title)


def component(name: str, version: str, licence: str, kind: str = "library") -> dict[str, Any]:
    """Return what CycloneDX says of any component."""
    address = f"pkg:pypi/{name}@{version}"
    single = " " not in licence
    return {
        "type": kind,
        "bom-ref": address,
        "name": name,
        "version": version,
        "licenses": [{"license": {"id": licence}} if single else {"expression": licence}],
        "purl": address,
    }


def bom(project: dict[str, Any], requirements: list[Requirement]) -> dict[str, Any]:
    """Return the whole document."""
    own = component(project["name"], project["version"], project["license"], "application")
    parts = [
        component(each.name, each.version, each.licence)
        # One of them is the file's that pip chose for its machine.
        | {"hashes": [{"alg": "SHA-256", "content": digest} for digest in each.hashes]}
        for each in requirements
    ]
    # As an identity it must change with the content, and with nothing else.
    identity = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps([own, parts]))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{identity}",
        "version": 1,
        "metadata": {"component": own},
        "components": parts,
    }


def main() -> None:
    """Check, print, write."""
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requirements", type=Path, default=Path("requirements/run.txt"))
    name = f"{project['name']}-{project['version']}.cdx.json"
    parser.add_argument("--output", type=Path, default=Path("dist") / name)
    given = parser.parse_args()
    requirements = list(read(given.requirements))
    rows = [(each.name, each.version, each.licence) for each in requirements]
    print("\n".join(table(("PACKAGE", "VERSION", "LICENCE"), rows, "   ")))
    wrong = [f"{each.name}: {each.licence!r}" for each in requirements if not each.is_allowed]
    if wrong:
        sys.exit("licences that are not in ALLOWED of tools/sbom.py: " + "; ".join(wrong))
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps(bom(project, requirements), indent=2) + "\n")
    print(f"\n{given.output}: CycloneDX 1.6, {len(requirements)} components")


if __name__ == "__main__":
    main()
