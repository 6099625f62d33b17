from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.errors import UsageError
from hami_mock.faults.actions import Action, Share, names, perform
from hami_mock.node.event_kinds import Kind
from hami_mock.node.fault import Call, Fault, FaultKind, On
from hami_mock.node.fault_kinds import (
    BROKEN,
    DEGRADED,
    DOWN,
    HUNG,
    LOST,
    REFUSED,
    SLOW,
    UNHEALTHY,
    VERBS,
)
from hami_mock.node.state import NodeState
from hami_mock.node.xid import APPLICATION_ERRORS, describe
from tests.unit.builders import laid_out, problems_of
from tests.unit.faults.scripts import takes

NODE = laid_out(nvidia_cards=4, nvidia_memory=10, ascend_cards=0, iluvatar_cards=0)
GPU, CORES = "nvidia.com/gpu", "nvidia.com/gpucores"
UUIDS = {card.name: card.uuid for card in NODE.cards}


@pytest.fixture
def state() -> NodeState:
    return NodeState(NODE)


def do(state: NodeState, verb: str, *targets: str, **parameters: Any) -> tuple[Fault, ...]:
    return perform(Action(verb, targets or ("all",), parameters), state)


def cards(uuids: frozenset[str]) -> set[str]:
    return {name for name, uuid in UUIDS.items() if uuid in uuids}


def kinds(state: NodeState) -> list[Kind]:
    return [event.kind for event in state.events.after(0)]


@pytest.mark.parametrize(
    ("verb", "seen", "kind"),
    [
        ("fail", "unhealthy", Kind.CARD_FAILED),
        ("lose", "lost", Kind.CARD_LOST),
        ("degrade", "degraded", Kind.CARD_DEGRADED),
    ],
)
def test_cards_fail_vanish_and_degrade(state: NodeState, verb: str, seen: str, kind: Kind) -> None:
    faults = do(state, verb, "nvidia/1", "mlu/0", reason="old age")
    assert cards(getattr(state, seen)) == {"nvidia/1", "mlu/0"}
    others = {"unhealthy", "lost", "degraded"} - {seen}
    assert not any(getattr(state, other) for other in others)
    assert len(faults) == 2
    assert [(e.kind, e.subject) for e in state.events.after(0)] == [
        (kind, "nvidia/1"),
        (kind, "mlu/0"),
    ]
    assert all(event.message.endswith(": old age") for event in state.events.after(0))
    state.end_faults(*faults)
    assert not getattr(state, seen)


@pytest.mark.parametrize(
    ("verb", "left"),
    [("recover", {"lost"}), ("return", {"unhealthy", "degraded"}), ("clear", set())],
)
def test_each_verb_mends_what_it_is_for(state: NodeState, verb: str, left: set[str]) -> None:
    for breaking in ("fail", "lose", "degrade"):
        do(state, breaking, "nvidia/0", "nvidia/1")
    assert do(state, verb, "nvidia/0") == ()
    for seen in ("unhealthy", "lost", "degraded"):
        mended = set() if seen in left else {"nvidia/0"}
        assert cards(getattr(state, seen)) == {"nvidia/0", "nvidia/1"} - mended


def test_one_recovery_ends_all_that_made_a_card_unhealthy(state: NodeState) -> None:
    do(state, "fail", "nvidia/0", xid=79)
    do(state, "fail", "nvidia/0", reason="hot")
    do(state, "recover", "nvidia/0")
    assert state.faults == ()
    assert kinds(state)[-1] is Kind.CARD_RECOVERED


@pytest.mark.parametrize(
    ("verb", "effect", "parameters"),
    [
        ("down", DOWN, {}),
        ("refuse", REFUSED, {}),
        ("delay", SLOW, {"call": Call.ALLOCATE, "seconds": 2.0}),
        ("hang", HUNG, {"call": Call.PRESTART, "seconds": 60.0}),
        ("break", BROKEN, {"call": Call.ALLOCATE, "reason": "no memory"}),
    ],
)
def test_resources_go_down_and_their_calls_go_wrong(
    state: NodeState, verb: str, effect: FaultKind, parameters: dict[str, Any]
) -> None:
    faults = do(state, verb, GPU, "mlu", **parameters)
    assert {name for name in state.resources if state.has(name, effect)} == {
        GPU,
        "cambricon.com/vmlu",
    }
    assert [(f.call, f.seconds) for f in faults] == [
        (parameters.get("call"), parameters.get("seconds", 0.0))
    ] * 2
    assert not state.has(CORES, effect)
    assert kinds(state) == [Kind.FAULT_BEGAN] * 2
    do(state, "clear", GPU)
    assert not state.has(GPU, effect)
    assert state.has("cambricon.com/vmlu", effect)
    state.end_faults(*faults)
    assert state.faults == ()
    assert kinds(state)[2:] == [Kind.FAULT_ENDED] * 2


