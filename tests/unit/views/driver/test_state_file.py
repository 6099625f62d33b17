"""The state file: made whole, gone on with, replaced, and never truncated."""

import mmap
import os
import threading
from pathlib import Path

import pytest

from hami_mock.views.driver.layout import HEADER, MAGIC, STATE_FILE, VERSION, file_size, live_offset
from hami_mock.views.driver.state_file import StateFile
from tests.unit.views.driver.reading import (
    card,
    driver_cards,
    events,
    header,
    node_state,
    sequences,
    shown_in,
)


def test_a_new_file_is_whole(tmp_path: Path) -> None:
    file, _ = shown_in(tmp_path, node_state(nvidia_cards=3))
    file.close()
    found = header(tmp_path)
    assert (found["magic"], found["version"], found["card_count"]) == (MAGIC, VERSION, 3)
    assert found["file_size"] == (tmp_path / STATE_FILE).stat().st_size == file_size(3)
    assert (found["driver_version"], found["driver_branch"]) == ("580.95.05", "r580_00")
    assert (found["nvml_version"], found["cuda_version"]) == ("13.580.95.05", 13000)
    assert found["generation"] > 0
    assert [path.name for path in tmp_path.iterdir()] == [STATE_FILE]
    assert (tmp_path / STATE_FILE).stat().st_mode & 0o777 == 0o644


def test_a_write_leaves_an_even_sequence_that_is_two_higher(tmp_path: Path) -> None:
    file, cards = shown_in(tmp_path, node_state(nvidia_cards=2))
    file.write(1, cards.shown().lives[1])
    assert sequences(tmp_path, 2) == [0, 2]


def test_the_next_agent_goes_on_with_the_same_file(tmp_path: Path) -> None:
    state = node_state(nvidia_cards=2)
    file, _ = shown_in(tmp_path, state)
    file.add_event(1, 8, 79)
    file.close()
    before, inode = header(tmp_path), (tmp_path / STATE_FILE).stat().st_ino
    again, _ = shown_in(tmp_path, state)
    again.add_event(0, 8, 31)
    assert (tmp_path / STATE_FILE).stat().st_ino == inode
    assert header(tmp_path)["generation"] == before["generation"]
    assert events(tmp_path) == [(1, 1, 8, 79), (2, 0, 8, 31)]
    assert header(tmp_path)["event_futex"] == before["event_futex"] + 1


def test_what_a_killed_writer_left_half_written_is_mended(tmp_path: Path) -> None:
    state = node_state(nvidia_cards=2)
    file, _ = shown_in(tmp_path, state)
    with (tmp_path / STATE_FILE).open("r+b") as broken:
        os.pwrite(broken.fileno(), (7).to_bytes(8, "little"), live_offset(0))
    file.close()
    shown_in(tmp_path, state)
    assert sequences(tmp_path, 2) == [10, 2]


@pytest.mark.parametrize(
    ("flags", "version"),
    [({"nvidia_cards": 3}, "580.95.05"), ({"nvidia_cards": 2}, "570.1"),
     ({"nvidia_cards": 2, "nvidia_model": "T4"}, "580.95.05")],
)  # fmt: skip
def test_other_cards_or_another_driver_take_a_new_file(
    tmp_path: Path, flags: dict[str, object], version: str
) -> None:
    file, _ = shown_in(tmp_path, node_state(nvidia_cards=2))
    file.add_event(1, 8, 79)
    before, old = header(tmp_path), (tmp_path / STATE_FILE).open("rb")
    with old, mmap.mmap(old.fileno(), 0, prot=mmap.PROT_READ) as memory:
        assert file.show(driver_cards(node_state(**flags), version).shown())
        # Whoever has the old one mapped learns that there is another.
        moved = HEADER.unpack(memory[: HEADER.size])
    assert (moved["moved"], header(tmp_path)["moved"]) == (1, 0)
    assert moved["event_futex"] == before["event_futex"] + 1
    now = header(tmp_path)
    assert now["generation"] > before["generation"]
    assert (now["event_sequence"], now["started"]) == (1, before["started"])
    file.add_event(0, 8, 31)
    assert events(tmp_path) == [(1, 1, 8, 79), (2, 0, 8, 31)]


def test_a_file_that_somebody_removed_is_made_again(tmp_path: Path) -> None:
    state = node_state(nvidia_cards=2)
    file, cards = shown_in(tmp_path, state)
    file.add_event(1, 8, 79)
    with (tmp_path / STATE_FILE).open("rb") as old:
        (tmp_path / STATE_FILE).unlink()
        assert file.is_other(cards.shown())
        assert file.show(cards.shown())
        # Whoever has it open goes on with the new one, where nothing is missing.
        assert HEADER.unpack(old.read(HEADER.size))["moved"] == 1
    assert not file.show(cards.shown())
    assert events(tmp_path) == [(1, 1, 8, 79)]


def test_events_of_a_card_that_is_gone_go_with_it(tmp_path: Path) -> None:
    file, _ = shown_in(tmp_path, node_state(nvidia_cards=2))
    file.add_event(1, 8, 79)
    file.add_event(0, 8, 31)
    file.show(driver_cards(node_state(nvidia_cards=1)).shown())
    assert events(tmp_path) == [(2, 0, 8, 31)]
    assert header(tmp_path)["event_sequence"] == 2


@pytest.mark.parametrize("content", [b"", b"something else", bytes(100_000)])
def test_what_is_no_state_file_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / STATE_FILE).write_bytes(content)
    (tmp_path / "cards.new").write_bytes(b"left by an agent that was killed")
    shown_in(tmp_path, node_state(nvidia_cards=1))
    assert header(tmp_path)["card_count"] == 1
    assert card(tmp_path, 0)["identity"]["minor"] == 0


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / STATE_FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=STATE_FILE):
        StateFile(tmp_path).show(driver_cards(node_state(nvidia_cards=1)).shown())
    assert not (tmp_path / "elsewhere").exists()


def test_the_ring_begins_again_after_256_events(tmp_path: Path) -> None:
    file, _ = shown_in(tmp_path, node_state(nvidia_cards=1))
    for number in range(1, 300):
        file.add_event(0, 8, number)
    found = events(tmp_path)
    assert [data for *_, data in found] == list(range(44, 300))
    assert [sequence for sequence, *_ in found] == list(range(44, 300))


def test_a_reader_never_sees_half_a_card(tmp_path: Path) -> None:
    """Two states of a card, written in turn until a reader's mapping has had each many times."""
    file, cards = shown_in(tmp_path, node_state(nvidia_cards=1))
    one = cards.shown().lives[0]
    other = bytes(255 - byte for byte in one)
    file.write(0, one)
    enough = threading.Event()

    def write() -> None:
        while not enough.is_set():
            file.write(0, other)
            file.write(0, one)

    writer = threading.Thread(target=write)
    seen = dict.fromkeys((one, other), 0)
    start = live_offset(0)
    with (
        (tmp_path / STATE_FILE).open("rb") as opened,
        mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as memory,
    ):
        writer.start()
        try:
            while min(seen.values()) < 2000:
                before = memory[start : start + 8]
                data = memory[start + 8 : start + 8 + len(one)]
                if before == memory[start : start + 8] and before[0] % 2 == 0:
                    seen[data] += 1  # no such key: half of each
        finally:
            enough.set()
            writer.join()
