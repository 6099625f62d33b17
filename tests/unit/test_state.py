import anyio
import pytest

from hami_mock.state import NodeState
from tests.unit.builders import cards


def make_state() -> tuple[NodeState, str, str]:
    first, second = cards(2)
    return NodeState([first, second]), first.uuid, second.uuid


def test_all_cards_are_healthy_at_first() -> None:
    state, first, second = make_state()
    assert state.unhealthy == frozenset()
    assert set(state.cards) == {first, second}


def test_a_card_becomes_unhealthy_and_healthy_again() -> None:
    state, first, second = make_state()
    state.set_health(first, healthy=False)
    assert state.unhealthy == {first}
    state.set_health(second, healthy=False)
    assert state.unhealthy == {first, second}
    state.set_health(first, healthy=True)
    assert state.unhealthy == {second}


@pytest.mark.parametrize("healthy", [True, False])
def test_a_change_is_told_once_to_who_waits(healthy: bool) -> None:
    async def scenario() -> None:
        state, first, _ = make_state()
        state.set_health(first, healthy=not healthy)
        before = state.next_change()
        assert not before.is_set()
        state.set_health(first, healthy=healthy)
        assert before.is_set()
        assert not state.next_change().is_set()

    anyio.run(scenario)


def test_what_changes_nothing_is_not_told() -> None:
    async def scenario() -> None:
        state, first, _ = make_state()
        change = state.next_change()
        state.set_health(first, healthy=True)
        assert not change.is_set()
        assert state.next_change() is change

    anyio.run(scenario)


def test_the_health_of_a_card_that_there_is_not_can_not_be_set() -> None:
    state, _, _ = make_state()
    with pytest.raises(KeyError):
        state.set_health("GPU-nope", healthy=False)
    assert state.unhealthy == frozenset()


def test_what_was_read_does_not_change_under_the_reader() -> None:
    state, first, _ = make_state()
    before = state.unhealthy
    state.set_health(first, healthy=False)
    assert before == frozenset()
