"""Our nvidia-smi and what can be changed: MIG's instances, and the setters."""

import re
import subprocess

import pytest

from hami_mock.views.driver.layout import NO_INSTANCE
from hami_mock.views.driver.messages import OPERATIONS
from tests.driver.agent import Agent
from tests.driver.smi import Smi
from tests.driver.state_file import PROFILES, StateFile, cut, profile

NO_PERMISSION = 4
IN_USE = 19


def rows(text: str) -> list[list[str]]:
    """Return the words of a table's rows; every line of it must be as wide."""
    lines = text.splitlines()
    assert len({len(line) for line in lines}) == 1, text
    body = lines[next(i for i, line in enumerate(lines) if line.startswith("|=")) + 1 :]
    return [line.strip("|").split() for line in body if line.startswith("|")]


def test_profiles(smi: Smi, state: StateFile) -> None:
    state.set(1, cut(1))
    found = rows(smi.ask("mig", "-lgip", "-i", "1"))
    assert found[::2] == [
        ["1", "MIG", "1g.5gb", "19", "3/7", "4.75", "Yes", "14", "0", "0"],
        ["1", "MIG", "2g.10gb", "14", "1/3", "9.62", "Yes", "28", "1", "0"],
        ["1", "MIG", "3g.20gb", "9", "0/2", "19.50", "Yes", "42", "1", "0"],
        ["1", "MIG", "7g.40gb", "0", "0/1", "39.25", "Yes", "98", "3", "0"],
    ]
    assert len(rows(smi.ask("mig", "-lgip"))) == 8 * 8
    placements = smi.ask("mig", "-lgipp").splitlines()
    assert placements[1] == "GPU  1 Profile ID 14 Placements: {0,2,4}:2"
    assert placements[3] == "GPU  1 Profile ID  0 Placement : {0}:8"
    compute = rows(smi.ask("mig", "-lcip"))
    assert compute[0] == ["1", "7", "MIG", "1g.5gb", "0*", "0/1", "14", "0", "0", "0"]
    assert compute[2] == ["1", "2", "MIG", "1c.3g.20gb", "0", "1/3", "14", "1", "0", "0"]


def test_profiles_of_few_slices_come_first(smi: Smi, state: StateFile) -> None:
    known = [*PROFILES, profile(9, 15, 1, 2, 9856)]
    state.replaced(1, unlike={"mig_profiles": known}).close()
    told = smi.ask("mig", "-lgip")
    ids = [int(each) for each in re.findall(r"MIG \S+ +(\d+)", told)]
    assert ids == [19, 15, 14, 9, 0]


def test_instances(smi: Smi, state: StateFile) -> None:
    state.set(1, cut(1))
    assert rows(smi.ask("mig", "-lgi")) == [
        ["1", "MIG", "1g.5gb", "19", "7", "0:1"],
        ["1", "MIG", "3g.20gb", "9", "2", "4:4"],
    ]
    assert rows(smi.ask("mig", "-lci", "-i", "1")) == [
        ["1", "7", "MIG", "1g.5gb", "0", "0", "0:1"],
        ["1", "2", "MIG", "2c.3g.20gb", "1", "0", "0:2"],
    ]


@pytest.mark.parametrize("verb", ["-lgi", "-lci", "-lcip", "-dgi", "-cci"])
def test_no_card_is_cut(smi: Smi, state: StateFile, verb: str) -> None:
    assert smi.run("mig", verb) == (0, "No MIG-enabled devices found.\n")


def test_processes_of_a_cut_card(smi: Smi, state: StateFile) -> None:
    """Those in its instances once each, and those that have all of it."""
    whole = {"pid": 7, "type": 1, "name": "whole", "gpu_instance": NO_INSTANCE,
             "compute_instance": NO_INSTANCE}  # fmt: skip
    inside = whole | {"pid": 8, "name": "inside", "gpu_instance": 2, "compute_instance": 0}
    state.set(1, cut(1) | {"process_count": 2, "processes": [inside, whole]})
    told = smi.ask("--query-compute-apps=pid,name", "--format=csv,noheader", "-i", "1")
    assert told.splitlines() == ["7, whole", "8, inside"]


def test_a_cut_card_without_instances(smi: Smi, state: StateFile) -> None:
    state.set(0, cut(0) | {"gpu_instances": [], "compute_instances": []})
    assert smi.run("mig", "-lgi") == (6, "No GPU instances found: Not Found\n")
    assert smi.run("mig", "-lci") == (6, "No compute instances found: Not Found\n")
    assert smi.run("mig", "-dgi") == (6, "No GPU instances found: Not Found\n")
    assert smi.run("mig", "-cci") == (6, "No GPU instances found: Not Found\n")
    assert "No MIG devices found" in smi.ask()


