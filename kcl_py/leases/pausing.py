"""The writes that pause a shard and let it go on, and the tests that tell whether it is paused. Pure.

``native.paused`` is a state, and no holder's write sets it or takes it out, but for the end of a shard. So whoever
pauses a shard disturbs nobody: its holder sees that in the reply to its next heartbeat, and every later one in the row.
"""

from dataclasses import replace

from kcl_py.leases.items import map_from_native, map_from_pause
from kcl_py.leases.paths import COUNTER, NATIVE, PAUSED, PAUSED_AT, as_seen
from kcl_py.leases.row import LeaseRow, Native, Paused
from kcl_py.leases.store import Is, Write


def paused_as(row: LeaseRow) -> tuple[Is, ...]:
    """Test that a shard is paused, or is not, as it was seen; of a pause that has no time nothing can be told."""
    paused = row.native.paused
    if paused is None:
        return (Is(PAUSED, None),)
    return (Is(PAUSED_AT, paused.at_ms),) if paused.at_ms else ()


def pause(row: LeaseRow, asked: Paused) -> Write:
    """Build the write that pauses a shard; since when it is paused already stays.

    A row that only other clients have written must be as seen: a take would write the whole map.
    """
    before = row.native.paused
    paused = asked if before is None else replace(asked, at_ms=before.at_ms or asked.at_ms)
    if row.has_native:
        return Write("pause", row.key, paused_as(row), {PAUSED: map_from_pause(paused)})
    whole = {NATIVE: map_from_native(Native(paused=paused)), COUNTER: row.counter + 1}
    return Write("pause", row.key, (*as_seen(row), Is(NATIVE, None)), whole)


def unpause(row: LeaseRow) -> Write:
    """Build the write that lets a paused shard go on."""
    return Write("unpause", row.key, paused_as(row), remove=(PAUSED,))


def still_paused(row: LeaseRow) -> Write:
    """Build the check that goes with making a row in a stream that is paused, as another row of it tells."""
    return Write("still paused", row.key, paused_as(row))
