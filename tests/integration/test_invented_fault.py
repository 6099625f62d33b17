"""A kind of fault is one row: whatever reads the table knows an invented one."""

from pathlib import Path

import pytest

from hami_mock.cli.ctl.client import main
from hami_mock.errors import UsageError
from hami_mock.faults.actions import Action, perform
from hami_mock.faults.player import Player
from hami_mock.faults.scenario_reader import parse
from hami_mock.faults.timeline import moments
from hami_mock.kit.values import or_text, whole
from hami_mock.node.fault import FaultKind, On, Parameter
from hami_mock.node.fault_kinds import REASON, VERBS
from hami_mock.node.state import NodeState
from tests.integration.control_rig import Served
from tests.unit.builders import laid_out
from tests.unit.views.http.test_metrics import make_agent, of, samples

Captured = pytest.CaptureFixture[str]

PERCENT = Parameter("percent", or_text(whole(1, 99)), "how much is left", is_required=True)
THROTTLED = FaultKind(
    "throttle",
    On.CARDS,
    "slow cards down",
    ("throttle 50 nvidia/0",),
    (PERCENT, REASON),
    name="throttled",
    mended_by="recover",
)


@pytest.fixture(autouse=True)
def one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VERBS, "throttle", THROTTLED)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(tmp_path / "c.sock")


def test_help_lists_and_explains_it(capsys: Captured) -> None:
    assert main(["--help"]) == 0
    assert "throttle         slow cards down" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["throttle", "--help"])
    out = capsys.readouterr().out
    assert all(word in out for word in ("N", "how much is left", "--reason TEXT", "--for DURATION"))
    assert "hami-mock ctl throttle 50 nvidia/0" in out


@pytest.mark.anyio
async def test_ctl_begins_and_ends_it_and_it_is_an_event(served: Served, capsys: Captured) -> None:
    async with served.run():
        await served.ctl("throttle", "50", "nvidia/0", "--reason", "hot")
        assert served.effects() == {"nvidia/0": {THROTTLED}}
        await served.ctl("recover", "nvidia/0")
        assert served.effects() == {}
    assert capsys.readouterr().out.splitlines() == [
        "1 card now throttled, percent 50: nvidia/0 (hot)",
        "1 card no longer throttled, percent 50: nvidia/0 (hot)",
    ]
    began, ended = served.state.events.after(0)
    assert (began.kind, began.message) == ("FaultBegan", "throttled, percent 50: hot")
    assert ended.kind == "FaultEnded"


@pytest.mark.anyio
async def test_the_agent_checks_its_parameters(served: Served) -> None:
    async with served.run():
        with pytest.raises(UsageError) as caught:
            await served.ask("throttle", targets=["nvidia/0"], percent=100, xid=79)
    assert caught.value.problems == (
        "xid: there is no such key",
        "percent: 100 is not allowed: it must be a whole number from 1 to 99",
    )


def test_metrics_count_it(socket_folder: Path) -> None:
    agent = make_agent(socket_folder)
    perform(Action("throttle", ("nvidia",), {"percent": 50}), agent.state)
    assert of(samples(agent), "hami_mock_faults", effect="throttled") == 2


def test_ctl_checks_its_parameters_too() -> None:
    with pytest.raises(UsageError, match="argument N: '100' is not allowed: it must be a whole"):
        main(["throttle", "100", "nvidia/0"])


def test_a_scenario_has_it() -> None:
    made = parse("steps: [{throttle: nvidia/0, percent: 20, for: 1m}]", "x.yaml")
    state = NodeState(laid_out())
    player = Player(made, state)
    first, *_ = moments(made)
    assert player.play(first) == ("nvidia/0",)
    (fault,) = state.faults
    assert (fault.kind, fault.details) == (THROTTLED, {"percent": 20})
    with pytest.raises(UsageError, match=r"steps\[0\].percent: is missing: it must be a whole"):
        parse("steps: [{throttle: nvidia/0}]", "x.yaml")
