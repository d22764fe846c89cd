"""The file of dead letters: what a crash, a full disk or somebody else does to it."""

import asyncio
import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from actors.clock import SystemClock
from kcl_py.dead_letters import parse
from kcl_py.dead_letters.address import Address
from kcl_py.dead_letters.file import FileDeadLetters
from kcl_py.errors import DeadLetterError
from tests.kcl_py.dead_letters.places import a_letter

pytestmark = pytest.mark.asyncio


def letters_in(path: Path) -> FileDeadLetters:
    return FileDeadLetters(Address("file", str(path)), clock=SystemClock())


@pytest.mark.parametrize("kept", [1, 100, len(a_letter().encoded())])
async def test_half_a_line_does_not_spoil_the_next_letter(tmp_path: Path, kept: int) -> None:
    """A crash in the middle of a write, or before the line's end, leaves such; its record comes again."""
    path = tmp_path / "letters"
    path.write_bytes(a_letter(b"first").encoded() + b"\n" + a_letter().encoded()[:kept])
    letters = letters_in(path)
    await letters.look()
    await letters.store(a_letter())
    first, _, last = path.read_bytes().splitlines()
    assert parse(first) == a_letter(b"first")
    assert parse(last) == a_letter()
    letters.close()


async def test_letter_is_on_the_disk_before_it_counts_as_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file and, when it is new, its name; and the event loop does not wait for the disk."""
    flushed: list[tuple[int, threading.Thread]] = []
    flush = os.fsync

    def note(descriptor: int) -> None:
        flushed.append((os.fstat(descriptor).st_ino, threading.current_thread()))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    path = tmp_path / "letters"
    letters = letters_in(path)
    await letters.store(a_letter())
    assert [inode for inode, _ in flushed] == [os.stat(written).st_ino for written in (path, tmp_path)]
    assert threading.main_thread() not in {thread for _, thread in flushed}
    letters.close()


@pytest.mark.parametrize(("number", "retryable"), [(errno.ENOSPC, True), (errno.EIO, True), (errno.EROFS, False)])
async def test_disk_that_fails_is_an_error_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, retryable: bool
) -> None:
    """A full disk may be emptied; the letter that comes again is whole."""
    letters, path, write = letters_in(tmp_path / "letters"), tmp_path / "letters", os.write

    def half(descriptor: int, data: Any) -> int:
        if len(data) < 200:
            raise OSError(number, os.strerror(number))
        return write(descriptor, data[:200])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", half)
        with pytest.raises(DeadLetterError, match=f"in file:{path}: found {os.strerror(number).lower()}; ") as caught:
            await letters.store(a_letter())
    assert caught.value.retryable is retryable
    await letters.store(a_letter())
    assert parse(path.read_bytes().splitlines()[-1]) == a_letter()
    letters.close()


async def test_file_that_is_moved_away_is_made_anew(tmp_path: Path) -> None:
    """As by a program that rotates logs, or by somebody who replays what is in it."""
    path = tmp_path / "letters"
    letters = letters_in(path)
    await letters.store(a_letter(b"first"))
    path.rename(tmp_path / "letters.1")
    await letters.store(a_letter())
    assert parse(path.read_bytes()) == a_letter()
    letters.close()


async def test_workers_that_share_a_file_write_whole_lines(tmp_path: Path) -> None:
    """Longer than what a pipe or a page takes at once."""
    path = tmp_path / "letters"
    workers = [letters_in(path) for _ in range(4)]
    stored = [a_letter(b"%d" % number * 20_000, sub_sequence_number=number) for number in range(24)]
    await asyncio.gather(*(workers[number % 4].store(letter) for number, letter in enumerate(stored)))
    found = [parse(line) for line in path.read_bytes().splitlines()]
    assert sorted(found, key=lambda letter: letter.record.position) == stored
    for worker in workers:
        worker.close()


async def test_disk_that_hangs_is_given_up_and_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``store`` ends at its deadline; the error may be tried again."""
    monkeypatch.setattr("kcl_py.dead_letters.file.DEADLINE_S", 0.05)
    letters, go_on = letters_in(tmp_path / "letters"), threading.Event()
    monkeypatch.setattr(os, "fsync", lambda _: go_on.wait())
    try:
        with pytest.raises(DeadLetterError, match="found no answer of the disk in time") as caught:
            await letters.store(a_letter())
        assert caught.value.retryable
    finally:
        go_on.set()
        letters.close()
