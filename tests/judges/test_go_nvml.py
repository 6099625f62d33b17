"""go-nvml, on which NVIDIA's own Go programs stand: Xids and MIG, beside its cards (test_cards)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from hami_mock.vendors.catalog import models
from hami_mock.vendors.nvidia_mig_profiles import instance_profiles
from tests.driver.state_file import StateFile, cut, live, mig_uuid
from tests.judges.conftest import Have, MakeRoot
from tests.judges.driver_root import DriverRoot
from tests.judges.nodes import NODES

Invented = Callable[[int], tuple[DriverRoot, StateFile]]
SECONDS = 60


@pytest.mark.parametrize("cards", sorted({cards for _, cards in NODES}))
def test_a_xid_is_of_its_card(have: Have, invented: Invented, cards: int) -> None:
    program, (root, file) = have("go-nvml"), invented(cards)
    last = root.cards[-1]
    with subprocess.Popen(
        [program, "xid"],
        env=root.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert first == "waiting\n"
            file.xid(last.index, 48)
            assert process.communicate(timeout=SECONDS)[0] == f"{last.uuid}\t48\ttrue\n"
        finally:
            process.kill()
    assert process.returncode == 0


def test_finds_instances(have: Have, invented: Invented) -> None:
    root, file = invented(3)
    for index in (0, 2):
        file.set(index, cut(index))
    file.set(1, live(1))
    assert root.ask(have("go-nvml"), "parts").splitlines() == [
        f"{index}\t{number}\t{instance}\t{mig_uuid(index, instance)}\t{memory}"
        for index in (0, 2)
        for number, (instance, memory) in enumerate(((7, 4864), (2, 19968)))
    ]


@pytest.mark.parametrize(
    ("model", "profiles"),
    [
        ("A100-SXM4-40GB", ("3g.20gb", "1g.5gb")),
        ("H100-SXM5-80GB", ("3g.40gb", "1g.10gb")),
        ("B200", ("3g.90gb", "1g.23gb")),
    ],
)
def test_finds_how_users_cut_cards(
    have: Have, root_of: MakeRoot, model: str, profiles: tuple[str, ...]
) -> None:
    root = root_of(model, 8, f"--nvidia-mig={','.join(profiles)}")
    rows = [line.split("\t") for line in root.ask(have("go-nvml"), "parts").splitlines()]
    known = {each.name: each.memory for each in instance_profiles(models()["nvidia"][model])}
    assert [(int(row[0]), int(row[1]), int(row[4])) for row in rows] == [
        (card.index, number, known[name])
        for card in root.cards
        for number, name in enumerate(profiles)
    ]
    assert len({row[3] for row in rows}) == len(rows)


def test_cards_without_instances_have_no_parts(have: Have, root_of: MakeRoot) -> None:
    program = have("go-nvml")
    assert root_of("T4", 1).ask(program, "parts") == ""
    assert root_of("A100-SXM4-40GB", 128).ask(program, "parts") == ""
