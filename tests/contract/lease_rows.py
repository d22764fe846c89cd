"""Lease rows and every write of the protocol, each with what it leaves behind."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kcl_py.leases import by_hand, pausing, rules
from kcl_py.leases.items import item_from_row
from kcl_py.leases.requests import RELEASE, RESUME, SEEK, Place
from kcl_py.leases.row import AT_TIMESTAMP, LATEST, SHARD_END, Halt, LeaseRow, Native, Paused, Request
from kcl_py.leases.store import AnyOf, Path, Write
from kcl_py.records import SequenceNumber

KEY = "shardId-000000000007"
ME, OTHER, THIRD = "host-a/0000000a", "host-b/0000000b", "host-c/0000000c"
STRANGE: dict[str, Any] = {"pausedBy": "someone", "tags": frozenset({"x", "y"}), "plan": {"steps": [1, 2.5, True]}}
"""Attributes that kcl_py does not know; no write may touch them."""


def a_row(**changes: Any) -> LeaseRow:
    """Return a row that ME holds, half-way through its shard."""
    native = {"token": "t-me", "owner": ME, "taken_ms": 5, "stream": "flights:17", "start_ms": 9} | changes.pop(
        "native", {}
    )
    fields: dict[str, Any] = {
        "key": KEY,
        "counter": 41,
        "owner": ME,
        "checkpoint": "1000",
        "switches": 2,
        "parents": ("shardId-000000000001",),
        "hash_range": (0, 2**127),
        "throughput_kbps": 12.5,
    }
    return LeaseRow(**(fields | changes), native=Native(**native))


def a_handoff(**changes: Any) -> LeaseRow:
    """Return a row that ME holds and OTHER has asked for."""
    return a_row(owner=OTHER, checkpoint_owner=ME, **changes)


@dataclass(frozen=True)
class Case:
    """A write, the row that it was made for, and the row that it must leave."""

    name: str
    row: LeaseRow
    write: Write
    after: LeaseRow


def a_case(name: str, row: LeaseRow, write: Write, *, native: dict[str, Any] | None = None, **after: Any) -> Case:
    return Case(name, row, write, replace(row, native=replace(row.native, **(native or {})), **after))


FREE = a_row(owner=None, native={"owner": None, "fault": "broken", "lag_ms": 3, "lag_at_ms": 4, "delivered": "1002"})
HALTED = a_row(native={"halted": Halt("ValueError", "1001"), "fault": "x", "lag_ms": 3, "lag_at_ms": 4})
JAVA = LeaseRow(KEY, counter=3, owner="java-1", checkpoint="1000", has_native=False)
JAVA_FREE = LeaseRow(KEY, counter=3, checkpoint="1000", has_native=False)
MINE: dict[str, Any] = {"owner": ME, "token": "t-me"}
AT = SequenceNumber(1500, 3)
MOVED: dict[str, Any] = {"checkpoint": "1500", "sub": 3, "switches": 0}
GONE: dict[str, Any] = {"lag_ms": None, "lag_at_ms": None, "halted": None, "fault": None}
TO_SEEK = Request("r1", SEEK, "700")
ASKED_TO_SEEK = a_row(native={"request": TO_SEEK, "delivered": "1002", "halted": Halt("ValueError", "1001")})
IN_HANDOFF_TO_SEEK = a_handoff(native={"request": TO_SEEK})
ASKED_TO_RESUME = a_row(
    native={"request": Request("r1", RESUME), "delivered": "1002", "halted": Halt("ValueError", "1001")}
)
IN_HANDOFF_TO_RESUME = a_handoff(native={"request": Request("r1", RESUME)})
PAUSE = Paused(70, "maintenance")
PAUSED_ROW = a_row(native={"paused": PAUSE})
QUIET = a_row(native={"paused": PAUSE, "quiet_for": 70})
ASKED_TO_LET_GO = a_row(native={"request": Request("r1", RELEASE)})
REPORT = rules.Report(position=AT, lag_ms=10, lag_at_ms=20, halted=Halt("KeyError", "1501"), stream="flights:18")

CASES = (
    a_case(
        "take a free row",
        FREE,
        rules.take(FREE, owner=OTHER, token="t-new", now_ms=77, stream="other:1"),
        counter=42,
        owner=OTHER,
        native={"token": "t-new", "owner": OTHER, "taken_ms": 77, **GONE},
    ),
    a_case(
        "take an expired row in a handoff",
        a_handoff(),
        rules.take(a_handoff(), owner=THIRD, token="t-new", now_ms=77),
        counter=42,
        owner=THIRD,
        checkpoint_owner=None,
        switches=3,
        native={"token": "t-new", "owner": THIRD, "taken_ms": 77},
    ),
    a_case(
        "take a row of the java client",
        JAVA,
        rules.take(JAVA, owner=ME, token="t-new", now_ms=77, stream="flights:17"),
        counter=4,
        owner=ME,
        switches=1,
        has_native=True,
        native={"token": "t-new", "owner": ME, "taken_ms": 77, "stream": "flights:17"},
    ),
    a_case("heartbeat", a_row(), rules.heartbeat(a_row(), **MINE), counter=42),
    a_case(
        "heartbeat with a report",
        a_row(),
        rules.heartbeat(a_row(), **MINE, report=REPORT),
        counter=42,
        native={"lag_ms": 10, "lag_at_ms": 20, "halted": Halt("KeyError", "1501"), "stream": "flights:18"},
        **MOVED,
    ),
    a_case(
        "heartbeat after a halt",
        HALTED,
        rules.heartbeat(HALTED, **MINE),
        counter=42,
        native={"halted": None, "fault": None},
    ),
    a_case("heartbeat in a handoff", a_handoff(), rules.heartbeat(a_handoff(), **MINE), counter=42),
    a_case(
        "checkpoint",
        a_row(),
        rules.checkpoint(a_row(), **MINE, report=rules.Report(position=AT)),
        counter=42,
        **MOVED,
    ),
    a_case(
        "start a handoff",
        a_row(),
        rules.start_handoff(a_row(), owner=OTHER),
        owner=OTHER,
        checkpoint_owner=ME,
    ),
    a_case(
        "start a handoff with the java client",
        JAVA,
        rules.start_handoff(JAVA, owner=ME),
        owner=ME,
        checkpoint_owner="java-1",
    ),
    a_case(
        "transfer",
        a_handoff(),
        rules.transfer(a_handoff(), owner=ME, position=AT),
        counter=42,
        checkpoint_owner=None,
        **MOVED,
    ),
    a_case(
        "cancel a handoff by its receiver",
        a_handoff(),
        rules.cancel_handoff_by_receiver(a_handoff(), owner=OTHER),
        owner=ME,
        checkpoint_owner=None,
    ),
    a_case(
        "cancel a handoff by its holder",
        a_handoff(),
        rules.cancel_handoff_by_holder(a_handoff(), **MINE),
        counter=42,
        owner=ME,
        checkpoint_owner=None,
    ),
    a_case(
        "complete",
        a_row(),
        rules.complete(a_row(), **MINE, children=("shardId-b", "shardId-a")),
        counter=42,
        owner=None,
        checkpoint=SHARD_END,
        sub=0,
        switches=0,
        children=("shardId-a", "shardId-b"),
        native={"owner": None},
    ),
    a_case(
        "release",
        HALTED,
        rules.release(HALTED, **MINE, position=AT, delivered="1502", fault="no processor"),
        counter=42,
        owner=None,
        native={"owner": None, **GONE, "delivered": "1502", "clean": 42, "fault": "no processor"},
        **MOVED,
    ),
    a_case(
        "release when asked to",
        ASKED_TO_LET_GO,
        rules.release(ASKED_TO_LET_GO, **MINE, position=AT),
        counter=42,
        owner=None,
        native={"owner": None, "request": None},
        **MOVED,
    ),
    a_case(
        "release a row that is to be moved",
        ASKED_TO_SEEK,
        rules.release(ASKED_TO_SEEK, **MINE),
        counter=42,
        owner=None,
        native={"owner": None, **GONE, "delivered": "1002"},
    ),
    a_case(
        "seek to a number",
        ASKED_TO_SEEK,
        rules.seek(ASKED_TO_SEEK, **MINE, fresh="t-new", place=Place("700")),
        counter=42,
        checkpoint="700",
        switches=0,
        native={"token": "t-new", "start_ms": None, "delivered": None, "request": None, **GONE},
    ),
    a_case(
        "seek to an instant in a handoff",
        IN_HANDOFF_TO_SEEK,
        rules.seek(IN_HANDOFF_TO_SEEK, **MINE, fresh="t-new", place=Place(AT_TIMESTAMP, 77)),
        counter=42,
        checkpoint=AT_TIMESTAMP,
        switches=0,
        native={"token": "t-new", "start_ms": 77, "request": None},
    ),
    a_case(
        "resume a halted shard",
        ASKED_TO_RESUME,
        rules.resume(ASKED_TO_RESUME, **MINE, fresh="t-new", position=AT),
        counter=42,
        native={"token": "t-new", "request": None, **GONE},
        **MOVED,
    ),
    a_case(
        "resume in a handoff, where it was",
        IN_HANDOFF_TO_RESUME,
        rules.resume(IN_HANDOFF_TO_RESUME, **MINE, fresh="t-new"),
        counter=42,
        native={"token": "t-new", "request": None},
    ),
    a_case(
        "say that a paused shard is quiet",
        PAUSED_ROW,
        rules.heartbeat(PAUSED_ROW, **MINE, report=rules.Report(quiet_for=70)),
        counter=42,
        native={"quiet_for": 70},
    ),
    a_case("go on after a pause", QUIET, rules.heartbeat(QUIET, **MINE), counter=42, native={"quiet_for": None}),
    a_case(
        "take a paused row",
        QUIET,
        rules.take(QUIET, owner=OTHER, token="t-new", now_ms=77),
        counter=42,
        owner=OTHER,
        switches=3,
        native={"token": "t-new", "owner": OTHER, "taken_ms": 77, "quiet_for": None},
    ),
    a_case(
        "complete a row that was paused too late",
        PAUSED_ROW,
        rules.complete(PAUSED_ROW, **MINE, children=()),
        counter=42,
        owner=None,
        checkpoint=SHARD_END,
        switches=0,
        native={"owner": None, "paused": None},
    ),
    a_case(
        "refuse a request",
        ASKED_TO_SEEK,
        rules.refuse(ASKED_TO_SEEK, **MINE),
        counter=42,
        native={"request": None},
    ),
    a_case("let go", a_row(), rules.let_go(a_row(), owner=ME), counter=42, owner=None),
    a_case("let go in a handoff", a_handoff(), rules.let_go(a_handoff(), owner=ME), counter=42, checkpoint_owner=None),
)

ENDED = a_row(owner=None, checkpoint=SHARD_END, children=("shardId-a",), native={"owner": None, "delivered": "1002"})
BY_HAND = (
    a_case(
        "reposition to a number",
        HALTED,
        by_hand.reposition(HALTED, Place("700")),
        counter=42,
        owner=None,
        checkpoint="700",
        switches=0,
        native={"owner": None, "start_ms": None, **GONE},
    ),
    a_case(
        "reposition an ended row to an instant",
        ENDED,
        by_hand.reposition(ENDED, Place(AT_TIMESTAMP, 77)),
        counter=42,
        checkpoint=AT_TIMESTAMP,
        switches=0,
        children=(),
        native={"start_ms": 77, "delivered": None},
    ),
    Case(
        "reposition a row of the java client",
        JAVA,
        by_hand.reposition(JAVA, Place(LATEST, 77)),
        LeaseRow(KEY, counter=4, checkpoint=LATEST, native=Native(start_ms=77)),
    ),
    a_case("ask", a_row(), by_hand.request(a_row(), TO_SEEK), native={"request": TO_SEEK}),
    a_case("ask in a handoff", a_handoff(), by_hand.request(a_handoff(), TO_SEEK), native={"request": TO_SEEK}),
    a_case("pause", a_row(), pausing.pause(a_row(), PAUSE), native={"paused": PAUSE}),
    a_case(
        "pause a row that is paused, with all others",
        PAUSED_ROW,
        pausing.pause(PAUSED_ROW, Paused(90, is_of_stream=True)),
        native={"paused": Paused(70, is_of_stream=True)},
    ),
    Case(
        "pause a row of the java client",
        JAVA_FREE,
        pausing.pause(JAVA_FREE, PAUSE),
        LeaseRow(KEY, counter=4, checkpoint="1000", native=Native(paused=PAUSE)),
    ),
    a_case("unpause", QUIET, pausing.unpause(QUIET), native={"paused": None}),
    a_case("withdraw", ASKED_TO_SEEK, by_hand.withdraw(ASKED_TO_SEEK, TO_SEEK), native={"request": None}),
    a_case(
        "evict",
        a_handoff(),
        by_hand.evict(a_handoff()),
        counter=42,
        owner=None,
        checkpoint_owner=None,
        native={"owner": None},
    ),
)
"""What an operator writes; nobody asks later whether it took effect."""


def stored(row: LeaseRow, *, extended: bool = True) -> dict[str, Any]:
    """Return the item of ``row`` as another client may have left it: with attributes and fields we do not know."""
    item = item_from_row(row) | STRANGE
    if row.has_native and extended:
        item["native"] = item["native"] | {"somethingElse": {"n": 1, "list": [1]}}
    return item


def violations(write: Write, item: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return for each test of ``write`` the item changed so that only this test fails."""
    return {str(test): _break(test.tests if isinstance(test, AnyOf) else (test,), item) for test in write.tests}


def _break(tests: tuple[Any, ...], item: dict[str, Any]) -> dict[str, Any]:
    other: Callable[[Any], Any] = lambda value: value + 1 if isinstance(value, int) else f"{value}x"  # noqa: E731
    for test in tests:
        item = _with(item, test.path, other(test.value))
    return item


def _with(item: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    inner = value if len(path) == 1 else _with(item.get(path[0], {}), path[1:], value)
    return {**item, path[0]: inner}
