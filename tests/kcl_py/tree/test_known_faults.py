"""Faults that clients before this one are known for (B-01 …, listed in docs/requirements.md): none of them is here.

Each test says in its name what holds instead.
"""

import asyncio
import random
from collections import defaultdict

import pytest
from structlog.testing import LogCapture

from kcl_py.leases.row import SHARD_END
from kcl_py.local.model import EndShape
from kcl_py.processor import Checkpointer
from kcl_py.records import RecordBatch, SequenceNumber
from kcl_py.tree.messages import Progress
from kcl_py.tree.worker import Ids
from tests.kcl_py.tree.fleet import FAILOVER_S, STREAM, Fleet
from tests.kcl_py.tree.pipelines import a_pipeline
from tests.kcl_py.tree.stage import some_records, until
from tests.simloop import simulated

HEARTBEAT_S = FAILOVER_S / 3


@pytest.mark.parametrize("end_shape", list(EndShape))
@simulated
async def test_shard_is_complete_only_after_its_last_batch_has_returned(end_shape: EndShape) -> None:
    """B-01: a crash while the last batch is in hand costs nothing: no end, no children, and the batch comes again."""
    is_slow = True

    async def slow(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await asyncio.sleep(30 if is_slow else 0.02)

    fleet = Fleet(shards=1, end_shape=end_shape)
    parent = fleet.shards()[0]
    last = fleet.put(10)
    fleet.split(parent)
    await asyncio.sleep(1)
    fleet.put(20)
    first = fleet.start("A", work=slow)
    await fleet.until(lambda: fleet.diary.handovers)
    await asyncio.sleep(20)
    assert list(fleet.rows()) == [parent]
    assert not fleet.row(parent).has_ended
    first.crash()
    is_slow = False
    fleet.start("B", work=slow)
    await fleet.delivered()
    assert [handover.data for handover in fleet.diary.of(parent)] == [last, last]
    await fleet.stopped()
    fleet.check()


@pytest.mark.parametrize("end_shape", list(EndShape))
@simulated
async def test_splits_and_merges_are_followed_to_the_end_with_each_keys_order_kept(end_shape: EndShape) -> None:
    """B-02, S3-03: shards close while records come, over three generations, with two workers."""
    fleet = Fleet(shards=2, end_shape=end_shape)
    order: dict[str, list[bytes]] = defaultdict(list)
    seen: dict[str, list[bytes]] = defaultdict(list)

    async def note(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        for record in batch:
            seen[record.partition_key].append(record.data)
        await asyncio.sleep(0.01)

    async def put_for(seconds: float) -> None:
        for _ in range(int(seconds / 0.2)):
            for key in ("ash", "elm", "fir", "oak", "yew"):
                order[key] += fleet.put(1, key=key)
            await asyncio.sleep(0.2)

    fleet.start("A", work=note)
    fleet.start("B", work=note)
    await put_for(4)
    fleet.split(fleet.shards()[0])
    await put_for(4)
    fleet.merge(fleet.shards()[2], fleet.shards()[3])
    await put_for(4)
    fleet.merge(fleet.shards()[4], fleet.shards()[1])
    await put_for(4)
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()
    assert seen == order
    ended = {key for key, row in fleet.rows().items() if row.checkpoint == SHARD_END}
    assert ended == set(fleet.shards()[:-1])
    opened = {call.shard_id for call in fleet.diary.called("initialize")}
    assert opened == set(fleet.shards())


@simulated
async def test_children_start_promptly_on_whatever_worker_has_room() -> None:
    """B-03, S3-41, S3-42: with the end of a shard its children are taken, and the shard itself runs nowhere."""
    fleet = Fleet(shards=1)
    parent = fleet.shards()[0]
    fleet.put(10)
    first, second = fleet.start("A"), fleet.start("B")
    await fleet.delivered()
    fleet.split(parent)
    await fleet.until(lambda: fleet.rows()[parent].has_ended)
    ended_at = fleet.loop.time()
    fleet.put(20)
    await fleet.until(lambda: all(fleet.diary.called("initialize", shard_id=child) for child in fleet.shards()[1:]))
    assert fleet.loop.time() < ended_at + 1.0
    await asyncio.sleep(1)
    assert parent not in first.shards + second.shards
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


@simulated
async def test_children_start_on_another_worker_when_the_closer_dies_right_after_the_end() -> None:
    """B-03: the children's rows are in the table by then, so nobody has to remember them."""
    fleet = Fleet(shards=1)
    parent = fleet.shards()[0]
    fleet.put(10)
    closer = fleet.start("A")
    await fleet.delivered()
    fleet.start("B")
    await asyncio.sleep(1)
    fleet.split(parent)
    await fleet.until(lambda: fleet.rows()[parent].has_ended, each_s=0.0005)
    closer.crash()
    ended_at = fleet.loop.time()
    fleet.put(20)
    await fleet.delivered()
    assert fleet.loop.time() < ended_at + 2 * HEARTBEAT_S + 1.0, "free rows wait for no expiry"
    await fleet.stopped()
    fleet.check()


@pytest.mark.parametrize("gone", [(0,), (1,), (0, 1)])
@simulated
async def test_child_of_a_merge_is_read_when_a_parent_has_aged_out(gone: tuple[int, ...]) -> None:
    """B-04, S3-17: each parent link is judged alone: one that is not listed blocks nothing, one that is ends first."""
    fleet = Fleet(shards=2)
    fleet.put(20)
    fleet.merge(*fleet.shards())
    await asyncio.sleep(1)
    fleet.put(20)
    forgotten = frozenset(fleet.shards()[number] for number in gone)
    for shard_id in forgotten:
        fleet.put_data -= set(fleet.truth(shard_id))
    fleet.start("A").wire.aged_out = forgotten
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()
    assert sorted(fleet.rows()) == [shard_id for shard_id in fleet.shards() if shard_id not in forgotten]


@simulated
async def test_shard_is_never_renewed_without_being_read(log: LogCapture) -> None:
    """B-08, S3-25: the Pipeline is there before its Lease, and one that dies as it is started takes the Lease along."""
    fleet = Fleet(shards=1)
    shard_id = fleet.shards()[0]
    fleet.put(10)
    worker = fleet.start("A")
    await fleet.until(lambda: [e for e in log.entries if e["event"] == "kcl_py.lease.taken"], each_s=0.0005)
    assert not worker.wire.of("fetch")
    assert [child.name for child in worker.node(f"shards/{shard_id}").children] == ["pipeline", "lease"]
    worker.kill_actor(f"shards/{shard_id}/pipeline")
    await fleet.delivered()
    assert fleet.loop.time() < 2.0
    await fleet.stopped()
    fleet.check()


@simulated
async def test_single_worker_takes_its_own_shard_again() -> None:
    """B-09: a row that names this very owner is no obstacle: it is taken anew, at once, with a new token."""
    fleet = Fleet(shards=1)
    shard_id = fleet.shards()[0]
    fleet.put(10)
    worker = fleet.start("A")
    await fleet.delivered()
    tokens = []
    for _ in range(3):
        tokens.append(fleet.row(shard_id).native.token)
        worker.kill_actor(f"shards/{shard_id}")
        died_at = fleet.loop.time()
        fleet.put(10)
        await fleet.delivered()
        assert fleet.loop.time() < died_at + FAILOVER_S, "no expiry is waited for"
        await asyncio.sleep(70)  # long enough to be forgiven
    assert len({*tokens, fleet.row(shard_id).native.token}) == 4
    await fleet.stopped()
    fleet.check()


def test_worker_names_do_not_repeat() -> None:
    """B-11, S3-12: a name has 64 bits of chance; of a hundred thousand no two are alike."""
    ids = Ids(random.Random(7))
    names = {f"{ids.incarnation()}/{ids.incarnation()}" for _ in range(100_000)}
    assert len(names) == 100_000


@simulated
async def test_two_workers_with_one_configured_name_are_two_owners() -> None:
    """B-11: a worker id that was given twice by mistake shares no lease."""
    fleet = Fleet(shards=4)
    one = fleet.start("A", leases={"worker_id": "same"})
    other = fleet.start("B", leases={"worker_id": "same"})
    fleet.put(40)
    await fleet.delivered()
    assert one.owner != other.owner
    assert not fleet.held_by(one) & fleet.held_by(other)
    await fleet.stopped()
    fleet.check()


@simulated
async def test_two_streams_under_one_app_are_told_apart_before_a_position_is_mixed_up() -> None:
    """B-15: the shard ids of both are the same; the second stream is refused, and the first goes on untouched."""
    fleet, foreign = Fleet(shards=2), Fleet(shards=2)
    fleet.put(20)
    fleet.start("A")
    await fleet.delivered()
    foreign.store = fleet.store
    foreign.model.call("DeleteStream", {"StreamName": STREAM})
    await asyncio.sleep(100)
    foreign.model.add_stream(STREAM, 2)
    stranger = foreign.start("B")
    await stranger.ended()
    assert type(stranger.error).__name__ == "StreamIdentityError"
    fleet.put(20)
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


@simulated
async def test_worker_starts_and_reads_while_its_stream_is_being_resharded() -> None:
    """B-19: UPDATING is as good as ACTIVE."""
    fleet = Fleet(shards=2)

    def status() -> object:
        described = fleet.model.call("DescribeStreamSummary", {"StreamName": STREAM})
        return described["StreamDescriptionSummary"]["StreamStatus"]

    fleet.put(20)
    fleet.split(fleet.shards()[0])
    worker = fleet.start("A")
    await fleet.until(lambda: worker.wire.of("list"), each_s=0.0005)
    assert status() == "UPDATING"
    fleet.put(20)
    await fleet.delivered(within_s=5)
    await fleet.stopped()
    fleet.check()


@simulated
async def test_sequence_numbers_are_compared_as_numbers() -> None:
    """B-20: 9 is before 10, in what is dropped, in what is finished and in what is read next."""
    async with a_pipeline(some_records(2, first=8), some_records(3, first=9), some_records(2, first=99)) as played:
        played.begin()
        await until(lambda: len(played.handovers) == 3 and played.handovers[-1].is_done)
        assert played.numbers() == [[8, 9], [10, 11], [99, 100]]
        await until(lambda: played.lease.of(Progress)[-1].prefix == SequenceNumber(100))
    assert SequenceNumber(9) < SequenceNumber(10) < SequenceNumber(10, 1) < SequenceNumber(99) < SequenceNumber(100)


@simulated
async def test_clean_stop_leaves_every_lease_free_with_what_is_finished() -> None:
    """B-21: a deploy costs no expiry: the next worker begins at once, after the last finished record."""
    fleet = Fleet(shards=4)
    first = fleet.start("A")
    fleet.put(40)
    await fleet.delivered()
    await first.stop()
    assert {row.owner for row in fleet.rows().values()} == {None}
    stopped_at = fleet.loop.time()
    fleet.put(40)
    fleet.start("B")
    await fleet.delivered()
    assert fleet.loop.time() < stopped_at + 0.5
    assert sum(len(handover.records) for handover in fleet.diary.handovers) == len(fleet.diary.done)
    await fleet.stopped()


# --- what the first client of this family promised and is shown nowhere else -----------------------------------------


@pytest.mark.parametrize("start", ["latest", "2023-11-14T22:13:21Z"])
@simulated
async def test_children_begin_at_their_beginning_wherever_the_stream_was_begun(start: str) -> None:
    """S3-09: records put between the making of a child and its first read are not lost to ``latest``."""
    fleet = Fleet(shards=1, start=start)
    await asyncio.sleep(5)
    worker = fleet.start("A")
    await fleet.until(lambda: worker.wire.of("fetch"))
    parent = fleet.shards()[0]
    fleet.put(10)
    fleet.split(parent)
    await asyncio.sleep(0.1)
    fleet.put(30)
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


@simulated
async def test_wall_clocks_that_differ_by_a_day_decide_nothing(log: LogCapture) -> None:
    """S3-24: expiry is judged by each reader's own monotonic clock."""
    fleet = Fleet(shards=4)
    fleet.start("A").clock.skew_s = 86_400.0
    fleet.start("B").clock.skew_s = -86_400.0
    for _ in range(30):
        fleet.put(8)
        await asyncio.sleep(0.5)
    await fleet.delivered()
    assert not _taken(log, "expired"), "nobody takes the other for dead"
    fleet.members["A"].crash()
    fleet.put(40)
    await fleet.delivered()
    assert _taken(log, "expired")
    await fleet.stopped()
    fleet.check()


def _taken(log: LogCapture, why: str) -> int:
    return sum(event["event"] == "kcl_py.lease.taken" and event["why"] == why for event in log.entries)


@simulated
async def test_every_line_of_the_log_names_app_stream_and_worker(log: LogCapture) -> None:
    """S3-60: and those about a shard its id, and those about an ownership its epoch."""
    fleet = Fleet(shards=2)
    fleet.start("A")
    fleet.start("B")
    fleet.put(20)
    fleet.split(fleet.shards()[0])
    await fleet.delivered()
    await fleet.stopped()
    assert len(log.entries) > 12
    for entry in log.entries:
        assert {"app", "stream", "worker"} <= entry.keys(), entry
        if entry["event"].startswith(("kcl_py.shard.", "kcl_py.lease.", "kcl_py.checkpoint.")):
            assert "shard_id" in entry, entry
        if entry["event"] in ("kcl_py.lease.taken", "kcl_py.shard.started", "kcl_py.checkpoint.stored"):
            assert "epoch" in entry, entry
