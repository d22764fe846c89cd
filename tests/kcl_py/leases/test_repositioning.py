"""What an operator does to rows: the plan, before anything is written."""

from dataclasses import replace

import pytest

from kcl_py.leases.lineage import discover
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.leases.repositioning import (
    Change,
    ask_to_begin_at,
    ask_to_let_go,
    begin_anew,
    begin_at,
    in_one_line,
    let_go,
    moving,
    place_of,
)
from kcl_py.leases.requests import RELEASE, SEEK, Place
from kcl_py.leases.row import SHARD_END, Halt, LeaseRow, Native, Request, WorkerRow
from kcl_py.leases.start import start_position
from kcl_py.records import SequenceNumber
from kcl_py.sources.source import LATEST, TRIM_HORIZON, Listing, Position, PositionKind, ShardInfo

INSTANT = Position(PositionKind.AT_TIMESTAMP, 5_000)
PARENT = ShardInfo("s-0", (), (0, 9), closed=True, starts_at=1)
CHILD = ShardInfo("s-1", ("s-0",), (0, 9), closed=False, starts_at=2)
LISTING = Listing((PARENT, CHILD), server_time_s=100.0)
STREAM = "orders:17"


def in_words(changes: tuple[Change, ...]) -> list[str]:
    return [f"{change.key}: {change.what}" for change in changes]


@pytest.mark.parametrize(
    ("to", "said"),
    [
        (SequenceNumber(700), "after 900 -> after 700"),
        (TRIM_HORIZON, "after 900 -> TRIM_HORIZON"),
        (LATEST, "after 900 -> LATEST at 1970-01-01T00:01:38.000Z"),
        (INSTANT, "after 900 -> AT_TIMESTAMP at 1970-01-01T00:00:05.000Z"),
        (Position(PositionKind.AT_TIMESTAMP, 0), "after 900 -> AT_TIMESTAMP at 1970-01-01T00:00:00.000Z"),
    ],
)
def test_a_plan_says_from_where_to_where(to: Position | SequenceNumber, said: str) -> None:
    """So that who agrees to it knows to what."""
    row = LeaseRow("s-0", checkpoint="900", native=Native(start_ms=1))
    assert begin_at(row, place_of(row, to, now_ms=100_000)).what == said


@pytest.mark.asyncio
@pytest.mark.parametrize("to", [TRIM_HORIZON, LATEST, INSTANT, SequenceNumber(700)])
@pytest.mark.parametrize("start", [TRIM_HORIZON, LATEST, INSTANT])
async def test_one_shard_is_read_again_without_those_before_it(to: Position | SequenceNumber, start: Position) -> None:
    """Also one that two were merged into, of which nobody has read the two."""
    legs = (
        ShardInfo("s-0", (), (0, 4), closed=True, starts_at=1),
        ShardInfo("s-1", (), (5, 9), closed=True, starts_at=1),
    )
    merged = ShardInfo("s-2", ("s-0", "s-1"), (0, 9), closed=False, starts_at=2)
    row = LeaseRow("s-2", checkpoint="900", parents=merged.parents)
    store = MemoryLeaseStore([row])
    write = begin_at(row, place_of(row, to, now_ms=100_000)).write
    assert write is not None
    moved = await store.write(write)
    assert discover(Listing((*legs, merged), server_time_s=100.0), {"s-2": moved}, start) == ()
    values = {SequenceNumber(700): 700, TRIM_HORIZON: 0, LATEST: 98_000, INSTANT: 5_000}
    assert start_position(moved.position, moved).value == values[to]


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (TRIM_HORIZON, ["s-0: read to its end -> TRIM_HORIZON", "s-1: after 5 -> no row", "s-9: after 7 -> no row"]),
        (
            LATEST,
            [
                "s-1: after 5 -> LATEST at 1970-01-01T00:01:38.000Z",
                "s-0: read to its end -> no row",
                "s-9: after 7 -> no row",
            ],
        ),
    ],
)
def test_anew_means_as_if_nobody_had_ever_read_the_stream(start: Position, said: list[str]) -> None:
    """The rows that discovery would make, and no other; parents go before their children."""
    rows = {
        "s-0": LeaseRow("s-0", checkpoint=SHARD_END, children=("s-1",)),
        "s-1": LeaseRow("s-1", checkpoint="5", parents=("s-0",)),
        "s-9": LeaseRow("s-9", checkpoint="7"),
    }
    assert in_words(begin_anew(rows, LISTING, start, stream=STREAM)) == said


@pytest.mark.asyncio
@pytest.mark.parametrize("to", [TRIM_HORIZON, LATEST])
@pytest.mark.parametrize(
    "rows",
    [
        (LeaseRow("s-1", checkpoint="5", parents=("s-0",)),),
        (
            LeaseRow("s-0", checkpoint=SHARD_END),
            LeaseRow("s-1", checkpoint=SHARD_END, parents=("s-0",)),
            LeaseRow("s-2", checkpoint="5", parents=("s-1",)),
        ),
        (LeaseRow("s-00", checkpoint="5", native=Native(start_ms=3)),),
    ],
)
async def test_a_plan_that_is_cut_off_leaves_a_worker_nothing_to_begin(
    rows: tuple[LeaseRow, ...], to: Position
) -> None:
    """After each of its changes there are rows of all that is to be read, and what was left behind stays there."""
    last = ShardInfo("s-2", ("s-1",), (0, 9), closed=False, starts_at=3)
    beside = ShardInfo("s-00", (), (10, 19), closed=False, starts_at=0)
    listing = Listing((PARENT, replace(CHILD, closed=True), last, beside), server_time_s=100.0)
    store = MemoryLeaseStore(rows)
    for change in begin_anew({row.key: row for row in rows}, listing, to, stream=STREAM):
        if change.write is not None:
            await store.write(change.write)
        elif change.removal is not None:
            await store.delete(change.removal)
        elif change.row is not None:
            assert await store.create(change.row)
        left = {row.key: row for row in (await store.scan()).rows}
        assert discover(listing, left, LATEST) == ()


