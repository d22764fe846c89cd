"""What a terminal shows of the status: what needs attention is on it, however large the fleet and small the screen."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from kcl_py.cli.screen import Look, screen
from kcl_py.config import Config
from kcl_py.leases.row import Halt, LeaseRow, Native, Paused, WorkerRow
from kcl_py.status import report

CONFIG = Config(app="demo", stream="flights", processor="m:C")
NOW_S = 1_767_258_000.0
"""2026-01-01T09:00:00Z."""
HEIGHT = 40
HOST = "ip-10-0-0-12.eu-west-1.compute.internal"
ONE, TWO = f"{HOST}-12345-1f0cd9a1/1e24ad3c", f"{HOST}-12377-77ab20ee/ed272442"
PLACE = "49680634167093564963910005624663557668153065835998478354"
REASON = "ValueError: cannot parse order 7: expected a decimal price, found 'twelve fifty'"


def drawn(look: Look, *, width: int = 160, height: int | None = HEIGHT, later_s: float = 0.0) -> list[str]:
    """Return the lines of the screen."""
    console = Console(file=StringIO(), width=width, height=HEIGHT)
    console.print(screen(look, NOW_S + later_s, width, height))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


def a_look(*rows: LeaseRow, workers: int = 2, dead: int = 0, latest: tuple[str, ...] = (), trouble: str = "") -> Look:
    """Return a look at workers of which those with the last names are dead."""
    names = [f"w{number}" for number in range(workers)]
    living = [WorkerRow(name, state="active", updated_s=int(NOW_S)) for name in names[: workers - dead]]
    silent = [WorkerRow(name, state="active", held=3, updated_s=int(NOW_S) - 99) for name in names[workers - dead :]]
    return Look(report(CONFIG, rows, living + silent, NOW_S), latest=latest, trouble=trouble)


def a_fleet() -> Look:
    """Return a look at two workers on one host; one shard is halted, and one worker takes no more."""
    halted = Native(owner=ONE, lag_ms=8596, lag_at_ms=int(NOW_S * 1000) - 300, halted=Halt(REASON, PLACE))
    rows = [
        LeaseRow("shardId-000000000000", owner=TWO, checkpoint=PLACE, native=Native(owner=TWO, lag_ms=0, lag_at_ms=1)),
        LeaseRow("shardId-000000000001", owner=ONE, checkpoint=PLACE),
        LeaseRow("shardId-000000000002", owner=ONE, native=halted),
    ]
    workers = [
        WorkerRow(ONE, state="active", held=2, updated_s=int(NOW_S)),
        WorkerRow(TWO, state="active", held=1, held_off="no processor has initialised yet", updated_s=int(NOW_S)),
    ]
    return Look(report(CONFIG, rows, workers, NOW_S))


def row_of(lines: list[str], key: str) -> list[str]:
    """Return the cells of the row that begins so."""
    return next(line.split() for line in lines if line.startswith(key))


@pytest.mark.parametrize("width", [80, 100, 120])
def test_who_and_why_can_be_read(width: int) -> None:
    """Owners on one host differ, reasons are whole, and the place can be copied."""
    lines = drawn(a_fleet(), width=width, height=24)
    assert max(map(len, lines)) <= width
    first, second = row_of(lines, "shardId-000000000000")[2], row_of(lines, "shardId-000000000001")[2]
    assert first != second
    assert (first[-9:], second[-9:]) == ("/ed272442", "/1e24ad3c")
    at = next(number for number, line in enumerate(lines) if line.startswith("shardId-000000000002"))
    below = " ".join(line.strip() for line in lines[at + 1 : at + 3])
    assert f"halted: {REASON}" in below
    assert f"at {PLACE}" in below
    assert any(PLACE in line for line in lines)
    assert "  takes no more: no processor has initialised yet" in lines


@pytest.mark.parametrize("width", [40, 50, 60, 80])
def test_a_name_and_its_number_stay_together(width: int) -> None:
    """In the head, wherever it is broken."""
    head = " ".join(drawn(a_fleet(), width=width)[:4])
    lines = drawn(a_fleet(), width=width)
    for total in ("shards 3", "owned 3", "halted 1", "max_lag_ms 8596", "spilled 0"):
        assert total in head
        assert any(total in line for line in lines)


def test_columns_that_say_nothing_are_left_out() -> None:
    """They come back with the first row that says something."""
    plain = LeaseRow("s-1", owner="w0")
    assert row_of(drawn(a_look(plain)), "shard") == ["shard", "state", "owner", "checkpoint"]
    assert row_of(drawn(a_look(plain)), "worker") == ["worker", "state", "held", "seen", "s", "ago"]
    flowing = LeaseRow("s-2", owner="w1", throughput_kbps=0)
    assert row_of(drawn(a_look(plain, flowing)), "shard")[2:] == ["owner", "checkpoint", "kB/s"]


def test_silent_workers_that_hold_nothing_are_only_counted() -> None:
    """Whatever they held when they last wrote; one whose shards nobody has taken yet comes first."""
    rows = [LeaseRow("s-0", owner="w0"), LeaseRow("s-1", owner="w4")]
    lines = drawn(a_look(*rows, workers=5, dead=4))
    assert [line.split()[:3] for line in lines if line.startswith("w")][1:] == [
        ["w4", "silent", "1"],
        ["w0", "active", "1"],
    ]
    assert "3 silent workers that hold nothing" in lines
    assert "1 silent worker that holds nothing" in drawn(a_look(*rows, workers=6, dead=2))


def test_what_is_stale_says_since_when_and_grows_older() -> None:
    """The clock goes on, and so do ages; what was seen is not called silent for that."""
    look = replace(a_fleet(), trouble="cannot read lease table 'demo': TimeoutError", is_stale=True)
    lines = drawn(look, width=80, height=24, later_s=15)
    assert "09:00:15 UTC  read 15 s ago" in lines[0]
    assert any(line.startswith("stale since 09:00:00 UTC: cannot read lease table 'demo'") for line in lines)
    assert row_of(lines, "…")[1:] == ["active", "2", "15.0"]
    assert "15.3" in row_of(lines, "shardId-000000000002")


def test_the_screen_holds_what_is_wrong_of_a_thousand_shards() -> None:
    """It scrolls nothing away, and says how much is not shown."""
    rows = [LeaseRow(f"s-{number:04}", owner="w0", native=Native(owner="w0", lag_ms=number)) for number in range(1000)]
    rows[500] = LeaseRow("s-0500", owner="w1", native=Native(owner="w1", halted=Halt("ValueError: [no]", "1" * 56)))
    rows[501] = LeaseRow("s-0501")
    ended = LeaseRow("s-ended", checkpoint="SHARD_END")
    lines = drawn(a_look(*rows, ended, workers=100, latest=("a", "b"), trouble="no answer"))
    assert len(lines) < HEIGHT
    shards = [line.split()[0] for line in lines if line.startswith("s-")]
    assert shards[:4] == ["s-0500", "s-0501", "s-0999", "s-0998"]
    assert f"and {1000 - len(shards)} more shards that are well" in lines
    assert lines[lines.index(next(line for line in lines if line.startswith("s-0500"))) + 1] == (
        f"  halted: ValueError: [no]  at {'1' * 56}"
    )
    assert "no answer" in lines[1]
    assert any("more workers" in line for line in lines)
    assert lines[-2:] == ["a", "b"]


@pytest.mark.parametrize("height", [16, 24, 40])
def test_a_low_screen_shows_who_why_and_how_many_more(height: int) -> None:
    """With two workers, halted shards and many that are well."""
    well = [LeaseRow(f"s-{number:04}", owner="w1", native=Native(owner="w1", lag_ms=1)) for number in range(50)]
    bad = [
        LeaseRow(f"s-bad{number}", owner="w0", native=Native(owner="w0", halted=Halt(REASON, PLACE)))
        for number in "123"
    ]
    latest = tuple(f"08:59:5{number} something has changed" for number in range(8))
    lines = drawn(a_look(*well, *bad, latest=latest), width=80, height=height)
    assert len(lines) < height
    assert f"  at {PLACE}" in "\n".join(lines)
    assert sum(line.startswith(("worker ", "w0 ", "w1 ")) for line in lines) == 3
    assert any(line.startswith("and ") and " more shards" in line for line in lines)
    assert latest[0] in lines


@pytest.mark.parametrize("height", [None, 16, 40])
@pytest.mark.parametrize("width", [60, 160])
def test_how_a_halted_shard_goes_on_is_said_as_long_as_there_is_one(height: int | None, width: int) -> None:
    """Below the shards, however low the screen; where nothing has halted there is nothing to say."""
    for latest in ((), ("08:59:50 something has changed",)):
        lines = drawn(replace(a_fleet(), latest=latest), width=width, height=height)
        said = " ".join(line.strip() for line in lines)
        assert "kcl resume FILE --shard ID, once its cause is mended" in said
    assert not any("kcl resume" in line for line in drawn(a_look(LeaseRow("s-1", owner="w0")), height=height))


@pytest.mark.parametrize("rows", [[], [LeaseRow("s-0", checkpoint="SHARD_END")]])
def test_without_shards_to_read_there_is_no_table(rows: list[LeaseRow]) -> None:
    """As before the first worker, or when a stream is read to its end; nothing is counted that is not there."""
    lines = drawn(Look(report(CONFIG, rows, [], NOW_S)))
    assert len(lines) == 1


def test_without_a_height_all_is_shown() -> None:
    """As for a command that prints once."""
    rows = [LeaseRow(f"s-{number:04}", owner="w0") for number in range(100)]
    lines = drawn(a_look(*rows, workers=50), height=None)
    assert sum(line.startswith("s-") for line in lines) == 100
    assert sum(line.startswith("w") for line in lines) == 51


def test_the_screen_says_how_much_that_is_wrong_it_does_not_show() -> None:
    """Not that the rest is well."""
    halted = Native(owner="w0", halted=Halt("ValueError", "1"))
    rows = [LeaseRow(f"s-{number:04}", owner="w0", native=halted) for number in range(100)]
    others = (LeaseRow("s-free"), *(LeaseRow(f"s-{number}", owner="w99") for number in range(3)))
    lines = drawn(a_look(*rows, *others, workers=100, dead=1))
    shown = sum(line.startswith("s-") for line in lines)
    assert f"and {104 - shown} more shards, {101 - shown} of which are not well" in lines
    assert row_of(lines, "w9")[:3] == ["w99", "silent", "3"]


@pytest.mark.parametrize("width", [160, 80, 40])
def test_trouble_that_is_long_leaves_room_for_the_rest(width: int) -> None:
    """As a thousand items that are no leases; on a narrow screen, too, it ends above the lowest line."""
    rows = [LeaseRow(f"s-{number:04}", owner="w0", native=Native(owner="w0")) for number in range(100)]
    trouble = "; ".join(["cannot read the row of 's'"] * 1000)
    lines = drawn(a_look(*rows, trouble=trouble, latest=("a", "b")), width=width)
    assert len(lines) < HEIGHT
    assert sum(line.startswith("s") for line in lines) > 10


@pytest.mark.parametrize(("width", "shown"), [(80, 20), (60, 10)])
def test_shards_and_checkpoints_are_told_apart_on_a_narrow_screen(width: int, shown: int) -> None:
    """What gives way first are the long names of owners."""
    ids = [f"shardId-{number:012}" for number in range(12)]
    native = Native(owner=ONE, lag_ms=8596, lag_at_ms=int(NOW_S * 1000))
    rows = [LeaseRow(key, owner=ONE, checkpoint="7" * 56, native=native) for key in ids]
    found = [line.split() for line in drawn(a_look(*rows), width=width) if f"…{'7' * 11} " in line]
    assert [cells[0][1 - shown :] for cells in found] == [key[1 - shown :] for key in ids]
    assert {cells[2][-9:] for cells in found} == {"/1e24ad3c"}


@pytest.mark.parametrize("width", [80, 160])
def test_the_screen_shows_a_handoff_with_both_workers(width: int) -> None:
    """Who has it and who gets it; which shard it is stays readable."""
    lines = drawn(a_look(LeaseRow("shardId-000000000001", owner=TWO, checkpoint_owner=ONE)), width=width)
    _, state, owner, _ = row_of(lines, "shardId-000000000001")
    assert (state, owner[-9:]) == ("handoff", ONE[-9:])
    assert f"  asked for by {TWO}" in lines


@pytest.mark.parametrize("width", [80, 160])
def test_the_screen_says_what_is_paused_since_when_and_why(width: int) -> None:
    """And whether something may still be in hand."""
    at_ms = int(NOW_S * 1000) - 60_000
    moved, all_ = Paused(at_ms, "the database is being moved"), Paused(at_ms, is_of_stream=True)
    rows = (
        LeaseRow("s-1", owner="w0", native=Native(owner="w0", paused=moved, quiet_for=at_ms)),
        LeaseRow("s-2", owner="w0", native=Native(owner="w0", paused=all_)),
    )
    lines = drawn(a_look(*rows), width=width)
    assert "  paused since 2026-01-01T08:59:00.000Z: the database is being moved" in lines
    assert "  pausing since 2026-01-01T08:59:00.000Z, with the whole stream" in lines
    assert "paused 2" in " ".join(lines[:3])


def test_the_screen_has_a_value_under_each_of_its_columns() -> None:
    """The lag with its age, and how much a worker may hold."""
    said = Native(owner="w0", lag_ms=1234, lag_at_ms=int(NOW_S * 1000) - 5600)
    rows = [LeaseRow("s-1", owner="w1", checkpoint_owner="w0", checkpoint="7", throughput_kbps=8.9, native=said)]
    rows.append(LeaseRow("s-2", native=Native(fault="broken")))
    workers = [WorkerRow("w0", state="active", held=1, max_leases=2, updated_s=int(NOW_S) - 3)]
    lines = drawn(Look(report(CONFIG, rows, workers, NOW_S)))
    assert row_of(lines, "w0") == ["w0", "active", "1", "2", "3.0"]
    assert row_of(lines, "s-1") == ["s-1", "handoff", "w0", "7", "1234", "5.6", "8.9"]
    assert row_of(lines, "s-2") == ["s-2", "free", "-", "TRIM_HORIZON", "-", "-", "-"]
    assert "  could not be run: broken" in lines


@pytest.mark.parametrize("text", [r"\[/red]", r"\[/]", "[/red]", "[bold]", r"[red]\[", ":warning:", "\\"])
def test_the_screen_shows_text_from_outside_as_it_is(text: str) -> None:
    """Nothing in it is markup, so that an exception's words cannot end the watching."""
    rows = (
        LeaseRow("s-1", owner=text, native=Native(owner=text, halted=Halt(text, "1"))),
        LeaseRow("s-2", native=Native(fault=text)),
    )
    lines = drawn(a_look(*rows, trouble=text, latest=(text,)))
    assert row_of(lines, "s-1")[:3] == ["s-1", "owned", text]
    assert f"  halted: {text}  at 1" in lines
    assert f"  could not be run: {text}" in lines
    assert lines[1] == lines[-1] == text


def test_text_from_outside_cannot_steer_the_terminal() -> None:
    """Nor make its columns uneven."""
    evil = "\x1b[2J\r\n\u202e"
    rows = [LeaseRow(evil, owner=evil, native=Native(owner=evil, halted=Halt(evil, evil), fault=evil))]
    workers = [WorkerRow(evil, state=evil, held_off=evil, updated_s=int(NOW_S))]
    look = Look(report(CONFIG, rows, workers, NOW_S), trouble=evil)
    assert all(line.isprintable() for line in drawn(look))
