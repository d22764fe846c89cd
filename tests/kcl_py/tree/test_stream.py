"""How a whole worker ends: asked, twice, with a stuck processor, by an exception, a cancellation or a failure."""

import asyncio
from typing import Any

import pytest
from structlog.testing import LogCapture

from actors import ActorError
from kcl_py import KclError, LeaseTableError, ProcessorError, RecordProcessor, Stream
from kcl_py.clients import Clients
from kcl_py.processor import Checkpointer
from kcl_py.records import RecordBatch
from tests.kcl_py.tree.fleet import FAILOVER_S, Fleet, Member, a_source, make_config
from tests.kcl_py.tree.pipelines import Failing
from tests.kcl_py.tree.wire import Fault
from tests.simloop import simulated

STOP_S = 1.0
"""Beyond the grace: what stopping itself may take."""


class Fine(RecordProcessor):
    """Finds nothing wrong with records."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None: ...


async def slow(batch: RecordBatch, checkpointer: Checkpointer) -> None:
    await asyncio.sleep(3)


async def stuck(batch: RecordBatch, checkpointer: Checkpointer) -> None:
    await asyncio.Event().wait()


async def deaf(batch: RecordBatch, checkpointer: Checkpointer) -> None:
    """Go on whatever happens."""
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


def assert_nothing_left(fleet: Fleet, member: Member) -> None:
    """No lease, no worker row, no task."""
    assert not fleet.held_by(member)
    assert not [row for row in fleet.rows().values() if member.owner in (row.owner, row.checkpoint_owner)]
    assert not fleet.store.worker_items
    assert not fleet.loop.left()


@pytest.mark.parametrize("shards", [0, 1, 5])
@simulated
async def test_stop_says_that_all_is_done_when_all_is_done(shards: int) -> None:
    """With 0, 1 or 5 shards the result is clean, all that is finished is stored, and nothing is left."""
    fleet = Fleet(shards=5, leases={"max_leases": max(shards, 1)})
    member = fleet.start("A")
    if shards:
        fleet.put(100)
        await fleet.until(lambda: len(fleet.held_by(member)) == shards)
        await asyncio.sleep(2)
    else:
        await fleet.until(lambda: member.stream)
    assert (await member.stop()).is_clean
    for shard_id in fleet.shards():
        done = [handover for handover in fleet.diary.of(shard_id) if handover.is_done]
        assert not done or fleet.row(shard_id).checkpoint == done[-1].records[-1].sequence_number
    assert_nothing_left(fleet, member)


@simulated
async def test_stop_lets_go_of_a_row_that_came_to_name_the_worker_while_it_left() -> None:
    """A request that was applied late leaves no shard to a worker that is gone: a last look at the table finds it."""
    fleet = Fleet(shards=2)
    member = fleet.start("A", leases={"max_leases": 1})
    await fleet.until(lambda: len(fleet.held_by(member)) == 1)
    [late] = set(fleet.shards()) - fleet.held_by(member)
    await asyncio.sleep(2)
    assert member.stream is not None
    member.wire.stale_scan = await fleet.store.scan()
    member.stream.stop(20)
    row = fleet.row(late)
    fleet.name_as_owner(late, member)
    await member.ended()
    assert fleet.row(late).counter == row.counter + 2
    assert_nothing_left(fleet, member)


@simulated
async def test_stop_twice_and_waits_at_once_end_with_the_same_result() -> None:
    """A second stop neither hangs nor restarts the first; every waiter gets the same outcome."""
    fleet = Fleet(shards=2)
    member = fleet.start("A", work=slow)
    fleet.put(20)
    await fleet.until(lambda: len(fleet.diary.handovers) == 2)
    stream = member.stream
    assert stream is not None
    waiting = [asyncio.ensure_future(stream.wait()) for _ in range(3)]
    for _ in range(3):
        stream.stop(20)
    outcomes = [await each for each in waiting]
    assert all(outcome.is_clean for outcome in outcomes)
    assert len(set(outcomes)) == 1
    assert await stream.wait() == outcomes[0]
    await member.ended()
    assert fleet.loop.time() < 5
    assert_nothing_left(fleet, member)


@simulated
async def test_second_stop_can_only_shorten_the_grace() -> None:
    """The nearer limit counts, whatever order two stops come in."""
    fleet = Fleet(shards=1)
    member = fleet.start("A", work=stuck)
    fleet.put(5)
    await fleet.until(lambda: fleet.diary.handovers)
    assert member.stream is not None
    begun_at = fleet.loop.time()
    member.stream.stop(100)
    member.stream.stop(5)
    member.stream.stop(50)
    await member.ended()
    assert fleet.loop.time() < begun_at + 5 + STOP_S
    assert member.outcome is not None
    assert member.outcome.unfinished == 5


@pytest.mark.parametrize("work", [stuck, deaf], ids=["stuck", "deaf to its cancellation"])
@simulated
async def test_stop_is_bounded_when_a_processor_never_returns(work: Any, log: LogCapture) -> None:
    """The grace plus a second; unfinished work is not marked, counted, and named with its shard in the log."""
    fleet = Fleet(shards=2)
    held = fleet.shards()[0]

    async def one_hangs(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        if batch.shard_id == held:
            await work(batch, checkpointer)

    member = fleet.start("A", work=one_hangs)
    fleet.put(40)
    await fleet.until(lambda: len(fleet.diary.handovers) == 2)
    begun_at = fleet.loop.time()
    outcome = await member.stop(grace_s=5)
    assert begun_at + 5 <= fleet.loop.time() < begun_at + 5 + 2 * STOP_S
    assert outcome.unfinished == len(fleet.truth(held))
    assert not outcome.is_clean
    assert fleet.row(held).checkpoint == "TRIM_HORIZON"
    assert not fleet.held_by(member)
    stopped = [entry for entry in log.entries if entry["event"] == "kcl_py.worker.stopped"]
    assert (stopped[0]["clean"], stopped[0]["unfinished"]) == (False, outcome.unfinished)
    [cut_off] = [entry for entry in log.entries if entry["event"] == "kcl_py.shard.cut_off"]
    assert (cut_off["shard_id"], cut_off["records"]) == (held, outcome.unfinished)
    assert cut_off["position"] == fleet.diary.of(held)[0].records[0].sequence_number


@simulated
async def test_unfinished_records_come_again_elsewhere() -> None:
    """What a stop cut off is the next owner's first batch."""
    fleet = Fleet(shards=1)
    member = fleet.start("A", work=stuck)
    fleet.put(5)
    await fleet.until(lambda: fleet.diary.handovers)
    await member.stop(grace_s=1)
    fleet.start("B")
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


