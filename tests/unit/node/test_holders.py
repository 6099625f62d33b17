import pytest

from hami_mock.kubelet.holder import Holder
from hami_mock.node.holders import Holders

GPU = "nvidia.com/gpu"
POD = ("default", "train", "main")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_without_the_kubelet_nobody_knows() -> None:
    holders = Holders()
    holders.give(GPU, ["a"])
    assert holders.all is None
    assert holders.ids is None


def test_what_is_given_is_held_at_once_and_named_by_the_next_answer() -> None:
    holders = Holders()
    holders.name([])
    assert holders.ids == set()
    holders.give(GPU, ["a", "b"])
    assert holders.all == (Holder(None, {GPU: ("a", "b")}),)
    assert holders.has_unnamed
    named = Holder(POD, {GPU: ["a", "b"]})
    holders.name([named])
    assert holders.all == (named,)
    assert not holders.has_unnamed


def test_an_answer_from_before_does_not_free_what_was_given_since() -> None:
    holders = Holders()
    holders.give(GPU, ["b"])
    holders.name([Holder(POD, {GPU: ["a"]})])
    assert holders.ids == {"a", "b"}


def test_what_the_kubelet_does_not_know_in_time_is_free_again() -> None:
    clock = Clock()
    holders = Holders(clock)
    holders.give(GPU, ["a"])
    clock.now += 20
    holders.name([])
    assert holders.ids == {"a"}
    clock.now += 11
    holders.name([])
    assert holders.ids == set()
    assert not holders.has_unnamed


def test_where_the_kubelet_is_never_asked_nothing_piles_up() -> None:
    clock = Clock()
    holders = Holders(clock)
    for number in range(100):
        holders.give(GPU, [str(number)])
        clock.now += 10
    holders.name([])
    assert holders.ids == {"98", "99"}


def test_whoever_got_devices_later_comes_later() -> None:
    holders = Holders()
    holders.give(GPU, ["a"], ["card"])
    given = Holder(None, {GPU: ("a",)}, ("card",))
    assert holders.all is None
    assert [*holders.known] == [given]
    before = Holder(POD, {GPU: ["a", "b"]})
    holders.name([before])
    assert [*holders.known] == [before], "the kubelet was asked after it was given"
    holders.give(GPU, ["b"])
    assert [*holders.known] == [before, Holder(None, {GPU: ("b",)})]


def test_while_the_kubelet_is_silent_what_was_known_still_is() -> None:
    clock = Clock()
    holders = Holders(clock)
    named, slot = Holder(POD, {GPU: ["a"]}), Holder(None, {GPU: ("b",)}, ("card",))
    holders.name([named])
    holders.give(GPU, ["b"], ["card"])
    holders.give("nvidia.com/gpumem", ["c"])
    clock.now += 1000
    holders.name(None)
    assert holders.all is None
    assert [*holders.known] == [named, slot], "units don't say of which card they are"
    holders.name([])
    assert holders.known == ()


def test_a_container_without_devices_holds_nothing() -> None:
    holders = Holders()
    holders.give(GPU, [])
    assert not holders.has_unnamed


def test_a_resource_is_in_use_while_somebody_holds_a_device_of_it() -> None:
    assert Holders().resources is None
    holders = Holders()
    holders.name([Holder(POD, {GPU: ["a"], "nvidia.com/gpumem": []})])
    assert holders.resources == {GPU}
    holders.give("nvidia.com/gpucores", ["b"])
    assert holders.resources == {GPU, "nvidia.com/gpucores"}


def test_a_kubelet_that_can_not_be_asked_any_more_is_not_one_without_pods() -> None:
    holders = Holders()
    holders.name([Holder(POD, {GPU: ["a"]})])
    holders.name(None)
    assert holders.ids is None


@pytest.mark.parametrize("others", [0, 10])
def test_a_device_that_is_given_again_is_held_once(others: int) -> None:
    holders = Holders()
    holders.name([])
    for number in range(others):
        holders.give(GPU, [f"other-{number}"])
    for _ in range(3):
        holders.give(GPU, ["a", "b", "c"])
        holders.give("nvidia.com/gpumem", ["a"])
    assert holders.all is not None
    assert [held.devices for held in holders.all[others:]] == [
        {GPU: ("a", "b", "c")},
        {"nvidia.com/gpumem": ("a",)},
    ]


def test_there_is_a_limit_to_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hami_mock.node.holders._MOST_GIVEN", 10)
    holders = Holders()
    holders.name([])
    for number in range(100):
        holders.give(GPU, [f"{number}-{each}" for each in range(4)])
    assert holders.all is not None
    assert [held.devices[GPU][0] for held in holders.all] == ["98-0", "99-0"]
