"""What is to be changed so that shards are paused, go on, or go on elsewhere; before anything is written."""

from dataclasses import replace

import pytest

from kcl_py.errors import KclError
from kcl_py.leases.control import chosen, pause, resume, seek
from kcl_py.leases.requests import RESUME, SEEK
from kcl_py.leases.row import SHARD_END, Halt, LeaseRow, Native, Paused, Request
from kcl_py.sources.source import TRIM_HORIZON

HELD = LeaseRow("s-1", owner="a", checkpoint="9", native=Native(token="t", owner="a"))
FREE = LeaseRow("s-2", checkpoint="9")
ENDED = LeaseRow("s-0", checkpoint=SHARD_END)
ROWS = {row.key: row for row in (ENDED, HELD, FREE)}
ALONE, WITH_ALL = Paused(5, "maintenance"), Paused(7, is_of_stream=True)
HALTED = replace(HELD, native=replace(HELD.native, halted=Halt("ValueError", "10")))


def paused(row: LeaseRow, by: Paused) -> LeaseRow:
    return replace(row, native=replace(row.native, paused=by))


def test_the_whole_stream_is_what_is_being_read() -> None:
    """A shard that was read to its end can be named, and is refused with what to do instead."""
    assert chosen(ROWS, (), "orders", "pause") == [HELD, FREE]
    assert chosen(ROWS, ("s-2",), "orders", "pause") == [FREE]
    with pytest.raises(KclError, match="cannot pause 's-0': expected a shard that is being read, found one that was"):
        chosen(ROWS, ("s-0",), "orders", "pause")
    with pytest.raises(KclError, match="cannot change 's-9': expected a shard with a row in 'orders', found 3 others"):
        chosen(ROWS, ("s-9",), "orders", "pause")


@pytest.mark.parametrize(
    ("row", "asked", "said"),
    [
        (HELD, ALONE, ["after 9 -> paused"]),
        (FREE, WITH_ALL, ["after 9 -> paused"]),
        (paused(HELD, ALONE), ALONE, []),
        (paused(HELD, ALONE), WITH_ALL, ["after 9, paused alone -> paused"]),
        (paused(HELD, WITH_ALL), ALONE, []),
        (paused(HELD, WITH_ALL), WITH_ALL, []),
    ],
)
def test_what_is_paused_is_paused_anew_only_for_more(row: LeaseRow, asked: Paused, said: list[str]) -> None:
    """One shard of a paused stream stays paused with it; one that was paused alone passes the pause on from then."""
    assert [change.what for change in pause(row, asked)] == said


def test_shard_of_a_client_that_knows_of_no_pause_is_refused() -> None:
    """Only where no kcl_py worker has ever written the row: else one that is just being handed over looks the same."""
    java = LeaseRow("s-3", owner="java-1", has_native=False)
    with pytest.raises(
        KclError, match="cannot pause 's-3': expected a kcl_py worker or nobody to hold it, found java-1"
    ):
        pause(java, ALONE)
    assert pause(replace(java, owner=None), ALONE)
    assert pause(replace(HELD, owner="b"), ALONE)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (HELD, []),
        (paused(FREE, ALONE), ["paused since 1970-01-01T00:00:00.005Z -> goes on"]),
        (HALTED, ["halted at 10 -> goes on, by its holder a"]),
        (
            paused(HALTED, WITH_ALL),
            ["paused since 1970-01-01T00:00:00.007Z -> goes on", "halted at 10 -> goes on, by its holder a"],
        ),
        (replace(HALTED, owner="b"), []),
        (replace(HALTED, native=replace(HALTED.native, request=Request("r", SEEK, "9"))), []),
    ],
    ids=["reads", "paused", "halted", "both", "another's halt", "asked already"],
)
def test_what_stands_still_is_resumed(row: LeaseRow, said: list[str]) -> None:
    """A halted shard by its holder, unless it has begun anew by itself, or is asked to begin elsewhere."""
    changes = resume(row, "r1")
    assert [change.what for change in changes] == said
    assert [change.request for change in changes if change.request] == [Request("r1", RESUME)] * ("halted" in str(said))


def test_who_works_is_asked_and_what_nobody_holds_is_moved() -> None:
    """From within a worker nobody watches who works: whoever holds the shard, or takes it, answers."""
    assert seek(HELD, TRIM_HORIZON, "r1", now_ms=1).request == Request("r1", SEEK, "TRIM_HORIZON")
    assert seek(HELD, TRIM_HORIZON, "r1", now_ms=1, working=("a",)).request is not None
    assert seek(HELD, TRIM_HORIZON, "r1", now_ms=1, working=()).request is None
    assert seek(FREE, TRIM_HORIZON, "r1", now_ms=1).request is None
