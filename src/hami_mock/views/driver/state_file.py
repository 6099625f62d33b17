"""The state file as its writer sees it: made whole and renamed into place, then kept up to date."""

import ctypes
import mmap
import os
import platform
import stat
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hami_mock.views.driver.layout import (
    CARD,
    EVENT,
    HEADER,
    IDENTITY,
    LIVE,
    MAGIC,
    NO_INSTANCE,
    RING,
    STATE_FILE,
    VERSION,
    card_offset,
    file_size,
    live_offset,
)

_FUTEX_CALL = {"x86_64": 202, "aarch64": 98}
_FUTEX_WAKE, _ALL = 1, 2**31 - 1
_SEQUENCE_BYTES = 8
_MOST_COUNTED = 2**63
"""No agent has ever counted so far: somebody else has written there."""
_UUID_BYTES = IDENTITY.fields["uuid"].field.size
_KEPT = ("started", "event_sequence", "event_futex")


class Shown(NamedTuple):
    """What a file shows: the header's fields on the driver, identities, and live parts.

    A live part is given without its sequence.
    """

    about: Mapping[str, Any]
    identities: Sequence[bytes]
    lives: Sequence[bytes]


class StateFile:
    """The one file of a folder. Whoever writes it must be the only one to do so."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / STATE_FILE
        self._file = -1
        self._map: mmap.mmap | None = None
        self._sequences: list[int] = []
        self.generation = 0
        """Of the file that is shown now."""
        self.events = 0
        """The sequence of the newest event."""
        self._futex = 0

    def is_other(self, shown: Shown) -> bool:
        """Tell whether it would take a new file to show these cards. Raises OSError as `show`."""
        before = self._header()
        return before is None or not self._fits(before, shown)

    def show(self, shown: Shown) -> bool:
        """Show these cards; return whether that took a new file.

        What is there already goes on: so does the count of events, whatever the cards. Raises
        OSError, also for what is no file.
        """
        before = self._header()
        if before and self._fits(before, shown):
            self._take_over(before)
            for index, live in enumerate(shown.lives):
                self.write(index, live)
            return False
        self._replace(shown, before)
        return True

    def write(self, index: int, live: bytes) -> None:
        """Write the first bytes of a card's live part after its sequence, or all of them."""
        offset, sequence = live_offset(index), self._sequences[index]
        os.pwrite(self._file, (sequence + 1).to_bytes(8, "little"), offset)
        os.pwrite(self._file, live, offset + _SEQUENCE_BYTES)
        os.pwrite(self._file, (sequence + 2).to_bytes(8, "little"), offset)
        self._sequences[index] = sequence + 2

    def add_event(self, card: int, kind: int, data: int) -> None:
        """Add an event of a whole card, and wake whoever waits for one."""
        entry = {
            "sequence": self.events + 1,
            "type": kind,
            "data": data,
            "timestamp": microseconds(),
            "card": card,
            "gpu_instance": NO_INSTANCE,
            "compute_instance": NO_INSTANCE,
        }
        os.pwrite(self._file, EVENT.pack(entry), HEADER.offset("events", self.events % RING))
        self.events += 1
        os.pwrite(self._file, self.events.to_bytes(8, "little"), HEADER.offset("event_sequence"))
        self._wake()

    def close(self) -> None:
        """Let go of the file, which stays as it is."""
        if self._map is not None:
            self._map.close()
            self._map = None
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _header(self) -> dict[str, Any] | None:
        """Open the file that is there; return its header, or None if it is none of ours."""
        if self._file < 0:
            try:
                self._open(os.O_RDWR)
            except FileNotFoundError:
                return None
        data = os.pread(self._file, HEADER.size, 0)
        if len(data) < HEADER.size:
            return None
        header = HEADER.unpack(data)
        sizes = header["header_size"], header["card_size"]
        is_ours = header["magic"] == MAGIC and header["version"] == VERSION
        if not is_ours or sizes != (HEADER.size, CARD.size):
            return None
        if max(header["generation"], header["event_sequence"]) > _MOST_COUNTED:
            return None
        is_whole = os.fstat(self._file).st_size >= file_size(header["card_count"])
        return header if is_whole else None

    def _open(self, flags: int, path: Path | None = None) -> None:
        file = os.open(path or self._path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError(f"{self._path} is not a regular file: remove it")
        self._file = file

    def _fits(self, header: Mapping[str, Any], shown: Shown) -> bool:
        return (
            not header["moved"]
            and self._is_in_place()
            and header["card_count"] == len(shown.identities)
            and all(header[name] == value for name, value in shown.about.items())
            and all(self._identity(i) == each for i, each in enumerate(shown.identities))
        )

    def _is_in_place(self) -> bool:
        """Tell whether the open file still has its name: somebody may have removed it."""
        try:
            return os.path.samestat(os.fstat(self._file), self._path.lstat())
        except FileNotFoundError:
            return False

    def _identity(self, index: int) -> bytes:
        return os.pread(self._file, IDENTITY.size, card_offset(index))

    def _take_over(self, header: Mapping[str, Any]) -> None:
        self.events, self._futex = header["event_sequence"], header["event_futex"]
        self.generation = header["generation"]
        self._sequences = []
        for index in range(header["card_count"]):
            sequence = int.from_bytes(os.pread(self._file, 8, live_offset(index)), "little")
            # Odd: its writer died amid a write.
            self._sequences.append((sequence + sequence % 2) % _MOST_COUNTED)
        self._map_header()

    def _replace(self, shown: Shown, before: Mapping[str, Any] | None) -> None:
        old, old_map = self._file, self._map
        uuids = [self._uuid(i) for i in range(before["card_count"])] if before else []
        now = microseconds()
        header: dict[str, Any] = {
            **shown.about,
            "magic": MAGIC,
            "version": VERSION,
            "header_size": HEADER.size,
            "card_size": CARD.size,
            "card_count": len(shown.identities),
            "file_size": file_size(len(shown.identities)),
            "generation": max(now, before["generation"] + 1) if before else now,
            "started": now,
        }
        if before:
            header |= {name: before[name] for name in _KEPT}
            header["events"] = _moved(before["events"], uuids, shown.identities)
        new = self._path.with_suffix(".new")
        new.unlink(missing_ok=True)  # an agent that was killed may have left it
        self._open(os.O_RDWR | os.O_CREAT | os.O_EXCL, new)
        os.fchmod(self._file, 0o644)  # clients are anybody, whatever the umask
        pairs = zip(shown.identities, shown.lives, strict=True)
        cards = (identity + bytes(_SEQUENCE_BYTES) + live for identity, live in pairs)
        data = HEADER.pack(header) + b"".join(cards)
        # Page by page, each a write of its own. What comes in large pieces Linux also maps in large
        # pieces: readers would have a MiB of it in memory who look at one card.
        with os.fdopen(os.dup(self._file), "wb", buffering=mmap.PAGESIZE) as writer:
            for start in range(0, len(data), mmap.PAGESIZE):
                writer.write(data[start : start + mmap.PAGESIZE])
        new.replace(self._path)
        self._take_over(header | {name: header.get(name, 0) for name in _KEPT})
        if old >= 0:
            if before:
                self._leave(old, before)
            if old_map is not None:
                old_map.close()
            os.close(old)

    def _uuid(self, index: int) -> bytes:
        return self._identity(index)[:_UUID_BYTES]

    def _leave(self, old: int, header: Mapping[str, Any]) -> None:
        """Send the readers of the old file to the new one."""
        os.pwrite(old, (1).to_bytes(4, "little"), HEADER.offset("moved"))
        with mmap.mmap(old, HEADER.size) as memory:
            _wake(memory, os.pread(old, 4, HEADER.offset("event_futex")), old)

    def _map_header(self) -> None:
        self._map = mmap.mmap(self._file, HEADER.size)

    def _wake(self) -> None:
        assert self._map is not None
        _wake(self._map, self._futex.to_bytes(4, "little"), self._file)
        self._futex = (self._futex + 1) % 2**32


def microseconds() -> int:
    return time.time_ns() // 1000


def _moved(
    events: Sequence[Mapping[str, Any]], before: Sequence[bytes], identities: Sequence[bytes]
) -> list[Mapping[str, Any]]:
    """Return the events of cards that are still there; the places of others stay empty."""
    now = {identity[:_UUID_BYTES]: index for index, identity in enumerate(identities)}
    places = {index: now[uuid] for index, uuid in enumerate(before) if uuid in now}
    return [
        {**event, "card": places[event["card"]]} if event["card"] in places else {}
        for event in events
    ]


def _wake(header: mmap.mmap, before: bytes, file: int) -> None:
    """Change the word that readers sleep on, and wake all of them."""
    offset = HEADER.offset("event_futex")
    changed = (int.from_bytes(before, "little") + 1) % 2**32
    os.pwrite(file, changed.to_bytes(4, "little"), offset)
    call = _FUTEX_CALL.get(platform.machine())
    if call is None:
        return  # they look again by themselves within a second
    word = ctypes.c_uint32.from_buffer(header, offset)
    ctypes.CDLL(None).syscall(call, ctypes.byref(word), _FUTEX_WAKE, _ALL, None, None, 0)


assert LIVE.offset("timestamp") == _SEQUENCE_BYTES
