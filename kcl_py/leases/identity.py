"""Whose rows these are: a lease table belongs to one stream, told by its name and the second it was created.

A row without an identity (a Java worker's) is adopted by its next holder. In words: docs/semantics.md, "One stream,
one table".
"""

from collections.abc import Iterable
from typing import Literal

from kcl_py.errors import ConditionFailedError, StreamIdentityError
from kcl_py.events import Events
from kcl_py.leases import rules
from kcl_py.leases.row import LeaseRow
from kcl_py.leases.store import LeaseStore
from kcl_py.sources.source import StreamInfo


def strangers(rows: Iterable[LeaseRow], stream: StreamInfo) -> list[LeaseRow]:
    """Find the rows that name another stream."""
    return [row for row in rows if row.native.stream not in (None, stream.identity)]


def mismatch(row: LeaseRow, stream: StreamInfo, table: str) -> StreamIdentityError:
    """Build the error about one such row."""
    other = row.native.stream or ""
    if other.rpartition(":")[0] == stream.name:
        return StreamIdentityError(
            f"cannot use lease table {table!r}: expected rows of stream {stream.identity!r}, found row {row.key!r} of "
            f"{other!r}: the stream was deleted and created anew; set leases.on_recreated to reset to begin again, "
            "or use another app"
        )
    return StreamIdentityError(
        f"cannot use lease table {table!r}: expected rows of stream {stream.identity!r}, found row {row.key!r} of "
        f"{other!r}; give each stream an app of its own"
    )


def check_same(stream: StreamInfo, found: StreamInfo) -> None:
    """Make sure that a running worker's stream is the one that it began with.

    Raises:
        StreamIdentityError: it has been deleted and created anew since then.
    """
    if found.identity != stream.identity:
        raise StreamIdentityError(
            f"cannot go on with stream {stream.name!r}: expected {stream.identity!r}, found {found.identity!r}: it was "
            "deleted and created anew while this worker ran; set leases.on_recreated to reset and start again, "
            "or use another app"
        )


async def settle(
    store: LeaseStore, stream: StreamInfo, *, table: str, on_recreated: Literal["fail", "reset"], log: Events
) -> None:
    """Make sure that the table's rows are those of ``stream``, before anything is taken.

    With ``reset``, rows of an earlier stream of the same name are deleted, for discovery to make them anew.

    Raises:
        StreamIdentityError: they are another stream's, or an earlier one's and ``on_recreated`` is ``fail``.
    """
    scan = await store.scan()
    for row in strangers(scan.rows, stream):
        is_earlier = (row.native.stream or "").rpartition(":")[0] == stream.name
        if not is_earlier or on_recreated == "fail":
            raise mismatch(row, stream, table)
        log.warning("kcl_py.lease.reset", shard_id=row.key, stream=row.native.stream)
        try:
            await store.delete(rules.reset(row))
        except ConditionFailedError:
            continue  # another worker was faster
