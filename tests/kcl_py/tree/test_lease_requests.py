"""A request from outside to the holder of a shard, case by case: docs/leases.md, "Requests"."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from actors import SystemClock
from kcl_py.leases import by_hand
from kcl_py.leases.attributes import encode_item
from kcl_py.leases.items import item_from_row
from kcl_py.leases.requests import RELEASE, SEEK
from kcl_py.leases.row import LeaseRow, Native, Request
from kcl_py.leases.view import How
from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.records import SequenceNumber
from kcl_py.tree.asking import CheckpointOutcome
from kcl_py.tree.messages import (
    Acquired,
    Complete,
    Drain,
    Drained,
    GaveUp,
    MemberGone,
    Release,
    Resume,
    ShardEnded,
    Start,
    Why,
)
from tests.kcl_py.tree.leases import FREE, HEARTBEAT_S, THEIRS, PlayedLease, a_lease, outcome
from tests.kcl_py.tree.stage import ME, OTHER, SHARD, until
from tests.kcl_py.tree.wire import Fault
from tests.simloop import simulated

BACK = Request("r1", SEEK, "3")
LET_GO = Request("r1", RELEASE)


def asking(request: Request, row: LeaseRow = FREE) -> LeaseRow:
    """Return a row with a request in it."""
    return replace(row, native=replace(row.native, request=request))


async def asked(played: PlayedLease, request: Request = BACK) -> Start:
    """Take the lease, store some progress, and be asked; return how the Pipeline began."""
    start = await played.held()
    played.progress(8)
    await until(lambda: played.row.checkpoint == "8")
    await played.stage.store.write(by_hand.request(played.row, request))
    return start


@simulated
async def test_holder_goes_on_elsewhere_in_a_new_epoch_once_it_has_drained() -> None:
    """One write moves the position and takes the request out; nothing of before comes after it."""
    async with a_lease(FREE) as played:
        start = await asked(played)
        token = played.row.native.token
        drain = await played.pipeline.hears(Drain, within_s=HEARTBEAT_S + 0.1)
        assert drain.why is Why.REQUEST
        played.progress(9)
        await asyncio.sleep(4)
        assert played.row.native.request == BACK, "a drain that takes long keeps the row renewed, and the request in it"
        played.ref.tell(Drained(SequenceNumber(11), SequenceNumber(11), 0))
        again = await played.pipeline.hears(Start, times=2, within_s=0.1)
        row = played.row
        assert (row.checkpoint, row.holder, row.native.request) == ("3", ME, None)
        assert row.native.token not in (None, token)
        assert (again.epoch, again.row) == (row.counter, row)
        assert again.epoch > start.epoch
        assert start.fence.tenure is None
        assert again.fence.tenure is not None
        await asyncio.sleep(5)
        assert played.row.checkpoint == "3"
        assert (played.writes("seek"), played.writes("take")) == (1, 1)


@pytest.mark.parametrize(
    ("position", "checkpoint", "start_ms"),
    [
        ("900", "900", None),
        ("TRIM_HORIZON", "TRIM_HORIZON", None),
        ("LATEST@77", "LATEST", 77),
        ("AT_TIMESTAMP@0", "AT_TIMESTAMP", 0),
    ],
)
@simulated
async def test_a_place_can_be_a_number_an_end_or_an_instant(
    position: str, checkpoint: str, start_ms: int | None
) -> None:
    """What the row said of another instant is gone."""
    async with a_lease(replace(FREE, native=replace(FREE.native, start_ms=5))) as played:
        await asked(played, Request("r1", SEEK, position))
        await played.drains(8)
        await played.pipeline.hears(Start, times=2)
        assert (played.row.checkpoint, played.row.native.start_ms) == (checkpoint, start_ms)


@simulated
async def test_what_the_processor_asks_for_late_does_not_move_the_new_position() -> None:
    """Neither what it still waits for when the seek is written, nor what it asks for under the old epoch."""
    async with a_lease(FREE) as played:
        await asked(played)
        token = str(played.row.native.token)
        await played.pipeline.hears(Drain)
        played.stage.wire.fail("checkpoint", Fault.THROTTLED, times=100)
        waiting = played.checkpoint(10, token=token)
        played.ref.tell(Drained(SequenceNumber(9), SequenceNumber(9), 0))
        await played.pipeline.hears(Start, times=2)
        late = played.checkpoint(11, token=token)
        assert [await outcome(waiting), await outcome(late)] == [CheckpointOutcome.LOST] * 2
        played.progress(4)
        await until(lambda: played.row.checkpoint == "4")


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.LOST_REQUEST, Fault.THROTTLED, Fault.BROKEN])
@simulated
async def test_seek_whose_reply_is_lost_takes_effect_once(fault: Fault) -> None:
    """A read tells by the token; where it had no effect it is written again."""
    async with a_lease(FREE) as played:
        await asked(played)
        await played.pipeline.hears(Drain)
        played.stage.wire.fail("seek", fault)
        played.ref.tell(Drained(SequenceNumber(8), SequenceNumber(8), 0))
        again = await played.pipeline.hears(Start, times=2)
        assert (played.row.checkpoint, played.row.native.request) == ("3", None)
        assert again.fence.tenure is not None
        assert (again.fence.tenure.token, again.epoch) == (played.row.native.token, again.row.counter)
        assert not played.coordinator.of(GaveUp)


@simulated
async def test_seek_that_nobody_can_tell_of_is_recognised_when_it_is_tried_again() -> None:
    """Its token is the same, so the second try finds that the first has taken effect."""
    async with a_lease(FREE) as played:
        await asked(played)
        await played.pipeline.hears(Drain)
        played.stage.wire.fail("seek", Fault.LOST_REPLY)
        played.stage.wire.fail("read", Fault.BROKEN, times=6)
        played.ref.tell(Drained(SequenceNumber(8), SequenceNumber(8), 0))
        await played.pipeline.hears(Start, times=2)
        assert played.row.checkpoint == "3"
        assert played.writes("take") == 1


@simulated
async def test_next_owner_carries_out_what_its_forerunner_did_not_come_to() -> None:
    """The request is in the row that it takes: it is answered before anything is read."""
    async with a_lease(asking(BACK, replace(FREE, checkpoint="8"))) as played:
        start = await played.pipeline.hears(Start)
        assert (start.row.checkpoint, start.row.native.request) == ("3", None)
        assert played.writes("take") == played.writes("seek") == len(played.pipeline.of(Start)) == 1
        assert not played.pipeline.of(Drain)


@simulated
async def test_a_handoff_goes_first_and_leaves_the_request_to_the_receiver() -> None:
    """It stays in the row, and the progress of the old position with it."""
    async with a_lease(FREE) as played:
        await asked(played)
        await played.ask_for_it()
        await played.drains(9)
        await played.coordinator.hears(GaveUp)
        row = played.row
        assert (row.owner, row.checkpoint_owner, row.checkpoint, row.native.request) == (OTHER, None, "9", BACK)


@simulated
async def test_a_stop_leaves_the_request_to_the_next_owner() -> None:
    """Who stops has no time for it."""
    async with a_lease(FREE) as played:
        await asked(played)
        played.ref.tell(Release(played.now, played.now + 20))
        await played.drains(9)
        gave_up = await played.coordinator.hears(GaveUp)
        row = played.row
        assert (row.owner, row.checkpoint, row.native.request, gave_up.is_for_others) == (None, "9", BACK, False)


@simulated
async def test_request_that_is_withdrawn_lets_the_shard_go_on_where_it_was() -> None:
    """As after a handoff that was called off."""
    async with a_lease(FREE) as played:
        await asked(played)
        await played.pipeline.hears(Drain)
        await played.stage.store.write(by_hand.withdraw(played.row, BACK))
        played.ref.tell(Drained(SequenceNumber(9), SequenceNumber(9), 0))
        assert await played.pipeline.hears(Resume) == Resume(SequenceNumber(9))
        assert len(played.pipeline.of(Start)) == 1


@simulated
async def test_request_that_is_withdrawn_while_it_is_taken_lets_the_shard_begin_where_it_was() -> None:
    """The write of the seek is refused; the Pipeline has not begun yet."""
    async with a_lease(asking(BACK, replace(FREE, checkpoint="8"))) as played:
        played.stage.wire.fail("seek", Fault.THROTTLED, times=2)
        await played.coordinator.hears(Acquired)
        await played.stage.store.write(by_hand.withdraw(played.row, BACK))
        start = await played.pipeline.hears(Start)
        assert start.row.checkpoint == "8"
        assert not played.pipeline.of(Resume)


@simulated
async def test_shard_that_ends_meanwhile_is_complete_and_nothing_is_asked_any_more() -> None:
    """It is too late then."""
    async with a_lease(FREE) as played:
        await asked(played)
        await played.pipeline.hears(Drain)
        played.ref.tell(Complete(SequenceNumber(9), ()))
        await played.coordinator.hears(ShardEnded)
        assert (played.row.has_ended, played.row.native.request) == (True, None)


@simulated
async def test_worker_that_stops_while_the_reading_is_moved_lets_go_all_the_same() -> None:
    """The reply to the seek was lost, and the request to stop came before it was known that the seek has succeeded."""
    async with a_lease(FREE) as played:
        await asked(played)
        await played.pipeline.hears(Drain)
        played.stage.wire.fail("seek", Fault.LOST_REPLY)
        played.ref.tell(Drained(SequenceNumber(8), SequenceNumber(8), 0))
        await until(lambda: played.row.native.request is None)
        played.ref.tell(Release(played.now, played.now + 20))
        await played.pipeline.hears(Start, times=2)
        drain = await played.pipeline.hears(Drain, times=3)
        assert drain.why is Why.STOP
        played.ref.tell(Drained(SequenceNumber(5), SequenceNumber(5), 0))
        await until(lambda: played.row.holder is None)
        assert played.row.checkpoint == "5"


@simulated
async def test_holder_lets_go_when_it_is_asked_to_and_says_so() -> None:
    """With its final checkpoint; whoever runs the worker leaves the shard to others for a while."""
    async with a_lease(FREE) as played:
        await asked(played, LET_GO)
        await played.drains(9)
        gave_up = await played.coordinator.hears(GaveUp)
        row = played.row
        assert (row.holder, row.checkpoint, row.native.request) == (None, "9", None)
        assert gave_up.is_for_others


@simulated
async def test_who_takes_a_shard_of_which_another_was_to_let_go_keeps_it() -> None:
    """The request is answered by that, and goes."""
    async with a_lease(asking(LET_GO, THEIRS), how=How.EXPIRED) as played:
        await played.held()
        with capture_logs() as logs:
            await until(lambda: played.row.native.request is None)
        assert played.row.holder == ME
        assert not played.pipeline.of(Drain)
        assert not [log for log in logs if log["event"] == "kcl_py.lease.request_refused"]


@simulated
async def test_who_is_asked_to_let_go_before_it_knows_that_it_has_the_shard_does_so() -> None:
    """The reply to its take was lost, and the row that it reads then holds the request."""
    async with a_lease(FREE) as played:
        played.stage.wire.fail("take", Fault.LOST_REPLY)
        await until(lambda: played.row.holder == ME)
        await played.stage.store.write(by_hand.request(played.row, LET_GO))
        await played.held()
        await played.drains(8)
        await until(lambda: played.row.holder is None)
        assert played.row.native.request is None


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ({"id": "r1", "kind": "dance"}, "expected seek, resume or release as kind, found 'dance'"),
        ({"id": "r1", "kind": 3}, "expected seek, resume or release as kind, found '3'"),
        ({"id": "r1", "kind": "seek"}, "expected a sequence number, TRIM_HORIZON, LATEST@ms or AT_TIMESTAMP@ms"),
        ({"id": "r1", "kind": "seek", "position": "SHARD_END"}, "found 'SHARD_END' as position"),
        ({"id": "r1", "kind": "seek", "position": "LATEST"}, "found 'LATEST' as position"),
        ({"id": "r1", "kind": "seek", "position": 7.5}, "found '7.5' as position"),
        ({"id": 7, "kind": "release"}, "expected a map with a text as id, found none"),
        ("please", "expected a map with a text as id, found none"),
    ],
    ids=str,
)
@simulated
async def test_request_that_makes_no_sense_is_taken_out_with_one_warning_and_stops_nothing(
    request_: Any, why: str
) -> None:
    """It names what was expected and found."""
    async with a_lease(FREE) as played:
        await played.held()
        item = dict(played.stage.store.items[SHARD])
        played.stage.store.items[SHARD] = item | {"native": item["native"] | {"request": request_}}
        with capture_logs() as logs:
            await until(lambda: played.row.native.request is None)
            await asyncio.sleep(10)
        [said] = [log for log in logs if log["event"] == "kcl_py.lease.request_refused"]
        assert why in said["error"]
        assert not played.pipeline.of(Drain)


@simulated
async def test_handoff_that_is_called_off_leaves_the_request_to_be_answered() -> None:
    """Both were in the row; the receiver has died."""
    async with a_lease(FREE) as played:
        await asked(played)
        await played.ask_for_it()
        await played.pipeline.hears(Drain)
        played.ref.tell(MemberGone(OTHER))
        played.ref.tell(Drained(SequenceNumber(9), SequenceNumber(9), 0))
        again = await played.pipeline.hears(Start, times=2)
        assert (again.row.checkpoint, again.row.owner) == ("3", ME)


def test_row_with_the_longest_request_stays_below_one_kilobyte() -> None:
    """A heartbeat of it costs one write unit."""
    owner = f"{'w' * 60}/0123abcd"
    row = LeaseRow(
        SHARD, 10**9, owner, owner, "4" * 56, 10**6, 10**6, (SHARD, SHARD), (), (2**127, 2**128 - 1), None,
        Native(
            token="f" * 32, owner=owner, taken_ms=1 << 41, stream="orders:1700000000", start_ms=1 << 41,
            delivered="4" * 56, lag_ms=10**6, lag_at_ms=1 << 41,
        ),
    )  # fmt: skip
    longest = asking(Request("0123abcd", SEEK, "4" * 56), row)
    tables = DynamoDB(Behaviour(SystemClock()))
    tables.call("CreateTable", {"TableName": "rows", "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "leaseKey", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "leaseKey", "AttributeType": "S"}]})  # fmt: skip
    item = encode_item(item_from_row(longest))
    reply = tables.call("PutItem", {"TableName": "rows", "Item": item, "ReturnConsumedCapacity": "TOTAL"})
    assert reply["ConsumedCapacity"]["CapacityUnits"] == 1.0
