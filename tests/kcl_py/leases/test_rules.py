"""The writes of a lease row as data, and what a read tells about one whose outcome is unknown."""

from dataclasses import replace
from typing import Any

import pytest

from kcl_py.errors import ConditionFailedError
from kcl_py.leases import by_hand, pausing, rules, settling
from kcl_py.leases.items import item_from_row, row_from_item
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.leases.row import AT_TIMESTAMP, SHARD_END, Halt, LeaseRow, Native
from kcl_py.leases.store import AnyOf, Is, Test, Write
from kcl_py.records import SequenceNumber
from kcl_py.sources.source import ShardInfo
from tests.contract.lease_rows import (
    BY_HAND,
    CASES,
    JAVA,
    ME,
    MINE,
    OTHER,
    PAUSED_ROW,
    THIRD,
    Case,
    a_handoff,
    a_row,
)
from tests.simloop import simulated

HEARTBEAT = rules.heartbeat(a_row(), **MINE, report=rules.Report(position=SequenceNumber(1500)))
BEATEN = a_row(counter=42, checkpoint="1500", switches=0)


SEEN = ("leaseCounter", "leaseOwner", "checkpointOwner")
HELD = ("leaseCounter", "leaseOwner|checkpointOwner", "native.token")
TESTED = {
    "take": SEEN,
    "heartbeat": HELD,
    "checkpoint": HELD,
    "start handoff": ("leaseOwner", "checkpointOwner", "native.token"),
    "transfer": (*SEEN, "native.token"),
    "cancel handoff by receiver": ("leaseOwner", "checkpointOwner"),
    "cancel handoff by holder": (*SEEN, "native.token"),
    "create child": (*HELD, "native.paused"),
    "still paused": ("native.paused.at",),
    "complete": HELD,
    "release": (*SEEN, "native.token"),
    "seek": (*HELD, "native.request.id"),
    "resume": (*HELD, "native.request.id"),
    "refuse": (*HELD, "native.request.id"),
    "let go": SEEN,
    "delete completed": ("checkpoint", "leaseCounter"),
    "reset": ("leaseCounter", "native.stream"),
    "request": ("leaseOwner", "checkpointOwner", "native.token", "native.request"),
    "withdraw": ("native.request.id",),
    "pause": ("native.paused",),
    "unpause": ("native.paused.at",),
    "reposition": SEEN,
    "evict": SEEN,
    "remove": SEEN,
}
"""What each write tests: the column "Goes through while" of docs/leases.md."""
CONDITIONS = (
    rules.parent_is_mine(a_row(), **MINE),
    rules.delete_completed(a_row()),
    rules.reset(a_row()),
    by_hand.remove(a_row()),
    pausing.still_paused(PAUSED_ROW),
)


def paths(test: Test) -> str:
    """Name what is tested; of two that will do, both."""
    return "|".join(".".join(each.path) for each in (test.tests if isinstance(test, AnyOf) else (test,)))


@pytest.mark.parametrize("operation", TESTED)
def test_write_tests_what_the_protocol_says_and_no_less(operation: str) -> None:
    """A release that answers a request to let go tests that this still stands, too.

    A row that tells of nothing but the Java client must be as seen to be paused, since its whole map is written then;
    and what is paused is paused for more only as it was seen.
    """
    writes = [*(case.write for case in (*CASES, *BY_HAND)), *CONDITIONS]
    found = {tuple(map(paths, write.tests)) for write in writes if write.operation == operation}
    others = {
        "release": {(*TESTED["release"], "native.request.id")},
        "pause": {("native.paused.at",), (*SEEN, "native")},
    }
    assert found == {TESTED[operation]} | others.get(operation, set())
    assert {write.operation for write in writes} == TESTED.keys()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_write_names_no_path_twice(case: Case) -> None:
    """DynamoDB refuses an update whose paths overlap, even where our own store would not."""
    paths = [*case.write.set, *case.write.remove, *case.write.add]
    assert not [(one, other) for one in paths for other in paths if one is not other and one == other[: len(one)]]
    assert all(value is not None for value in case.write.set.values())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_write_is_again_or_lost_when_the_row_is_as_before(case: Case) -> None:
    """A write that left no trace was not done: its maker goes on if the row still names it under its token."""
    found = settling.decide(case.write, case.row)
    goes_on = case.write.owner in (case.row.owner, case.row.checkpoint_owner)
    assert found == ("again" if goes_on else "lost")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_write_is_lost_when_the_row_is_missing(case: Case) -> None:
    """Nobody holds a row that does not exist."""
    assert settling.decide(case.write, None) == "lost"


