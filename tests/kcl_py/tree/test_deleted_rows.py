"""Rows of the lease table that an operator deletes while a fleet runs."""

from itertools import pairwise

from structlog.testing import LogCapture

from tests.kcl_py.tree.fleet import FAILOVER_S, Fleet, running
from tests.simloop import simulated

HEARTBEAT_S = FAILOVER_S / 3


@simulated
async def test_deleted_row_is_made_again_and_its_shard_read_on(log: LogCapture) -> None:
    """The shard soon has an owner again, with a higher epoch, from its beginning, and a warning says so."""
    fleet = Fleet(shards=2)
    await running(fleet)
    deleted = fleet.shards()[0]
    del fleet.store.items[deleted]
    deleted_at = fleet.loop.time()
    fleet.put(40)
    await fleet.delivered()
    assert fleet.loop.time() < deleted_at + 2 * FAILOVER_S + 3 * HEARTBEAT_S
    epochs = [call.epoch for call in fleet.diary.called("initialize", shard_id=deleted)]
    assert epochs == sorted(set(epochs))
    assert len(epochs) == 2
    recreated = [entry["shard_id"] for entry in log.entries if entry["event"] == "kcl_py.lease.recreated"]
    assert recreated == [deleted]
    await fleet.stopped()
    fleet.check()


@simulated
async def test_missing_row_has_the_shards_listed_no_more_than_once_a_heartbeat() -> None:
    """However often the table is looked at meanwhile: others' news are no reason."""
    fleet = Fleet(shards=2)
    await running(fleet, workers=2)
    deleted_at = fleet.loop.time()
    del fleet.store.items[fleet.shards()[0]]
    fleet.put(10)
    await fleet.delivered()
    for member in fleet.members.values():
        listed_at = [call.at for call in member.wire.calls if call.operation == "list" and call.at > deleted_at]
        assert all(after - before > 0.9 * HEARTBEAT_S for before, after in pairwise(listed_at)), listed_at
    await fleet.stopped()


@simulated
async def test_row_that_a_newcomer_must_not_make_at_once_is_made_as_soon_as_it_may() -> None:
    """No hole shows that the row is missing: the child of the merge covers its hash keys, and waits for it."""
    fleet = Fleet(shards=2)
    await running(fleet)
    lower, upper = fleet.shards()
    fleet.merge(lower, upper)
    await fleet.until(lambda: len(fleet.rows()) == 3 and fleet.row(lower).has_ended and fleet.row(upper).has_ended)
    fleet.members["A"].crash()
    del fleet.store.items[upper]
    fleet.put(10)
    fleet.start("B")
    await fleet.delivered(within_s=2 * FAILOVER_S + 3 * HEARTBEAT_S)
    await fleet.stopped()


@simulated
async def test_row_deleted_between_decision_and_take_is_no_error() -> None:
    """A row that vanishes while a Shard starts ends that Shard in order."""
    fleet = Fleet(shards=1)
    worker = fleet.start("A")
    await fleet.until(lambda: worker.wire.of("take"), each_s=0.0005)
    fleet.store.items.clear()
    fleet.put(10)
    await fleet.delivered()
    assert worker.error is None
    await fleet.stopped()