def test_up_ends_what_kept_a_resource_from_the_kubelet_and_nothing_else(state: NodeState) -> None:
    do(state, "down", GPU, CORES)
    do(state, "refuse", GPU)
    do(state, "break", GPU, call=Call.ALLOCATE)
    do(state, "fail", "nvidia/0")
    do(state, "up", GPU)
    assert [(f.kind, set(f.targets)) for f in state.faults] == [
        (DOWN, {CORES}),
        (BROKEN, {GPU}),
        (UNHEALTHY, {UUIDS["nvidia/0"]}),
    ]


def test_a_drop_is_counted_for_each_resource_and_leaves_no_fault(state: NodeState) -> None:
    assert do(state, "drop", GPU, CORES) == ()
    assert do(state, "drop", GPU, reason="a test") == ()
    assert state.drops == {GPU: 2, CORES: 1}
    assert state.faults == ()
    assert [event.message for event in state.events.after(0)] == [
        "on command",
        "on command",
        "a test",
    ]


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_what_is_not_there_is_an_error_for_every_verb_and_changes_nothing(
    state: NodeState, verb: str
) -> None:
    action = Action(verb, ("all", "nvidia/9"))
    (line,) = problems_of(lambda: perform(action, state))
    assert "'nvidia/9' on this node" in line
    assert (state.faults, kinds(state), dict(state.drops)) == ((), [], {})
    assert problems_of(lambda: names(action, state)) == (line,)


def test_clear_takes_cards_and_resources_in_one_breath(state: NodeState) -> None:
    do(state, "fail", "nvidia/0", "nvidia/1")
    do(state, "down", GPU, CORES)
    do(state, "clear", "nvidia/0", GPU)
    assert [set(f.targets) for f in state.faults] == [{UUIDS["nvidia/1"]}, {CORES}]
    do(state, "clear", "nvidia")
    assert state.faults == ()


@pytest.mark.parametrize("xid", sorted(APPLICATION_ERRORS))
def test_an_applications_error_is_counted_but_the_card_stays_healthy(
    state: NodeState, xid: int
) -> None:
    assert do(state, "fail", "nvidia/0", xid=xid) == ()
    assert state.xids == {(UUIDS["nvidia/0"], xid): 1}
    assert not state.unhealthy
    (event,) = state.events.after(0)
    assert (event.kind, event.subject) == (Kind.XID, "nvidia/0")
    assert event.message == f"{describe(xid)}: an application's error"


@pytest.mark.parametrize("xid", [48, 79, 12345])
def test_any_other_xid_makes_the_card_unhealthy(state: NodeState, xid: int) -> None:
    do(state, "fail", "nvidia", xid=xid, reason="a test")
    assert cards(state.unhealthy) == {f"nvidia/{index}" for index in range(4)}
    assert state.xids.total() == 4
    assert kinds(state) == [Kind.XID] * 4 + [Kind.CARD_FAILED] * 4
    assert state.events.after(7)[0].message == f"unhealthy: {describe(xid)}, a test"
    do(state, "recover", "nvidia")
    assert state.xids.total() == 4


def test_which_xids_do_no_harm_can_be_changed(state: NodeState) -> None:
    state.ignored_xids = frozenset({79})
    do(state, "fail", "nvidia/0", xid=79)
    assert not state.unhealthy
    do(state, "fail", "nvidia/0", xid=13)
    assert cards(state.unhealthy) == {"nvidia/0"}


@pytest.mark.parametrize("targets", [("mlu/0",), ("nvidia/0", "mlu"), ("all",)])
@pytest.mark.parametrize("xid", [13, 79])
def test_a_xid_on_another_vendors_card_is_refused_and_counted_nowhere(
    state: NodeState, targets: tuple[str, ...], xid: int
) -> None:
    (line,) = problems_of(lambda: do(state, "fail", *targets, xid=xid))
    assert line.startswith("only NVIDIA cards have Xids, not mlu/0")
    assert not state.xids
    assert not state.unhealthy