def test_instances_are_made(smi: Smi, state: StateFile, agent: Agent) -> None:
    state.set(1, cut(1))
    agent.reply = {"gpu_instance": 2, "compute_instance": 0}
    told = smi.ask("mig", "-i", "1", "-cgi", "9,3g.20gb,9:4", "-C")
    made = "Successfully created GPU instance ID  2 on GPU  1 using profile MIG 3g.20gb (ID  9)"
    inside = r"Successfully created compute instance ID  0 on GPU  1 GPU instance ID  2 using"
    assert told.count(made) == len(re.findall(inside, told)) == 3
    asked = [
        (each["operation"], each["card"], each["profile"], each["start"], each["size"])
        for each in agent.requests
    ]
    whole = (OPERATIONS["CREATE_COMPUTE_INSTANCE"], 1, 2, NO_INSTANCE, NO_INSTANCE)
    anywhere = (OPERATIONS["CREATE_GPU_INSTANCE"], 1, 9, NO_INSTANCE, NO_INSTANCE)
    there = (OPERATIONS["CREATE_GPU_INSTANCE"], 1, 9, 4, 4)
    assert asked == [anywhere, whole, anywhere, whole, there, whole]


def test_instances_are_removed(smi: Smi, state: StateFile, agent: Agent) -> None:
    state.set(1, cut(1))
    smi.ask("mig", "-dci", "-gi", "2")
    smi.ask("mig", "-dgi", "-gi", "7,2", "-i", "1")
    told = smi.ask("mig", "-dgi")
    assert "Successfully destroyed GPU instance ID  7 from GPU  1" in told
    assert [(each["operation"], each["gpu_instance"]) for each in agent.requests] == [
        (OPERATIONS["DESTROY_COMPUTE_INSTANCE"], 2),
        *[(OPERATIONS["DESTROY_GPU_INSTANCE"], 7), (OPERATIONS["DESTROY_GPU_INSTANCE"], 2)] * 2,
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        # Who forgets -gi doesn't mean all of them.
        (["-dgi", "7"], 'Option "7" is not recognized.'),
        (["-dci", "7"], 'Option "7" is not recognized.'),
        (["-dgi", "-gi"], 'Option "-gi" is missing its value.'),
        (["-dci", "-gi", "-ci", "0"], 'Option "-gi" is missing its value.'),
        (["-cgi", "-C"], 'Option "-cgi" is missing its value.'),
    ],
)
def test_words_that_mean_nothing_change_nothing(
    smi: Smi, state: StateFile, agent: Agent, arguments: list[str], said: str
) -> None:
    state.set(1, cut(1))
    assert smi.run("mig", *arguments) == (2, f"{said}\n")
    assert not agent.requests


def test_a_profile_that_isnt_there(smi: Smi, state: StateFile, agent: Agent) -> None:
    state.set(1, cut(1))
    code, told = smi.run("mig", "-cgi", "9g.90gb")
    assert code == 2
    assert "using profile 9g.90gb: Invalid Argument" in told
    assert not agent.requests


@pytest.mark.parametrize(
    ("arguments", "operation", "value", "said"),
    [
        (["-pm", "0"], "SET_PERSISTENCE_MODE", 0, "Disabled persistence mode for GPU"),
        (["-pl", "300.5"], "SET_POWER_LIMIT", 300_500, "was set to 300.50 W from 400.00 W."),
        (["--power-limit=300"], "SET_POWER_LIMIT", 300_000, "was set to 300.00 W from 400.00 W."),
        (["-c", "3"], "SET_COMPUTE_MODE", 3, "Set compute mode to EXCLUSIVE_PROCESS for GPU"),
        (["-c", "PROHIBITED"], "SET_COMPUTE_MODE", 2, "Set compute mode to PROHIBITED for GPU"),
        (["-mig", "1"], "SET_MIG_MODE", 1, "Enabled MIG Mode for GPU 00000000:1D:00.0"),
    ],
)
def test_setters(  # noqa: PLR0917
    smi: Smi,
    state: StateFile,
    agent: Agent,
    arguments: list[str],
    operation: str,
    value: int,
    said: str,
) -> None:
    told = smi.ask("-i", "2", *arguments)
    assert said in told
    assert told.endswith("All done.\n")
    (request,) = agent.requests
    wanted = (OPERATIONS[operation], 2, value)
    assert (request["operation"], request["card"], request["values"][0]) == wanted
    agent.reply = {"result": IN_USE}
    code, told = smi.run("-i", "2", *arguments)
    assert (code, "In use by another client" in told) == (IN_USE, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-pm", "5"], "Invalid persistence mode: 5"),
        (["-pl", "900"], "Provided power limit 900.00 W is not a valid power limit"),
        (["-pl", "x"], "Invalid power limit: x"),
        (["-c", "7"], "Invalid compute mode: 7"),
        (["-mig", "2"], "Invalid MIG mode: 2"),
    ],
)
def test_what_cant_be_set(smi: Smi, state: StateFile, arguments: list[str], said: str) -> None:
    code, told = smi.run(*arguments)
    assert code == 2
    assert told.startswith(said)
    assert told.endswith("Terminating early due to previous errors.\n")


def test_without_an_agent_nobody_may(smi: Smi, state: StateFile) -> None:
    state.set(1, cut(1))
    for arguments in (["-pl", "300"], ["-mig", "1"], ["mig", "-cgi", "19"], ["mig", "-dgi"]):
        done = subprocess.run([smi.path, *arguments], capture_output=True, text=True, check=False)
        assert (done.returncode, "Insufficient Permissions" in done.stdout) == (NO_PERMISSION, True)
        # Beside it, for people: programs that read the output find what they know.
        assert "hami-mock" not in done.stdout
        assert "an agent runs on this driver root" in done.stderr
        assert "--driver on" in done.stderr
