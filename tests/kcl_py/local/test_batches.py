"""Files of batches: whole batches through crashes, full disks and damage."""

import resource
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcl_py.local.batches import BatchFile, read_batches

CONTENTS = [b"first", b"", b"second" * 100, b"\x93kcl"]


@contextmanager
def disk_full_at(size: int) -> Iterator[None]:
    """Let no file of this process become larger than ``size`` bytes: what is written beyond fails, and half-way."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def written(path: Path, *contents: bytes) -> Path:
    with closing(BatchFile(path)) as file:
        for content in contents:
            file.append(content)
    return path


def read(path: Path, *, is_last: bool = True) -> list[bytes]:
    return [*read_batches(path, is_last=is_last)]


def test_batches_are_read_as_they_were_written_over_several_openings(tmp_path: Path) -> None:
    """In their order."""
    path = written(written(tmp_path / "file", *CONTENTS), b"third")
    assert read(path) == read(path, is_last=False) == [*CONTENTS, b"third"]


@given(cut=st.integers(min_value=1, max_value=640))
def test_what_a_crash_left_unfinished_is_cut_off_and_writing_goes_on(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    """Wherever the crash was: those that were whole stay, and what comes after them."""
    path = written(tmp_path_factory.mktemp("cut") / "file", *CONTENTS)
    path.write_bytes(path.read_bytes()[:-cut])
    whole = read(path)
    assert whole == CONTENTS[: len(whole)] != CONTENTS
    assert read(written(path, b"after")) == [*whole, b"after"]


@pytest.mark.parametrize("at", [0, 5, 9, 13, 20])
def test_damage_before_whole_batches_is_told_and_throws_nothing_away(tmp_path: Path, at: int) -> None:
    """In the mark, the length, the check sum or the content of the first batch."""
    path = written(tmp_path / "file", b"x" * 20, b"second")
    damaged = bytearray(path.read_bytes())
    damaged[at] ^= 0xFF
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match=f"cannot read {path}: expected a whole batch at byte 0, found damage"):
        read(path)
    assert path.read_bytes() == damaged


def test_half_a_batch_in_a_file_that_was_finished_is_damage(tmp_path: Path) -> None:
    """No crash can have left it there."""
    path = written(tmp_path / "file", b"first", b"second")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="found damage"):
        read(path, is_last=False)


def test_batch_within_the_content_of_an_unfinished_one_is_none(tmp_path: Path) -> None:
    """A record may hold a copy of such a file."""
    inner = written(tmp_path / "inner", b"first", b"second").read_bytes()
    path = written(tmp_path / "file", b"whole", inner + b"end")
    path.write_bytes(path.read_bytes()[:-1])
    assert read(path) == [b"whole"]


def test_batch_that_does_not_fit_is_not_there_and_the_next_one_that_fits_is(tmp_path: Path) -> None:
    """Half of it was written before the disk was full."""
    path = tmp_path / "file"
    with closing(BatchFile(path)) as file:
        file.append(b"first")
        with disk_full_at(1000):
            with pytest.raises(OSError, match="File too large"):
                file.append(b"x" * 5000)
            assert path.stat().st_size == 1000
            file.append(b"second")
        file.append(b"third")
    assert read(path, is_last=False) == [b"first", b"second", b"third"]


def test_file_that_ends_with_a_failed_write_is_closed_without_it(tmp_path: Path) -> None:
    """So that it is no damage later."""
    with closing(BatchFile(tmp_path / "file")) as file, disk_full_at(1000):
        file.append(b"first")
        with pytest.raises(OSError, match="File too large"):
            file.append(b"x" * 5000)
    assert read(tmp_path / "file", is_last=False) == [b"first"]
