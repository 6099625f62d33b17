from collections.abc import Mapping, Set

from hypothesis import given
from hypothesis import strategies as st

from hami_mock.views.labels.ownership import ANNOTATION, Difference, difference, noted

COUNT, PRODUCT, STAMP = "nvidia.com/gpu.count", "nvidia.com/gpu.product", "nvidia.com/gfd.timestamp"
WANTED = {COUNT: "2", PRODUCT: "Tesla-T4"}


def compare(
    labels: Mapping[str, str],
    wanted: Mapping[str, str] = WANTED,
    ours: Set[str] = frozenset(),
    note: str = "",
) -> Difference:
    annotations = {ANNOTATION: note} if note else {}
    return difference(wanted, labels, annotations, ours | noted(annotations), {STAMP})


def test_what_is_missing_is_set_and_noted() -> None:
    found = compare({"x": "y"})
    assert found.labels == WANTED
    assert found.note == f"{COUNT},{PRODUCT}"
    assert not found.is_none


def test_what_is_there_and_noted_is_not_written() -> None:
    assert compare(WANTED, note=f"{COUNT},{PRODUCT}").is_none


def test_somebody_elses_label_stays_and_is_not_ours() -> None:
    found = compare({COUNT: "8"})
    assert found.foreign == {COUNT}
    assert found.labels == {PRODUCT: "Tesla-T4"}
    assert found.ours == {PRODUCT}
    assert found.note == PRODUCT


def test_the_same_label_of_somebody_else_is_not_claimed() -> None:
    found = compare(WANTED)
    assert found.is_none
    assert not found.ours
    assert not found.foreign


def test_our_own_is_corrected_by_memory_or_by_note() -> None:
    for found in (
        compare({COUNT: "8", PRODUCT: "Tesla-T4"}, ours={COUNT, PRODUCT}),
        compare({COUNT: "8", PRODUCT: "Tesla-T4"}, note=f"{COUNT},{PRODUCT}"),
    ):
        assert found.labels == {COUNT: "2"}
        assert not found.foreign


def test_what_is_not_wanted_any_more_goes_if_it_is_ours() -> None:
    found = compare({**WANTED, "gpu": "on", "mlu": "on"}, note=f"gpu,{COUNT},{PRODUCT}")
    assert found.labels == {"gpu": None}
    assert found.note == f"{COUNT},{PRODUCT}"


def test_the_note_goes_with_the_last_label() -> None:
    found = compare({"gpu": "on"}, wanted={}, note="gpu")
    assert (found.labels, found.note, found.is_noted) == ({"gpu": None}, None, False)
    assert compare({}, wanted={}).is_none


def test_a_stamp_stays_as_it_was_written_and_comes_back_if_it_is_removed() -> None:
    wanted = {STAMP: "200"}
    assert compare({STAMP: "100"}, wanted, note=STAMP).is_none
    assert compare({}, wanted, note=STAMP).labels == {STAMP: "200"}
    assert compare({STAMP: "yesterday"}, wanted, note=STAMP).labels == {STAMP: "200"}
    assert compare({STAMP: "100"}, wanted).foreign == {STAMP}


def test_a_note_gives_us_nothing_that_could_not_be_ours() -> None:
    note = f"kubernetes.io/hostname,node-role.kubernetes.io/control-plane,{COUNT}, ,\n"
    assert noted({ANNOTATION: note}) == {COUNT}
    assert noted({}) == frozenset()
    many = ",".join(f"nvidia.com/{number}" for number in range(100_000))
    assert len(noted({ANNOTATION: many})) == 1000


KEYS = st.sampled_from([COUNT, PRODUCT, STAMP, "gpu", "mlu", "kubernetes.io/hostname"])
LABELS = st.dictionaries(KEYS, st.sampled_from(["1", "2", "x"]))


@given(LABELS, LABELS, st.lists(KEYS).map(",".join), st.text())
def test_after_one_patch_there_is_nothing_left_to_write(
    wanted: dict[str, str], labels: dict[str, str], note: str, odd: str
) -> None:
    wanted.pop("kubernetes.io/hostname", None)
    found = compare(labels, wanted, note=note + odd)
    after = {**labels, **found.labels}
    shown = {key: value for key, value in after.items() if value is not None}
    assert labels.get("kubernetes.io/hostname") == shown.get("kubernetes.io/hostname")
    assert compare(shown, wanted, found.ours, found.note or "").is_none
    # Nothing of somebody else's was touched.
    touched = {key for key in labels if shown.get(key) != labels[key]}
    assert touched <= noted({ANNOTATION: note + odd})