@pytest.mark.parametrize(
    ("write", "found", "outcome"),
    [
        pytest.param(HEARTBEAT, BEATEN, "succeeded", id="heartbeat landed"),
        pytest.param(
            HEARTBEAT, replace(BEATEN, owner=OTHER, checkpoint_owner=ME), "succeeded", id="heartbeat, then a request"
        ),
        pytest.param(HEARTBEAT, a_row(counter=42), "again", id="an older heartbeat landed instead"),
        pytest.param(HEARTBEAT, replace(BEATEN, counter=43), "again", id="the counter is further than mine"),
        pytest.param(
            HEARTBEAT, replace(BEATEN, native=Native(token="t-other", owner=ME)), "lost", id="token of another"
        ),
        pytest.param(HEARTBEAT, replace(BEATEN, owner=OTHER), "lost", id="no longer named"),
        pytest.param(
            rules.take(a_row(owner=None), owner=ME, token="t-new", now_ms=1),
            a_row(counter=50, native={"token": "t-new"}),
            "succeeded",
            id="take landed and the counter moved on",
        ),
        pytest.param(
            rules.take(a_row(owner=None), owner=ME, token="t-new", now_ms=1),
            a_row(counter=42, native={"token": "t-older"}),
            "lost",
            id="a take of mine, but an older one",
        ),
        pytest.param(
            rules.start_handoff(a_row(), owner=OTHER), a_handoff(counter=99), "succeeded", id="request landed"
        ),
        pytest.param(
            rules.start_handoff(a_row(), owner=OTHER),
            a_row(owner=THIRD, checkpoint_owner=ME),
            "lost",
            id="another asked",
        ),
        pytest.param(
            rules.transfer(a_handoff(), owner=ME), a_row(owner=OTHER, counter=42), "succeeded", id="transferred"
        ),
        pytest.param(
            rules.transfer(a_handoff(), owner=ME),
            a_row(owner=THIRD, native={"token": "t3"}),
            "succeeded",
            id="and taken",
        ),
        pytest.param(rules.transfer(a_handoff(), owner=ME), a_row(), "again", id="transfer too late: cancelled"),
        pytest.param(
            rules.release(a_row(), **MINE), a_handoff(), "again", id="release too late: a handoff was asked for"
        ),
        pytest.param(
            rules.cancel_handoff_by_receiver(a_handoff(), owner=OTHER), a_row(counter=44), "succeeded", id="withdrawn"
        ),
        pytest.param(
            rules.cancel_handoff_by_receiver(a_handoff(), owner=OTHER),
            a_row(owner=OTHER, counter=42),
            "again",
            id="receiver's cancel too late: transferred",
        ),
        pytest.param(
            rules.cancel_handoff_by_receiver(a_handoff(), owner=OTHER),
            a_row(owner=THIRD, checkpoint_owner=ME),
            "lost",
            id="receiver is out: another asks now",
        ),
        pytest.param(
            rules.cancel_handoff_by_holder(a_handoff(), **MINE), a_row(), "again", id="the receiver cancelled, not I"
        ),
        pytest.param(
            rules.complete(a_row(), **MINE, children=()), a_row(counter=43), "again", id="complete did not land"
        ),
        pytest.param(
            rules.complete(a_row(), **MINE, children=("c",)),
            a_row(counter=44, owner=THIRD, native={"token": "t3"}),
            "lost",
            id="complete refused: taken by another",
        ),
    ],
)
def test_decide_tells_what_became_of_a_write(write: Write, found: LeaseRow, outcome: str) -> None:
    """One consistent read decides; "not succeeded" is not "lost"."""
    assert settling.decide(write, found) == outcome


