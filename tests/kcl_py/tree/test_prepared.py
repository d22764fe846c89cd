"""Checkpoints in two steps: a whole Shard over a scripted source, with the user's code preparing and committing."""

from dataclasses import replace

import pytest

from kcl_py import Checkpointer, CheckpointFailedError, LeaseLostError, PositionError, RecordBatch, RecordProcessor
from kcl_py.leases.commits import STATE_BYTES
from kcl_py.leases.row import Pending
from kcl_py.leases.view import How
from kcl_py.processor import OwnedShard, PreparedCheckpoint
from kcl_py.records import SequenceNumber
from kcl_py.tree.messages import Acquired, OpenShard
from kcl_py.tree.shard import Shard
from tests.kcl_py.tree.leases import FREE
from tests.kcl_py.tree.stage import SHARD, ScriptedSource, a_stage, some_records, until
from tests.kcl_py.tree.test_checkpointer import Calls, PlayedShard, a_shard
from tests.kcl_py.tree.wire import Fault
from tests.simloop import simulated


@simulated
async def test_prepared_checkpoint_stands_in_the_row_and_counts_when_it_is_committed() -> None:
    """Position and state first, then the checkpoint alone."""
    seen: list[tuple[str, Pending | None]] = []
    played: PlayedShard

    async def in_two_steps(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        prepared = await checkpointer.prepare(batch, state=b"\0tx-7")
        seen.append((played.row.checkpoint, played.row.pending))
        await prepared.commit()
        seen.append((played.row.checkpoint, played.row.pending))
        await prepared.commit()

    calls = Calls(in_two_steps)
    async with a_shard(some_records(3), work=calls) as played:
        await calls.come(1)
        assert seen == [("TRIM_HORIZON", Pending(SequenceNumber(3), b"\0tx-7")), ("3", None)]
        assert (calls.outcomes, played.writes(), len(played.stage.wire.of("prepare"))) == ([None], 1, 1)


@simulated
async def test_preparing_what_is_stored_already_writes_nothing() -> None:
    """Neither then, nor when it is committed."""

    async def late(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await checkpointer.checkpoint(batch)
        for at in (batch, batch.records[0], None):
            await (await checkpointer.prepare(at, state=b"x")).commit()

    calls = Calls(late)
    async with a_shard(some_records(3), work=calls) as played:
        await calls.come(1)
        assert (calls.outcomes, played.writes(), played.stage.wire.of("prepare")) == ([None], 1, [])


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.LOST_REQUEST, Fault.THROTTLED], ids=lambda fault: fault.name)
@simulated
async def test_prepare_that_fails_on_the_way_is_settled_before_it_returns(fault: Fault) -> None:
    """As each write of the row."""
    found: list[Pending | None] = []
    played: PlayedShard

    async def prepare(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        played.stage.wire.fail("prepare", fault)
        await checkpointer.prepare(batch)
        found.append(played.row.pending)

    calls = Calls(prepare)
    async with a_shard(some_records(2), work=calls) as played:
        await calls.come(1)
        assert (calls.outcomes, found) == ([None], [Pending(SequenceNumber(2))])


@simulated
async def test_prepare_raises_when_the_lease_is_lost_or_the_store_is_silent() -> None:
    """And as ``checkpoint`` does for what was not handed over."""

    async def beyond(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await checkpointer.prepare(some_records(1, first=99)[0])

    async def long(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        with pytest.raises(ValueError, match=f"expected at most {STATE_BYTES} bytes of state, found {STATE_BYTES + 1}"):
            await checkpointer.prepare(batch, state=b"x" * (STATE_BYTES + 1))
        for state in ("text", bytearray(b"x"), 7):
            with pytest.raises(
                TypeError, match=f"expected its state in bytes, found {type(state).__name__}; encode it"
            ):
                await checkpointer.prepare(batch, state=state)  # type: ignore[arg-type]

    async def throttled(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        played.stage.wire.fail("prepare", Fault.THROTTLED, times=100)
        await checkpointer.prepare(batch)

    async def stolen(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        played.stage.wire.recover()
        played.steal()
        await checkpointer.prepare(batch)

    calls = Calls(beyond, long, throttled, stolen)
    replies = [some_records(1, first=first) for first in (1, 2, 3, 4)]
    async with a_shard(*replies, work=calls) as played:
        await calls.come(4)
        assert [type(each) for each in calls.outcomes] == [
            PositionError,
            type(None),
            CheckpointFailedError,
            LeaseLostError,
        ]


@simulated
async def test_processor_that_begins_finds_what_was_prepared_before() -> None:
    """Until somebody's checkpoint has come as far."""
    shards: list[OwnedShard] = []

    class Finds(RecordProcessor):
        async def initialize(self, shard: OwnedShard) -> None:
            shards.append(shard)

        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None: ...

    pending = Pending(SequenceNumber(5), b"state")
    for checkpoint in ("4", "5"):
        row = replace(FREE, checkpoint=checkpoint, pending=pending)
        async with a_stage(source=ScriptedSource(), rows=[row], processor=Finds) as stage:
            coordinator = await stage.neighbour("coordinator")
            shard = Shard(stage.worker, OpenShard(row, How.FREE, coordinator.ref))
            await stage.play(SHARD, lambda shard=shard: shard)  # type: ignore[misc]  # a default binds it
            await coordinator.hears(Acquired)
            await until(lambda: shards)
    assert [(shard.pending, shard.pending_state) for shard in shards] == [(SequenceNumber(5), b"state"), (None, None)]


@simulated
async def test_what_is_checkpointed_by_itself_leaves_what_is_prepared_beyond_it() -> None:
    """With ``checkpoint.mode: auto``, batches before the one in hand are stored meanwhile; its own end ends it."""
    kept: list[tuple[str, Pending | None]] = []
    held: list[PreparedCheckpoint] = []
    played: PlayedShard

    async def first(batch: RecordBatch, checkpointer: Checkpointer) -> None: ...

    async def second(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        held.append(await checkpointer.prepare(batch, state=b"x"))
        await until(lambda: played.row.checkpoint == "2")
        kept.append((played.row.checkpoint, played.row.pending))

    calls = Calls(first, second)
    replies = some_records(2), some_records(2, first=3)
    async with a_shard(*replies, work=calls, checkpoint={"mode": "auto"}) as played:
        await calls.come(2)
        assert kept == [("2", Pending(SequenceNumber(4), b"x"))]
        await until(lambda: played.row.checkpoint == "4")
        assert played.row.pending is None
