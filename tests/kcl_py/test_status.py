"""The status object: what each field says of a row, and the text with the same columns."""

import json
from typing import Any

import pytest

from kcl_py.cli.status import read_status
from kcl_py.config import Config
from kcl_py.errors import (
    AwsSetupError,
    LeaseTableError,
    MissingError,
    RejectedError,
    RequestError,
    StreamIdentityError,
)
from kcl_py.leases.row import Halt, LeaseRow, Native, Paused, WorkerRow
from kcl_py.leases.store import Scan
from kcl_py.sources.source import StreamInfo
from kcl_py.status import SHARD_COLUMNS, WORKER_COLUMNS, report, state_of, text

CONFIG = Config(app="demo", stream="arn:aws:kinesis:eu-west-1:123456789012:stream/flights", processor="m:C")
NOW_S = 1_767_258_000.0
"""2026-01-01T09:00:00Z."""


PAUSE = Paused(int(NOW_S * 1000) - 5000, "maintenance")


def shard(row: LeaseRow) -> dict[str, Any]:
    (found,) = report(CONFIG, [row], [], NOW_S)["shards"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("row", "state"),
    [
        (LeaseRow("s"), "free"),
        (LeaseRow("s", owner="a"), "owned"),
        (LeaseRow("s", owner="b", checkpoint_owner="a"), "handoff"),
        (LeaseRow("s", checkpoint="SHARD_END"), "ended"),
    ],
)
def test_state_follows_from_owner_and_checkpoint(row: LeaseRow, state: str) -> None:
    """Four states, each shard in one."""
    assert state_of(row) == state


def test_report_is_the_published_object() -> None:
    """Keys in the published order, plain JSON, lags with their age."""
    halt = Halt("ValueError", "49")
    native = Native(owner="a", lag_ms=250, lag_at_ms=int(NOW_S * 1000) - 1500, halted=halt, why="expired", paused=PAUSE)
    row = LeaseRow(
        "s-1", counter=7, owner="a", checkpoint="49", sub=2, parents=("s-0",), throughput_kbps=12.34, native=native
    )
    ended = LeaseRow("s-0", counter=9, checkpoint="SHARD_END")
    worker = WorkerRow("a", state="active", held=1, held_off="not yet", updated_s=int(NOW_S) - 3)
    status = report(CONFIG, [row, ended], [worker], NOW_S)
    assert json.loads(json.dumps(status)) == status
    assert list(status) == ["app", "stream", "table", "at", "workers", "shards", "totals"]
    assert (status["app"], status["stream"], status["table"]) == ("demo", "flights", "demo")
    assert status["at"] == "2026-01-01T09:00:00.000Z"
    assert status["workers"] == [
        {"worker": "a", "state": "active", "held": 1, "max": None, "seen_s_ago": 3.0, "held_off": "not yet"}
    ]
    assert [shard["shard"] for shard in status["shards"]] == ["s-0", "s-1"]
    assert status["shards"][1] == {
        "shard": "s-1",
        "state": "owned",
        "owner": "a",
        "next_owner": None,
        "checkpoint": "49",
        "sub": 2,
        "counter": 7,
        "lag_ms": 250,
        "lag_age_s": 1.5,
        "parents": ["s-0"],
        "halted": {"error": "ValueError", "position": "49"},
        "fault": None,
        "why": "expired",
        "throughput_kbps": 12.3,
        "held_by": None,
        "paused": {"since": "2026-01-01T08:59:55.000Z", "of": "shard", "why": "maintenance", "is_quiet": False},
    }
    assert status["totals"] == {
        "shards": 2,
        "owned": 1,
        "ended": 1,
        "halted": 1,
        "paused": 1,
        "max_lag_ms": 250,
        "spilled": 0,
    }


@pytest.mark.parametrize(
    ("row", "is_quiet"),
    [
        (LeaseRow("s", owner="a", native=Native(owner="a", paused=PAUSE, quiet_for=PAUSE.at_ms)), True),
        (LeaseRow("s", owner="a", native=Native(owner="a", paused=PAUSE)), False),
        (LeaseRow("s", owner="b", native=Native(owner="a", paused=PAUSE, quiet_for=PAUSE.at_ms)), False),
        (LeaseRow("s", owner="a", native=Native(owner="a", paused=PAUSE, quiet_for=5)), False),
        (LeaseRow("s", native=Native(paused=PAUSE)), True),
    ],
    ids=["says so", "says nothing", "another's word", "of a pause before", "nobody's"],
)
def test_paused_shard_is_quiet_once_its_holder_says_so(row: LeaseRow, is_quiet: bool) -> None:
    """What somebody who was killed has said tells nothing of who holds it now."""
    assert shard(row)["paused"]["is_quiet"] is is_quiet