def test_some_are_chosen_by_the_seed(state: NodeState) -> None:
    action = Action("fail", ("nvidia",), choose=2)
    chosen = [names(action, state, Random(7)) for _ in range(3)]
    assert chosen[0] == chosen[1] == chosen[2]
    assert len(chosen[0]) == 2
    every = {names(action, state, Random(seed)) for seed in range(50)}
    assert len(every) == 6, "each pair of four is chosen at some time"
    perform(action, state, Random(7))
    assert cards(state.unhealthy) == set(chosen[0])


@pytest.mark.parametrize(
    ("choose", "count"),
    [(1, 1), (4, 4), (9, 4), (Share(50), 2), (Share(1), 1), (Share(100), 4), (Share(62), 2),
     (Share(63), 3)],
    ids=str,
)  # fmt: skip
def test_as_many_are_chosen_as_are_asked_for_and_there_are(
    state: NodeState, choose: int | Share, count: int
) -> None:
    assert len(perform(Action("lose", ("nvidia",), choose=choose), state)) == count


def test_resources_are_chosen_too(state: NodeState) -> None:
    chosen = names(Action("down", ("nvidia",), choose=1), state, Random(1))
    assert len(chosen) == 1
    assert chosen[0].startswith("nvidia.com/")


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (Action("clear"), "clear all"),
        (Action("fail", ("nvidia/0",), {"xid": 79}), f"fail nvidia/0: {describe(79)}"),
        (
            Action("delay", (GPU,), {"call": Call.ALLOCATE, "seconds": 1.5}),
            f"delay allocate 1.5s {GPU}",
        ),
        (Action("lose", ("mlu", "nvidia"), choose=Share(50)), "lose 50% of mlu, nvidia"),
        (Action("down", (GPU,), {"reason": "a test"}), f"down {GPU}: a test"),
    ],
)
def test_an_action_in_words(action: Action, text: str) -> None:
    assert action.text == text


words = st.sampled_from(
    ["all", "nvidia", "mlu", "nvidia/0", "nvidia/?", "mlu/1", GPU, CORES, "*", "nope"]
)


def any_parameters(verb: str, xid: int | None, **others: Any) -> Action:
    parameters = {"xid": xid} if xid and takes(verb, "xid") else {}
    return Action(verb, parameters=parameters, **others)


any_action = st.builds(
    any_parameters,
    verb=st.sampled_from(sorted(VERBS)),
    targets=st.lists(words, min_size=1, max_size=2).map(tuple),
    xid=st.sampled_from([None, None, 13, 79]),
    choose=st.sampled_from([None, 1, Share(50)]),
)


@given(st.lists(any_action, max_size=15), st.integers(0, 5))
def test_after_anything_clear_leaves_no_fault(actions: list[Action], seed: int) -> None:
    state, random = NodeState(NODE), Random(seed)
    for action in actions:
        before = (state.faults, state.events.counts.total())
        try:
            begun = perform(action, state, random)
        except UsageError:
            assert (state.faults, state.events.counts.total()) == before
            continue
        assert begun == tuple(f for f in state.faults if f not in before[0]) or not begun
        for effect, seen in (
            (UNHEALTHY, state.unhealthy),
            (LOST, state.lost),
            (DEGRADED, state.degraded),
        ):
            assert seen == {t for f in state.faults if f.kind is effect for t in f.targets}
        assert all(
            f.targets <= (set(state.cards) if f.kind.on is On.CARDS else set(state.resources))
            for f in state.faults
        )
    do(state, "clear")
    assert state.faults == ()
    assert not state.unhealthy | state.lost | state.degraded
    began = sum(
        state.events.counts[kind]
        for kind in (Kind.CARD_FAILED, Kind.CARD_LOST, Kind.CARD_DEGRADED, Kind.FAULT_BEGAN)
    )
    ended = sum(
        state.events.counts[kind]
        for kind in (Kind.CARD_RECOVERED, Kind.CARD_RETURNED, Kind.CARD_RESTORED, Kind.FAULT_ENDED)
    )
    assert began == ended, "each fault that began is told to have ended, once"
    assert state.events.counts[Kind.XID] == state.xids.total()
    assert state.events.counts[Kind.STREAMS_DROPPED] == state.drops.total()


@given(st.lists(any_action, max_size=8))
def test_lifting_all_that_an_action_began_ends_it_wherever_it_is_left(
    actions: list[Action],
) -> None:
    state = NodeState(NODE)
    begun: list[Fault] = []
    for action in actions:
        try:
            begun += perform(action, state, Random(1))
        except UsageError:
            continue
    state.end_faults(*begun)
    assert state.faults == ()