@pytest.mark.parametrize(
    ("stored", "position"),
    [("1500", SequenceNumber(1499)), ("1500", SequenceNumber(1500)), (SHARD_END, SequenceNumber(9999))],
)
def test_heartbeat_never_moves_a_checkpoint_back(stored: str, position: SequenceNumber) -> None:
    """What is not beyond the stored checkpoint is not written."""
    row = a_row(checkpoint=stored)
    write = rules.heartbeat(row, **MINE, report=rules.Report(position=position))
    assert write.set == {("leaseCounter",): 42}


def test_checkpoint_moves_inside_an_aggregated_record() -> None:
    """Records that share a number are ordered by their index."""
    write = rules.heartbeat(a_row(sub=1), **MINE, report=rules.Report(position=SequenceNumber(1000, 2)))
    assert write.set[("checkpointSubSequenceNumber",)] == 2


@pytest.mark.parametrize(
    ("row", "switches"),
    [
        pytest.param(a_row(owner=None), 0, id="free"),
        pytest.param(a_row(owner=OTHER), 1, id="another's"),
        pytest.param(a_row(owner=ME), 0, id="mine after a handoff"),
        pytest.param(a_row(owner=OTHER, checkpoint_owner=ME), 1, id="mine, asked for"),
    ],
)
def test_take_counts_a_switch_of_owner_as_java_does(row: LeaseRow, switches: int) -> None:
    """The Java client shows this number; it grows when a row changes hands."""
    write = rules.take(row, owner=ME, token="t-new", now_ms=1)
    assert write.add.get(("ownerSwitchesSinceCheckpoint",), 0) == switches


@pytest.mark.parametrize("row", [JAVA, a_row(native={"token": None})], ids=["java", "never taken"])
def test_start_handoff_tests_that_there_is_no_token_when_none_was_seen(row: LeaseRow) -> None:
    """A holder that took the row meanwhile has a token, so an old request cannot bind it."""
    assert Is(("native", "token"), None) in rules.start_handoff(row, owner=THIRD).tests


def test_handoff_cannot_start_or_be_cancelled_when_nobody_is_there() -> None:
    """A request for a free row would own it without a take."""
    with pytest.raises(ValueError, match="expected a holder, found no owner"):
        rules.start_handoff(a_row(owner=None), owner=ME)
    with pytest.raises(ValueError, match="expected a handoff under way, found no owner"):
        rules.cancel_handoff_by_receiver(a_row(), owner=ME)


def test_new_row_is_free_and_keeps_its_lineage() -> None:
    """A row starts with what discovery knows."""
    shard = ShardInfo("shardId-9", parents=("shardId-7",), hash_range=(5, 9))
    row = rules.new_row(shard, stream="flights:17", checkpoint=AT_TIMESTAMP, start_ms=99)
    assert row == LeaseRow(
        "shardId-9",
        checkpoint=AT_TIMESTAMP,
        parents=("shardId-7",),
        hash_range=(5, 9),
        native=Native(stream="flights:17", start_ms=99),
    )
    assert row.native_is_current


def test_volatile_fields_count_only_while_their_owner_holds_the_row() -> None:
    """A halt of somebody else's is not reported as the holder's."""
    halted: dict[str, Any] = {"halted": Halt("KeyError", "7")}
    assert a_row(native=halted).native_is_current
    assert a_handoff(native=halted).native_is_current
    assert not a_row(owner=OTHER, native=halted).native_is_current
    assert a_row(owner=None, native=halted | {"owner": None}).native_is_current


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_row_survives_being_written_as_an_item(case: Case) -> None:
    """Reading an item gives back the row that it was made from."""
    assert row_from_item(item_from_row(case.after)) == case.after


@pytest.mark.parametrize("now", [a_row(checkpoint=SHARD_END, counter=42), a_row(checkpoint="7"), None])
@simulated
async def test_row_is_deleted_only_while_it_is_at_its_end_and_as_it_was_seen(now: LeaseRow | None) -> None:
    """Two workers that both mean to delete it do no harm, nor does one that was asleep meanwhile."""
    seen = a_row(checkpoint=SHARD_END)
    store = MemoryLeaseStore([] if now is None else [now])
    with pytest.raises(ConditionFailedError):
        await store.delete(rules.delete_completed(seen))
    assert len(store.items) == (now is not None)
    store = MemoryLeaseStore([seen])
    await store.delete(rules.delete_completed(seen))
    assert not store.items
