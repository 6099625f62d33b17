"""A machine that lacks something is told so, and CI never takes a skip for a pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import skip_or_fail
from .harness import DEFAULT, RequirementsMissing, kwok_program, missing_requirements, requirements


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No program is found, the cache is empty, and the user is an ordinary one."""
    monkeypatch.setenv("E2E_CACHE", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(requirements, "cni_plugin_folder", lambda: None)


@pytest.mark.usefixtures("bare_machine")
def test_each_missing_thing_is_named_with_the_way_to_get_it() -> None:
    told = "\n".join(missing_requirements(DEFAULT))
    assert "needs root" in told
    assert "install Go, or set KUBEBUILDER_ASSETS" in told
    assert "apt-get install etcd-server" in told
    assert "apt-get install containernetworking-plugins" in told


@pytest.mark.usefixtures("bare_machine")
def test_own_programs_make_go_unnecessary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert "Go is missing" in "\n".join(missing_requirements(DEFAULT)), "the kubelet isn't there"
    (tmp_path / "kubelet").touch(mode=0o755)
    assert "Go is missing" not in "\n".join(missing_requirements(DEFAULT))


@pytest.mark.usefixtures("bare_machine")
def test_a_program_that_go_compiles_names_go() -> None:
    with pytest.raises(
        RequirementsMissing, match=r"go is missing, which kwok v0\.8\.0 is compiled"
    ):
        kwok_program.kwok()


def test_skip_on_a_persons_machine_failure_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = RequirementsMissing(["Go is missing"])
    monkeypatch.setenv("CI", "false")
    with pytest.raises(pytest.skip.Exception, match="Go is missing"):
        skip_or_fail(missing)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="Go is missing"):
        skip_or_fail(missing)