def test_shard_that_was_read_to_its_end_is_not_paused() -> None:
    """A pause that came too late says nothing."""
    assert shard(LeaseRow("s", checkpoint="SHARD_END", native=Native(paused=PAUSE)))["paused"] is None


@pytest.mark.parametrize(
    ("limits", "spilled"), [([2, 1], 1), ([2, None], 0), ([2, 2], 0), ([], 0)], ids=["short", "open", "enough", "none"]
)
def test_shards_that_no_worker_may_hold_are_counted(limits: list[int | None], spilled: int) -> None:
    """Limits that are too low leave shards unread; silent workers and those that leave hold nothing for long."""
    rows = [LeaseRow(f"s-{number}") for number in range(4)] + [LeaseRow("done", checkpoint="SHARD_END")]
    workers = [
        WorkerRow(f"w{number}", state="active", max_leases=limit, updated_s=int(NOW_S))
        for number, limit in enumerate(limits)
    ]
    workers.append(WorkerRow("leaver", state="draining", updated_s=int(NOW_S)))
    assert report(CONFIG, rows, workers, NOW_S)["totals"]["spilled"] == spilled


def test_handoff_shows_who_holds_and_who_is_next() -> None:
    """During it the holder is the checkpoint owner; the shard still counts as owned."""
    row = LeaseRow("s", owner="next", checkpoint_owner="holder", native=Native(owner="holder", lag_ms=5))
    found = shard(row)
    assert (found["owner"], found["next_owner"], found["lag_ms"]) == ("holder", "next", 5)
    assert report(CONFIG, [row], [], NOW_S)["totals"]["owned"] == 1


def test_fields_of_an_earlier_owner_are_not_shown() -> None:
    """A Java worker, or one that has just taken the shard, has not written them yet."""
    native = Native(owner="gone", lag_ms=5, lag_at_ms=1, halted=Halt("E", "1"), fault="broken")
    found = shard(LeaseRow("s", owner="java", native=native))
    assert [found[key] for key in ("lag_ms", "lag_age_s", "halted", "fault")] == [None] * 4


def test_fault_of_a_shard_that_nobody_could_run_is_shown() -> None:
    """It was released with the fault in its row, so no owner matches."""
    assert shard(LeaseRow("s", native=Native(owner="gone", fault="broken")))["fault"] == "broken"


def test_a_shard_through_which_nothing_flows_is_shown_like_others() -> None:
    """A row can hold a whole number: 0 beside 0.0 would look like another thing."""
    assert json.dumps(shard(LeaseRow("s", throughput_kbps=0))["throughput_kbps"]) == "0.0"


def test_lag_is_unknown_when_no_shard_tells_it() -> None:
    """Unknown is not zero."""
    assert report(CONFIG, [LeaseRow("s")], [], NOW_S)["totals"]["max_lag_ms"] is None


@pytest.mark.parametrize(
    ("seen_s_ago", "state", "shown"),
    [(9, "active", "active"), (10, "draining", "draining"), (11, "active", "silent"), (11, "draining", "silent")],
)
def test_worker_that_has_not_written_for_the_failover_time_is_silent(seen_s_ago: int, state: str, shown: str) -> None:
    """Its row stays until somebody clears it away; others take its shards from then on."""
    row = WorkerRow("a", state=state, updated_s=int(NOW_S) - seen_s_ago)
    [worker] = report(CONFIG, [], [row], NOW_S)["workers"]
    assert (worker["state"], worker["seen_s_ago"]) == (shown, seen_s_ago)


def test_row_cannot_steer_the_terminal_that_shows_it() -> None:
    """Exceptions carry what their makers put in; in JSON, escapes are JSON's own."""
    evil = "\x1b[2J\x07\u202e\x9b1m\r\nx"
    native = Native(owner=evil, fault=evil, halted=Halt(evil, evil))
    row = LeaseRow(evil, owner=evil, checkpoint_owner=evil, parents=(evil,), native=native)
    status = report(CONFIG, [row], [WorkerRow(evil)], NOW_S)
    shown = text(status)
    assert all(line.isprintable() for line in shown.split("\n"))
    tame = LeaseRow("s", owner="a", native=Native(owner="a", halted=Halt("KeyError", "1")))
    assert len(shown.split("\n")) == len(text(report(CONFIG, [tame], [WorkerRow("a")], NOW_S)).split("\n"))
    assert "\\x1b[2J\\x07\\u202e\\x9b1m\\r\\nx" in shown
    assert json.loads(json.dumps(status))["shards"][0]["fault"] == evil
    assert json.dumps(status).isprintable()