def test_anew_leaves_out_what_changes_nothing() -> None:
    """A plan names what is to become different, and counts that; what a row tells of its readers is part of it."""
    anew = {"s-0": LeaseRow("s-0", counter=7, switches=2, native=Native(owner="a", lag_ms=3))}
    assert begin_anew(anew, LISTING, TRIM_HORIZON, stream=STREAM) == ()
    for told, said in (
        (LeaseRow("s-0", owner="a"), "held by a"),
        (LeaseRow("s-0", native=Native(request=Request("r1", RELEASE))), "asked to release"),
        (LeaseRow("s-0", native=Native(delivered="900")), "handed over as far as 900"),
        (LeaseRow("s-0", native=Native(start_ms=5_000)), "begun at 1970-01-01T00:00:05.000Z"),
        (LeaseRow("s-0", native=Native(halted=Halt("ValueError", "7"), fault="OSError")), "halted, failed"),
        (LeaseRow("s-0", children=("s-1", "s-2")), "followed by s-1 and s-2"),
    ):
        changes = begin_anew({"s-0": told}, LISTING, TRIM_HORIZON, stream=STREAM)
        assert in_words(changes) == [f"s-0: TRIM_HORIZON, {said} -> TRIM_HORIZON"]
        assert changes[0].write is not None


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (LeaseRow("s", counter=4), "TRIM_HORIZON, free, counter 4"),
        (
            LeaseRow("s", counter=145, checkpoint=SHARD_END, native=Native(start_ms=5_000)),
            "read to its end, counter 145",
        ),
        (
            LeaseRow("s", owner="a", native=Native(owner="a", halted=Halt("ValueError: bad", "7"))),
            "TRIM_HORIZON, held by a, halted at 7: ValueError: bad, counter 0",
        ),
        (
            LeaseRow("s", owner="b", native=Native(owner="a", halted=Halt("ValueError: bad", "7"))),
            "TRIM_HORIZON, held by b, counter 0",
        ),
        (
            LeaseRow("s", native=Native(fault="OSError: no disk")),
            "TRIM_HORIZON, free, failed: OSError: no disk, counter 0",
        ),
        (
            LeaseRow("s", owner="b", checkpoint_owner="a", checkpoint="9", parents=("s-0", "s-1")),
            "after 9, held by a, asked for by b, counter 0, after s-0 and s-1",
        ),
        (
            LeaseRow("s", owner="a", native=Native(request=Request("r1", SEEK, "LATEST@5000"))),
            "TRIM_HORIZON, held by a, asked to seek LATEST at 1970-01-01T00:00:05.000Z (r1), counter 0",
        ),
        (
            LeaseRow("s", owner="a", native=Native(request=Request("r1", SEEK, "9"))),
            "TRIM_HORIZON, held by a, asked to seek after 9 (r1), counter 0",
        ),
        (
            LeaseRow("s", owner="a", native=Native(request=Request("r1", "dance", "LATEST@x"))),
            "TRIM_HORIZON, held by a, asked to dance LATEST@x (r1), counter 0",
        ),
    ],
)
def test_a_row_is_told_as_it_is(row: LeaseRow, said: str) -> None:
    """Where it is and whose, what keeps it there, and what is asked of its holder; instants as people write them."""
    assert in_one_line(row) == f"s: {said}"


def test_anew_makes_the_rows_that_are_missing() -> None:
    """A plan that was cut off can be made again."""
    (change,) = begin_anew({}, LISTING, TRIM_HORIZON, stream=STREAM)
    assert in_words((change,)) == ["s-0: no row -> TRIM_HORIZON"]
    assert change.row is not None
    assert change.row.native.stream == STREAM


def test_letting_go_names_who_held_the_row() -> None:
    """Both, in a handoff."""
    assert let_go(LeaseRow("s", owner="b", checkpoint_owner="a")).what == "held by a and b -> free"


def test_what_is_asked_says_of_whom_and_leaves_the_row_to_him() -> None:
    """Of the holder, also while another waits for the shard; nothing but the request is written."""
    row = LeaseRow("s", owner="b", checkpoint_owner="a", checkpoint="900", native=Native(token="t"))
    to_seek, to_let_go = ask_to_begin_at(row, Place("700"), "r1"), ask_to_let_go(row, "r2")
    assert to_seek.what == "after 900 -> after 700, by its holder a"
    assert to_let_go.what == "held by a -> free, by its holder a"
    for change, request in ((to_seek, Request("r1", SEEK, "700")), (to_let_go, Request("r2", RELEASE))):
        assert change.request == request
        assert change.write is not None
        assert change.write.set.keys() == {("native", "request")}
        assert not change.write.remove


def test_workers_are_known_by_what_moves() -> None:
    """A beat or a counter; a row that only stands there is a dead worker's."""
    before = {"s-0": LeaseRow("s-0", owner="dead", counter=3), "s-1": LeaseRow("s-1", owner="a", counter=3)}
    after = {"s-0": before["s-0"], "s-1": LeaseRow("s-1", owner="a", counter=4), "s-2": LeaseRow("s-2", owner="new")}
    looks = (WorkerRow("idle", beat=1), WorkerRow("old", beat=9)), (WorkerRow("idle", beat=2), WorkerRow("old", beat=9))
    assert moving(before, after, looks) == ["a", "idle", "new"]
