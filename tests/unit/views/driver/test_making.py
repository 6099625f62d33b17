"""A driver root is made once, kept, and removed to the last file; what is foreign stays."""

import json
import os
import re
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from hami_mock.errors import StartError, UsageError
from hami_mock.vendors.driver import Driver, Machine
from hami_mock.views.driver import making
from hami_mock.views.driver.making import Done, Root, What, make_steps, summary
from hami_mock.views.driver.root import MANIFEST, Programs, Step, driven
from tests.unit.builders import cards
from tests.unit.views.driver.reading import COMPILED, VERSION

ALL = frozenset(Step)


class Rig:
    """A root with a node's cards, whose state file is a file with a word in it."""

    def __init__(self, path: Path, count: int = 2, version: str = VERSION) -> None:
        self.path = path
        self.machine = Machine(cards(count), version)
        self.driver: Driver = driven(())[0]

    def is_other(self) -> bool:
        return not (self.path / "state/cards.bin").exists()

    def show(self) -> bool:
        is_new = self.is_other()
        (self.path / "state/cards.bin").write_text("state")
        return is_new

    def make(
        self, steps: frozenset[Step] = ALL, *, dry: bool = False, compiled: Programs = COMPILED
    ) -> list[Done]:
        root = Root(self.path, self.is_other if dry else self.show, dry=dry)
        try:
            return make_steps(root, steps, self.driver, self.machine, lambda: compiled)[0]
        finally:
            root.release()

    def remove(self, *, dry: bool = False) -> list[Done]:
        root = Root(self.path, self.show, dry=dry)
        try:
            return root.remove()
        finally:
            root.release()

    @property
    def paths(self) -> set[str]:
        return {str(path.relative_to(self.path)) for path in self.path.rglob("*")}


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path / "there" / "root")


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="takes the capability MKNOD")


def whats(done: list[Done]) -> set[What]:
    return {each.what for each in done}


@needs_root
def test_all_makes_libraries_programs_files_nodes_and_cdi(rig: Rig) -> None:
    assert whats(rig.make()) == {What.MADE}
    lib = rig.path / "lib64"
    assert (lib / "libnvidia-ml.so.1").readlink() == Path(f"libnvidia-ml.so.{VERSION}")
    assert (lib / "libnvidia-ml.so").read_bytes() == b"a library"
    assert (lib / "libcuda.so.1").read_bytes() == b"a placeholder"
    assert (rig.path / "bin/nvidia-smi").stat().st_mode & 0o777 == 0o755
    assert VERSION in (rig.path / "proc/driver/nvidia/version").read_text()
    told = (rig.path / "proc/driver/nvidia/gpus/0000:1c:00.0/information").read_text()
    assert f"GPU UUID: {rig.machine.cards[1].uuid}\n" in told
    for name, minor in (("nvidia0", 0), ("nvidia1", 1), ("nvidiactl", 255)):
        found = (rig.path / "dev" / name).stat()
        assert stat.S_ISCHR(found.st_mode)
        assert (os.major(found.st_rdev), os.minor(found.st_rdev)) == (195, minor)
        assert found.st_mode & 0o777 == 0o666


def test_a_second_time_nothing_is_done(rig: Rig) -> None:
    rig.make()
    before = {path: (rig.path / path).lstat().st_ino for path in rig.paths - {MANIFEST}}
    assert whats(rig.make()) <= {What.KEPT, What.LEFT}
    assert {path: (rig.path / path).lstat().st_ino for path in before} == before


def test_each_step_makes_its_own_part(rig: Rig) -> None:
    rig.make(frozenset({Step.DRIVER}))
    assert {path.partition("/")[0] for path in rig.paths} == {"lib64", "bin", MANIFEST}
    rig.make(frozenset({Step.FS}))
    tops = {path.partition("/")[0] for path in rig.paths}
    assert tops >= {"lib64", "bin", "proc", "sys", "state", MANIFEST}
    assert "cdi" not in tops


def test_remove_leaves_nothing(rig: Rig) -> None:
    rig.make()
    assert whats(rig.remove()) == {What.REMOVED}
    assert not rig.path.exists()
    # The folder above was made on the way, and may be somebody else's by now.
    assert rig.path.parent.exists()


@pytest.mark.parametrize("dry", [False, True])
def test_a_second_time_there_is_nothing_to_remove(rig: Rig, dry: bool) -> None:
    rig.make()
    rig.remove()
    assert rig.remove(dry=dry) == []
    rig.path.mkdir()
    assert rig.remove(dry=dry) == []
    assert [*rig.path.iterdir()] == []


