"""The requests that a Lease makes beside its writes, and their outcomes."""

from dataclasses import dataclass

from kcl_py.errors import MissingError, RequestError
from kcl_py.leases import rules
from kcl_py.leases.row import LeaseRow
from kcl_py.sources.source import ShardInfo
from kcl_py.tree.worker import Worker


@dataclass(frozen=True, slots=True)
class Polled:
    """The row was read, consistently."""

    begun_at: float
    ended_at: float
    row: LeaseRow | None


@dataclass(frozen=True, slots=True)
class ChildrenMade:
    """The children of the shard have rows."""

    children: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """A request failed; trying again may help."""

    error: RequestError
    begun_at: float


def _failed(error: RequestError, begun_at: float) -> Failed:
    """Take a failed request as an outcome; that the table is gone ends the Lease."""
    if isinstance(error, MissingError):
        raise error
    return Failed(error, begun_at)


async def poll(worker: Worker, key: str) -> Polled | Failed:
    """Look at the row."""
    begun_at = worker.clock.monotonic()
    try:
        row = await worker.store.read(key)
    except RequestError as error:
        return _failed(error, begun_at)
    return Polled(begun_at, worker.clock.monotonic(), row)


async def make_children(
    worker: Worker, parent: LeaseRow, token: str, known: tuple[ShardInfo, ...]
) -> ChildrenMade | Failed:
    """Make a row for each child of a shard that has been read to its end, while it is still ours.

    Args:
        worker: what the worker's actors share.
        parent: the row of the shard, as it is.
        token: of this ownership.
        known: the children as the source named them; if it named none, the stream is listed.
    """
    stream, start_ms, begun_at = worker.stream.identity, parent.native.start_ms, worker.clock.monotonic()
    check = rules.parent_is_mine(parent, owner=worker.owner, token=token)
    try:
        children = known
        if not children:
            listing = await worker.source.list_shards()
            children = tuple(shard for shard in listing.shards if parent.key in shard.parents)
        for child in children:
            await worker.store.create(
                rules.new_row(child, stream=stream, start_ms=start_ms, paused=parent.stream_pause), parent=check
            )
    except RequestError as error:
        return _failed(error, begun_at)
    return ChildrenMade(tuple(child.shard_id for child in children))