@simulated
async def test_stop_counts_what_comes_again_of_a_lease_that_was_lost_meanwhile() -> None:
    """All was finished but not stored, and the worker stood still until another one took over: it is no clean end."""
    fleet = Fleet(shards=1)
    member = fleet.start("A")
    fleet.put(5)
    await fleet.delivered()
    await asyncio.sleep(3)
    fleet.put(7)
    await fleet.delivered()  # sooner than the next heartbeat
    member.pause(for_s=3 * FAILOVER_S)
    before = len(fleet.diary.handovers)
    fleet.start("B")
    await fleet.until(lambda: len(fleet.diary.handovers) > before)
    outcome = await member.stop()
    again = sum(len(handover.records) for handover in fleet.diary.handovers[before:])
    assert (outcome.unfinished, again) == (7, 7)
    assert not outcome.is_clean
    await fleet.stopped()


@simulated
async def test_leaving_the_block_by_a_cancellation_still_drains_and_releases() -> None:
    """Final checkpoint and release run although the task around them is cancelled."""
    fleet = Fleet(shards=2)
    member = fleet.start("A", work=slow)
    fleet.put(20)
    await fleet.until(lambda: len(fleet.diary.handovers) == 2)
    begun_at = fleet.loop.time()
    member.cancel()
    await member.ended()
    assert member.task.cancelled()
    assert fleet.loop.time() < begun_at + 3 + STOP_S
    assert all(row.position is not None for row in fleet.rows().values())
    assert_nothing_left(fleet, member)


@simulated
async def test_leaving_the_block_by_a_cancellation_is_bounded_by_the_configured_grace() -> None:
    """Cancelling never hangs on a processor that does."""
    fleet = Fleet(shards=2, grace_s=4)
    member = fleet.start("A", work=stuck)
    fleet.put(20)
    await fleet.until(lambda: len(fleet.diary.handovers) == 2)
    begun_at = fleet.loop.time()
    member.cancel()
    await member.ended()
    assert fleet.loop.time() < begun_at + 4 + STOP_S
    assert_nothing_left(fleet, member)


@pytest.mark.parametrize("after_s", [0.001 * number for number in range(0, 60, 3)])
@simulated
async def test_cancelling_a_worker_at_any_moment_of_its_start_leaves_nothing(after_s: float) -> None:
    """Also half-way through connecting, listing, taking and initialising."""
    fleet = Fleet(shards=3)
    fleet.put(30)
    member = fleet.start("A")
    await asyncio.sleep(after_s)
    member.cancel()
    await member.ended()
    assert not [row for row in fleet.rows().values() if row.owner is not None]
    assert not fleet.store.worker_items
    assert not fleet.loop.left()


async def hold_open(fleet: Fleet, *, inside: Any, **config: Any) -> Stream:
    """Open a worker in the calling task and do ``inside`` in its block."""
    options = {"leases": {"store": "memory", "failover_s": FAILOVER_S}} | config
    processor = fleet.diary.processor("A")
    clients = Clients(a_source(fleet), fleet.store)
    async with Stream(make_config(**options), processor=processor, clients=clients, clock=fleet.clock) as stream:
        await inside(stream)
    return stream


