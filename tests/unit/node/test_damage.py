from hami_mock.faults.actions import Action, perform
from hami_mock.node.damage import Damage
from hami_mock.node.physics import Condition
from hami_mock.node.state import NodeState
from tests.unit.builders import laid_out


def test_the_last_xid_of_each_card_is_the_newest() -> None:
    state = NodeState(laid_out(None))
    first, second, *_ = (card.uuid for card in state.node.cards)
    damage = Damage(state)
    damage.note()
    assert damage.of(first) == Condition()
    for target, xid in (("nvidia/0", 79), ("nvidia/0", 13), ("nvidia/1", 31), ("nvidia/0", 79)):
        perform(Action("fail", (target,), {"xid": xid}), state)
        damage.note()
    assert (damage.of(first).errors.last_xid, damage.of(second).errors.last_xid) == (79, 31)
    assert damage.of(first).trouble.stopped
    perform(Action("recover", ("nvidia/0",)), state)
    damage.note()
    assert not damage.of(first).trouble.stopped
    assert damage.of(first).errors.last_xid == 79
