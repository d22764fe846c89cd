"""What a processor is told of the shard that it is made for. Pure."""

from dataclasses import replace

from kcl_py.leases.row import Pending
from kcl_py.processor import Checkpointer, OwnedShard, has_lanes, is_in_order
from kcl_py.tables import Tables
from kcl_py.tree.messages import Start
from kcl_py.tree.worker import Worker


def owned_shard(worker: Worker, shard_id: str, start: Start) -> OwnedShard:
    """Return the shard as an ownership begins with it."""
    row = start.row
    tables = Tables(worker.store, worker.clock, worker.ids, timeout_s=worker.config.leases.failover_s / 2)
    shard = OwnedShard(
        worker.stream.name, shard_id, start.epoch, row.position, row.parents, row.checkpoint, tables=tables
    )
    return with_pending(shard, row.pending_after(row.position))


def with_checkpointer(shard: OwnedShard, worker: Worker, checkpointer: Checkpointer) -> OwnedShard:
    """Return the shard with its checkpointer, if ``process`` has none and could use it."""
    processor = worker.processor
    is_usable = has_lanes(processor) and is_in_order(processor, worker.config.delivery.ordering)
    return replace(shard, checkpointer=checkpointer if is_usable else None)


def with_pending(shard: OwnedShard, pending: Pending | None) -> OwnedShard:
    """Return the shard with what an earlier owner, or an earlier processor of this one, had prepared."""
    at, state = (None, None) if pending is None else (pending.position, pending.state)
    return replace(shard, pending=at, pending_state=state)
