"""Carries out what ``kcl leases`` is to change, row by row, and says how far it was where it cannot go on."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio

from actors.clock import SystemClock
from kcl_py.cli.asking import Asked
from kcl_py.cli.failure import print_error
from kcl_py.cli.output import say
from kcl_py.clients import RETRY_MAX_S, RETRY_S
from kcl_py.errors import ConditionFailedError, KclError, RequestError, ThrottledError
from kcl_py.leases.repositioning import Change
from kcl_py.leases.row import LeaseRow
from kcl_py.printable import counted

if TYPE_CHECKING:
    from kcl_py.leases.store import LeaseStore


async def carry_out(store: "LeaseStore", changes: Sequence[Change], *, patience_s: float) -> Asked:
    """Make the changes in their order; stop at the first row that somebody else has written. Return what is asked."""
    asked: Asked = {}
    for done, change in enumerate(changes):
        made = f"made {done} of {counted(len(changes), 'change')} before"
        try:
            row = await _make(store, change, patience_s)
        except ConditionFailedError as error:
            raise KclError(
                f"cannot change {change.key!r}: expected the row as it was seen, found another; {made}; do it again"
            ) from error
        except RequestError as error:
            raise KclError(f"cannot change {change.key!r}: {error}; {made}; do it again") from error
        except anyio.get_cancelled_exc_class():
            print_error(f"cut off while it changed {change.key!r}: {made}; do it again")
            raise
        if change.request is not None and row is not None:
            asked[change.key] = change.request, row
    if len(asked) < len(changes):
        say(f"{counted(len(changes) - len(asked), 'change')} made\n")
    return asked


async def _make(store: "LeaseStore", change: Change, patience_s: float) -> LeaseRow | None:
    """Make one change; while it is throttled, which has no effect, once more. Return the row that a write leaves."""
    clock = SystemClock()
    ends_at, pause_s = clock.monotonic() + patience_s, RETRY_S
    while True:
        try:
            return await _make_once(store, change)
        except ThrottledError:
            if clock.monotonic() + pause_s >= ends_at:
                raise
        await clock.sleep(pause_s)
        pause_s = min(2 * pause_s, RETRY_MAX_S)


async def _make_once(store: "LeaseStore", change: Change) -> LeaseRow | None:
    if change.write is not None:
        return await store.write(change.write)
    if change.removal is not None:
        await store.delete(change.removal)
    elif change.row is not None and not await store.create(change.row):
        raise ConditionFailedError("create", change.key, "it is there")
    return None
