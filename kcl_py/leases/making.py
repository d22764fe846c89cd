"""Makes one change of what an operator does to lease rows."""

from actors import Clock
from kcl_py.clients import RETRY_MAX_S, RETRY_S
from kcl_py.errors import ConditionFailedError, ThrottledError
from kcl_py.leases.repositioning import Change
from kcl_py.leases.row import LeaseRow
from kcl_py.leases.store import LeaseStore


async def make(store: LeaseStore, change: Change, clock: Clock, *, patience_s: float) -> LeaseRow | None:
    """Make one change; while it is throttled, which has no effect, once more. Return the row that a write leaves.

    Raises:
        ConditionFailedError: somebody else has written the row since it was seen.
        RequestError: it failed, or was throttled for so long.
    """
    ends_at, pause_s = clock.monotonic() + patience_s, RETRY_S
    while True:
        try:
            return await _make_once(store, change)
        except ThrottledError:
            if clock.monotonic() + pause_s >= ends_at:
                raise
        await clock.sleep(pause_s)
        pause_s = min(2 * pause_s, RETRY_MAX_S)


async def _make_once(store: LeaseStore, change: Change) -> LeaseRow | None:
    if change.write is not None:
        return await store.write(change.write)
    if change.removal is not None:
        await store.delete(change.removal)
    elif change.row is not None and not await store.create(change.row):
        raise ConditionFailedError("create", change.key, "it is there")
    return None
