"""`hami-mock fleet play`: a trace's pods at an API server."""

from pathlib import Path

import anyio
import pytest

from hami_mock.cli.fleet import play
from hami_mock.cli.main import main
from hami_mock.errors import StartError
from tests.integration.fake_api_server import api_server

TRACE = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time
a,1000,1024,1,500,10,12
b,1000,1024,1,1000,11,12
"""


def test_a_trace_is_played_in_a_namespace_that_goes_again(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text(TRACE)

    async def main() -> None:
        async with api_server(tmp_path) as server:
            refused = ["create pods"]

            def refuse(line: str) -> int | None:
                return 429 if line in refused and not refused.remove(line) else None  # type: ignore[func-returns-value]

            server.refuse = refuse
            words = [str(tmp_path / "trace.csv"), "--time-factor", "100", "--namespace", "t"]
            parsed = play.parser().parse(words)
            trace = play.loaded(parsed)
            with anyio.fail_after(30):
                await play.played(parsed, trace)
            pods = [each for each in server.created if each["kind"] == "Pod"]
            assert [pod["metadata"]["name"] for pod in pods] == ["a-0", "b-1"]
            assert pods[0]["metadata"]["annotations"] == {"hami-mock.io/duration": "20ms"}
            # One was refused for want of time, and tried again.
            assert server.requests.count("create pods") == 3
            assert server.requests[0] == "create namespaces"
            assert server.requests[-1] == "delete namespaces t"

    anyio.run(main)


def test_a_namespace_that_is_there_already_stays(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text(TRACE)

    async def main() -> None:
        async with api_server(tmp_path) as server:
            server.put("namespaces", {"metadata": {"name": "mine"}})
            parsed = play.parser().parse([str(tmp_path / "trace.csv"), "--namespace", "mine"])
            with pytest.raises(StartError, match="--namespace: there is a namespace 'mine'"):
                await play.played(parsed, play.loaded(parsed))
            assert server.requests == ["create namespaces"]

    anyio.run(main)


def test_a_trace_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "missing.csv"
    assert main(["fleet", "play", str(path)]) == 2
    told = f"hami-mock: can't read the trace {str(path)!r}: No such file or directory\n"
    assert capsys.readouterr().err == told