def test_a_folder_that_was_there_stays(rig: Rig) -> None:
    rig.path.mkdir(parents=True)
    rig.make()
    rig.remove()
    assert [*rig.path.iterdir()] == []


def test_a_dry_run_does_nothing_and_says_the_same(rig: Rig) -> None:
    would = rig.make(dry=True)
    assert not rig.path.exists()
    made = rig.make()
    assert {each.path for each in would} == {each.path for each in made}
    assert [(each.path, each.what) for each in rig.make(dry=True)] == [
        (each.path, each.what) for each in rig.make()
    ]
    paths = rig.paths
    assert whats(rig.remove(dry=True)) == {What.REMOVED}
    assert rig.paths == paths


def test_what_is_not_wanted_any_more_goes(rig: Rig) -> None:
    rig.make()
    fewer = Rig(rig.path, count=1, version="570.1")
    done = fewer.make()
    gone = {each.path for each in done if each.what is What.REMOVED}
    assert f"lib64/libnvidia-ml.so.{VERSION}" in gone
    assert "proc/driver/nvidia/gpus/0000:1c:00.0/information" in gone
    assert "proc/driver/nvidia/gpus/0000:1c:00.0" not in rig.paths
    assert (rig.path / "lib64/libnvidia-ml.so.1").readlink() == Path("libnvidia-ml.so.570.1")
    fewer.remove()
    assert not rig.path.exists()


def test_another_version_takes_no_mount_from_containers(rig: Rig) -> None:
    """What is missing when a container starts again, its runtime would make as an empty folder."""
    rig.make()
    spec = yaml.safe_load((rig.path / "cdi/nvidia.yaml").read_text())
    mounted = [Path(mount["hostPath"]) for mount in spec["containerEdits"]["mounts"]]
    assert {path.parent.name for path in mounted} >= {"lib64", "bin"}
    Rig(rig.path, version="570.1").make()
    assert [path for path in mounted if not path.exists()] == []


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("bin/nvidia-smi", lambda place: place.write_text("mine")),
        ("lib64/libcuda.so.1", lambda place: (place.unlink(), place.symlink_to("/lib/mine"))),
        ("sys/module/nvidia/version", lambda place: (place.unlink(), place.mkdir())),
        ("state/cards.bin", lambda place: (place.unlink(), place.symlink_to("elsewhere"))),
    ],
)
def test_what_became_something_else_stays(
    rig: Rig, path: str, change: Callable[[Path], object]
) -> None:
    rig.make()
    change(rig.path / path)
    left = [each for each in rig.make() if each.what is What.LEFT and "MKNOD" not in each.why]
    assert [(each.path, "by hand" in each.why) for each in left] == [(path, True)]
    (still,) = [each for each in rig.remove() if each.what is What.LEFT]
    assert still.path == path
    assert os.path.lexists(rig.path / path)
    # The list says what is left to be removed.
    assert [*json.loads((rig.path / MANIFEST).read_text())["made"]] == [path]
    parents = {str(each) for each in Path(path).parents} - {"."}
    assert rig.paths == {path, MANIFEST, *parents}


def test_a_file_beside_ours_stays_and_so_does_its_folder(rig: Rig) -> None:
    rig.make()
    (rig.path / "lib64/mine.so").write_text("mine")
    rig.remove()
    assert rig.paths == {"lib64", "lib64/mine.so"}


def test_a_folder_of_somebody_else_is_refused(rig: Rig) -> None:
    rig.path.mkdir(parents=True)
    (rig.path / "etc").mkdir()
    (rig.path / "etc/passwd").write_text("root")
    with pytest.raises(UsageError, match=r"--driver-root: .* has 'etc' in it.*choose an empty"):
        rig.make()
    with pytest.raises(UsageError, match=f"has no {re.escape(MANIFEST)}"):
        rig.remove()
    assert rig.paths == {"etc", "etc/passwd"}


