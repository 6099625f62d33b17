"""How judges are had: named by the user, made once, and what may be skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.harness.errors import HarnessError, RequirementsMissing
from tests.judges.having import NotServed, given, made_once, need, skip_or_fail, variable_of
from tests.judges.python_clients import client_python
from tests.judges.table import JUDGES


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("E2E_CACHE", str(folder))
    return folder


@pytest.mark.parametrize("judge", JUDGES)
def test_the_users_own_is_taken(judge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # One Python has all clients that are written in it.
    name = "python" if JUDGES[judge] is client_python else judge
    monkeypatch.setenv(variable_of(name), "/bin/true")
    assert JUDGES[judge]() == Path("/bin/true")


def test_a_variable_that_names_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_NVIDIA_CTK", "/nonexistent/nvidia-ctk")
    with pytest.raises(HarnessError, match="JUDGE_NVIDIA_CTK: there is no program"):
        given("nvidia-ctk")


def test_made_once_and_whole() -> None:
    calls = []

    def fill(folder: Path) -> None:
        calls.append(folder)
        (folder / "program").write_text("")
        if len(calls) == 1:
            raise NotServed(["not today"])

    with pytest.raises(NotServed):
        made_once("some", fill)
    for _ in range(2):
        assert (made_once("some", fill) / "program").exists()
    assert len(calls) == 2


def test_what_may_be_skipped_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(RequirementsMissing, match="go is missing, which gets nvidia-ctk") as found:
        need("nvidia-ctk", ("go",))
    for value, lacking, outcome in (
        ("", found.value, pytest.skip.Exception),
        ("true", found.value, pytest.fail.Exception),
        ("true", NotServed(["no such module"]), pytest.skip.Exception),
    ):
        monkeypatch.setenv("CI", value)
        with pytest.raises(outcome, match="nvidia-ctk: "):
            skip_or_fail("nvidia-ctk", lacking)