@simulated
async def test_leaving_the_block_by_an_exception_releases_and_raises_it_unwrapped() -> None:
    """The error of the block comes out as it is, after the worker has let go."""
    fleet = Fleet(shards=2)
    fleet.put(20)

    async def fail(stream: Stream) -> None:
        await fleet.delivered()
        raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        await hold_open(fleet, inside=fail)
    assert not [row for row in fleet.rows().values() if row.owner is not None]
    assert not fleet.store.worker_items
    assert not fleet.loop.left()


@simulated
async def test_leaving_the_block_in_order_needs_no_stop() -> None:
    """The end of the block stops the worker."""
    fleet = Fleet(shards=2)
    fleet.put(20)

    async def deliver(stream: Stream) -> None:
        await fleet.delivered()

    await hold_open(fleet, inside=deliver)
    assert not [row for row in fleet.rows().values() if row.owner is not None]
    assert not fleet.loop.left()


@simulated
async def test_fatal_error_comes_out_of_wait_by_its_own_type() -> None:
    """No group and no wrapper: ``except LeaseTableError`` around ``wait()`` works."""
    fleet = Fleet(shards=2)
    member = fleet.start("A")
    fleet.put(20)
    await fleet.delivered()
    for operation in ("scan", "workers", "put worker", "read", "heartbeat"):
        member.wire.fail(operation, Fault.MISSING, times=10_000)
    assert member.stream is not None
    with pytest.raises(LeaseTableError) as raised:
        await member.stream.wait()
    assert isinstance(raised.value.__cause__, KclError | ActorError)
    await member.ended()
    assert isinstance(member.error, LeaseTableError)
    assert not fleet.loop.left()


@simulated
async def test_error_of_another_kind_comes_out_of_wait_with_its_cause_chained() -> None:
    """What is no error of ours is reached in one step from what gave up."""
    fleet = Fleet(shards=1)
    member = fleet.start("A")
    await fleet.until(lambda: member.stream)
    assert member.stream is not None
    for _ in range(4):
        member.kill_actor("coordinator")
        await asyncio.sleep(0.1)
    with pytest.raises(ActorError) as raised:
        await member.stream.wait()
    assert isinstance(raised.value.__cause__, ActorError)
    await member.ended()


@simulated
async def test_failing_processor_ends_no_worker_and_a_restart_tries_again() -> None:
    """A halted shard keeps its place and the worker its other shards; the next ownership begins at the checkpoint."""
    fleet = Fleet(shards=2, delivery={"retries": 1, "backoff_s": 0.1})
    halting, other = fleet.shards()
    failing = Failing(99)

    async def one_fails(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        if batch.shard_id == halting:
            await failing(batch, checkpointer)

    member = fleet.start("A", work=one_fails)
    fleet.put(40)
    await fleet.until(lambda: fleet.rows() and fleet.row(halting).native.halted is not None)
    fleet.put(40)
    await fleet.until(lambda: set(fleet.truth(other)) <= fleet.diary.done)
    assert fleet.row(halting).owner == member.owner
    assert fleet.row(halting).checkpoint == "TRIM_HORIZON"
    await member.stop()
    fleet.start("B")
    await fleet.delivered()
    assert fleet.row(halting).native.halted is None
    await fleet.stopped()
    fleet.check()


@simulated
async def test_tree_shows_every_actor_with_its_state_in_the_order_of_their_start() -> None:
    """S3-11: who is told comes before who tells; ``tree()`` is what SIGUSR1 prints."""
    fleet = Fleet(shards=1)
    member = fleet.start("A")
    fleet.put(5)
    await fleet.delivered()
    assert member.stream is not None
    shown = str(member.stream.tree())
    lines = (
        "stream [running]",
        "shards [",
        "pipeline [running]",
        "producer [reading]",
        "lease [held]",
        "coordinator [",
    )
    places = [shown.index(line) for line in lines]
    assert places == sorted(places)
    await fleet.stopped()


@simulated
async def test_stream_that_was_left_can_be_opened_again_and_stops_again() -> None:
    """Nothing of the first stop is left over; while it is open it is refused, and goes on undisturbed."""
    fleet = Fleet(shards=1)
    stream = Stream(make_config(), processor=Fine, clients=Clients(a_source(fleet), fleet.store))
    for _ in range(2):
        async with stream:
            with pytest.raises(KclError, match="cannot open a Stream: expected a closed one, found it open"):
                async with stream:
                    pass
            stream.stop(5)
            assert (await stream.wait()).is_clean
    assert not fleet.loop.left()


@simulated
async def test_stream_that_could_not_be_opened_can_be_tried_again() -> None:
    """It counts as closed."""
    fleet = Fleet(shards=1)
    stream = Stream(make_config(), processor=RecordProcessor, clients=Clients(a_source(fleet), fleet.store))
    for _ in range(2):
        with pytest.raises(ProcessorError):
            await stream.__aenter__()
