"""Every judge sees every card: its place, UUID, name and memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hami_mock.vendors.catalog import models
from tests.driver.state_file import StateFile, live
from tests.judges.conftest import Have, MakeRoot
from tests.judges.driver_root import DriverRoot
from tests.judges.nodes import NODES
from tests.judges.seeing import OLD, SEERS


@pytest.mark.parametrize(("model", "cards"), NODES)
@pytest.mark.parametrize("judge", SEERS)
def test_sees_the_cards(judge: str, model: str, cards: int, have: Have, root_of: MakeRoot) -> None:
    program, root = have(judge), root_of(model, cards)
    assert [each.card for each in SEERS[judge](program, root)] == root.cards
    assert len(root.cards) == cards


@pytest.mark.parametrize("judge", SEERS)
def test_sees_every_model_of_the_catalog(judge: str, have: Have, every_model: DriverRoot) -> None:
    assert [each.card for each in SEERS[judge](have(judge), every_model)] == every_model.cards
    assert {each.name for each in every_model.cards} == {
        model.product for model in models()["nvidia"].values()
    }


@pytest.mark.parametrize("judge", SEERS)
def test_sees_what_each_card_does(
    judge: str, have: Have, invented: Callable[[int], tuple[DriverRoot, StateFile]]
) -> None:
    program, (root, _) = have(judge), invented(16)
    seen = SEERS[judge](program, root)
    assert [each.card for each in seen] == root.cards
    reserved = 500 if judge in OLD else 0
    for index, each in enumerate(seen):
        shown = live(index)
        assert each.used == 1000 + index + reserved
        assert each.utilization == shown["gpu"]
        assert each.power == 250
        assert each.temperature == shown["temperature"]