def test_text_has_the_same_columns_in_the_same_order() -> None:
    """Both forms are one table."""
    halted = Native(owner="a", halted=Halt("ValueError", "49"), paused=PAUSE)
    rows = [LeaseRow("s-2", owner="a", native=halted, parents=("s-0", "s-1"))]
    status = report(CONFIG, rows, [WorkerRow("a")], NOW_S)
    shown = text(status).splitlines()
    assert shown[0] == "app demo  stream flights  table demo  at 2026-01-01T09:00:00.000Z"
    assert tuple(shown[2].split()) == tuple(status["workers"][0]) == WORKER_COLUMNS
    assert tuple(shown[5].split()) == tuple(status["shards"][0]) == SHARD_COLUMNS
    assert (
        " ".join(shown[6].split())
        == "s-2 owned a - TRIM_HORIZON 0 0 - - s-0,s-1 ValueError@49 - - - - 2026-01-01T08:59:55.000Z"
    )
    assert shown[8] == "totals  shards 1  owned 1  ended 0  halted 1  paused 1  max_lag_ms -  spilled 0"


def test_status_says_how_to_go_on_where_something_has_halted() -> None:
    """And says nothing of it where all runs."""
    halted = LeaseRow("s", owner="a", native=Native(owner="a", halted=Halt("KeyError", "1")))
    last = [text(report(CONFIG, rows, [], NOW_S)).splitlines()[-1] for rows in ([halted], [LeaseRow("s")])]
    assert "kcl resume FILE --shard ID" in last[0]
    assert last[1].startswith("totals")


class Store:
    """Reads of a lease store, some of which fail."""

    def __init__(
        self,
        rows: tuple[LeaseRow, ...] = (LeaseRow("s"),),
        *,
        scan: Exception | None = None,
        workers: Exception | None = None,
    ) -> None:
        self._rows, self._faults = rows, {"scan": scan, "workers": workers}

    async def scan(self, *, consistent: bool = False) -> Scan:
        self._raise("scan")
        return Scan(self._rows)

    async def workers(self) -> tuple[WorkerRow, ...]:
        self._raise("workers")
        return (WorkerRow("a"),)

    def _raise(self, what: str) -> None:
        fault = self._faults[what]
        if fault is not None:
            raise fault


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fault", "raised", "sentence"),
    [
        (MissingError("Scan", "demo", "X"), LeaseTableError, "expected the table of a worker that has run, found none"),
        (RequestError("Scan", "demo", "Y", "no"), AwsSetupError, "'demo': Y: no"),
    ],
)
async def test_lease_table_that_cannot_be_read_is_a_setup_error(
    fault: Exception, raised: type[Exception], sentence: str
) -> None:
    """Nothing can be shown without it."""
    with pytest.raises(raised, match=r"^cannot read lease table 'demo': ") as caught:
        await read_status(Store(scan=fault), CONFIG, now_s=NOW_S)  # type: ignore[arg-type]
    assert sentence in str(caught.value)


@pytest.mark.asyncio
@pytest.mark.parametrize("stored", ["other:1", "flights:1"])
async def test_rows_of_another_stream_are_not_shown_as_those_of_this_one(stored: str) -> None:
    """Their shards have the same names; also those of an earlier stream of the same name."""
    store = Store(
        rows=(LeaseRow("s-0", native=Native(stream="flights:2")), LeaseRow("s", native=Native(stream=stored)))
    )
    stream = StreamInfo("flights", "arn", 2, "ACTIVE", NOW_S)
    with pytest.raises(
        StreamIdentityError, match=rf"^cannot use lease table 'demo': .*'flights:2', .*'s' of '{stored}'"
    ):
        await read_status(store, CONFIG, stream=stream, now_s=NOW_S)  # type: ignore[arg-type]


@pytest.mark.asyncio
@pytest.mark.parametrize("fault", [MissingError("Scan", "t", "X"), RejectedError("Scan", "t", "Y")])
async def test_status_is_shown_without_the_table_of_workers(fault: Exception) -> None:
    """A Java fleet of an older version has none."""
    status = await read_status(Store(workers=fault), CONFIG, now_s=NOW_S)  # type: ignore[arg-type]
    assert (status["workers"], len(status["shards"])) == ([], 1)