def test_a_file_is_no_folder(rig: Rig) -> None:
    rig.path.parent.mkdir()
    rig.path.write_text("mine")
    with pytest.raises(UsageError, match=r"--driver-root: '.*/root' is not a folder"):
        rig.make()
    with pytest.raises(UsageError, match=f"has no {re.escape(MANIFEST)}"):
        rig.remove()
    assert rig.path.read_text() == "mine"


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"made": 1, "folders": []}', '{"made": {}, "folders": ["/etc"]}',
     '{"made": {"../x": {"kind": "file", "step": "fs", "mark": ""}}, "folders": []}',
     '{"made": {"x": {"kind": "file", "mark": ""}}, "folders": []}',
     '{"made": {"x": {"kind": "fifo", "step": "fs", "mark": ""}}, "folders": []}'],
)  # fmt: skip
def test_a_forged_list_is_refused(rig: Rig, content: str) -> None:
    rig.path.mkdir(parents=True)
    (rig.path / MANIFEST).write_text(content)
    with pytest.raises(UsageError, match=MANIFEST):
        rig.remove()


def test_one_at_a_time_may_use_a_root(rig: Rig) -> None:
    rig.make()
    first = Root(rig.path, rig.show)
    first.make([], frozenset())
    with pytest.raises(StartError, match=r"another hami-mock \(process \d+\) uses"):
        rig.remove()
    first.release()
    rig.remove()


def test_without_the_capability_nodes_are_left_out(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "mknod", refuse)
    monkeypatch.setattr(making, "_may_make_nodes", lambda: False)
    would = [(each.path, each.what) for each in rig.make(dry=True)]
    left = [each for each in rig.make() if each.what is What.LEFT]
    assert {each.path.partition("/")[0] for each in left} == {"dev"}
    assert "MKNOD" in left[0].why
    assert [path for path, what in would if what is What.LEFT] == [each.path for each in left]
    assert whats(rig.make(dry=True)) == {What.KEPT, What.LEFT}
    assert "dev/nvidia0" not in rig.paths
    spec = yaml.safe_load((rig.path / "cdi/nvidia.yaml").read_text())
    nodes = spec["devices"][0]["containerEdits"]["deviceNodes"]
    assert nodes == [{"path": "/dev/nvidia0", "hostPath": "/dev/null"}]
    rig.remove()
    assert not rig.path.exists()


def test_what_is_no_node_is_given_to_no_container(rig: Rig) -> None:
    (rig.path / "dev").mkdir(parents=True)
    rig.make(frozenset({Step.DRIVER}))
    (rig.path / "dev/nvidia0").write_text("mine")
    (left,) = [each for each in rig.make() if each.path == "dev/nvidia0"]
    assert left.what is What.LEFT
    spec = yaml.safe_load((rig.path / "cdi/nvidia.yaml").read_text())
    (node,) = spec["devices"][0]["containerEdits"]["deviceNodes"]
    assert node == {"path": "/dev/nvidia0", "hostPath": "/dev/null"}


def test_without_the_program_all_else_is_made(rig: Rig) -> None:
    done = rig.make(compiled=Programs(b"a library", b"a placeholder", None))
    (left,) = [each for each in done if each.path == "bin/nvidia-smi"]
    assert (left.what, "compiled" in left.why) == (What.LEFT, True)
    spec = yaml.safe_load((rig.path / "cdi/nvidia.yaml").read_text())
    mounted = [mount["containerPath"] for mount in spec["containerEdits"]["mounts"]]
    assert "/usr/bin/nvidia-smi" not in mounted


@needs_root
def test_cdi_names_cards_by_index_and_uuid_and_all(rig: Rig) -> None:
    rig.make()
    spec = yaml.safe_load((rig.path / "cdi/nvidia.yaml").read_text())
    assert spec["kind"] == "nvidia.com/gpu"
    first, second = (card.uuid for card in rig.machine.cards)
    assert [each["name"] for each in spec["devices"]] == ["0", first, "1", second, "all"]
    nodes = [
        [node["path"] for node in each["containerEdits"]["deviceNodes"]] for each in spec["devices"]
    ]
    assert nodes == [["/dev/nvidia0"]] * 2 + [["/dev/nvidia1"]] * 2 + [
        ["/dev/nvidia0", "/dev/nvidia1"]
    ]
    shared = spec["containerEdits"]
    assert "/dev/nvidiactl" in [node["path"] for node in shared["deviceNodes"]]
    for mount in shared["mounts"]:
        assert Path(mount["hostPath"]).exists()
        assert "ro" in mount["options"]


def test_summary_counts() -> None:
    done = [Done("a", What.MADE), Done("b", What.MADE), Done("c", What.LEFT, "why")]
    assert summary(done) == {"made": 2, "left alone": 1}


def test_the_socket_of_a_killed_agent_goes_too(rig: Rig) -> None:
    rig.make()
    folder = rig.path / "run"
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(folder / "setters.sock"))
    rig.remove()
    assert not rig.path.exists()
