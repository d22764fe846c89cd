"""Every write of a lease row by an operator as plain data; those of workers are in ``leases/rules.py``.

Each takes the row as last seen and returns a ``store.Write``. Nobody asks later whether one of these took effect.
"""

from typing import Any

from kcl_py.leases.items import map_from_native, map_from_request
from kcl_py.leases.paths import (
    CHECKPOINT,
    CHILDREN,
    COUNTER,
    HOLDER,
    NATIVE,
    OWNER,
    PENDING,
    REQUEST,
    REQUEST_ID,
    SUB,
    SWITCHES,
    TOKEN,
    VOLATILE,
    as_seen,
    native,
)
from kcl_py.leases.requests import Place
from kcl_py.leases.row import LeaseRow, Native, Request
from kcl_py.leases.store import Is, Path, Write


def reposition(row: LeaseRow, place: Place) -> Write:
    """Build the write that has a shard begin elsewhere, held by nobody; what was said and asked of it goes."""
    begins: dict[Path, Any] = {}
    at_ms = place.start_ms
    if at_ms is not None:
        begins = {native("start"): at_ms} if row.has_native else {NATIVE: map_from_native(Native(start_ms=at_ms))}
    said = (
        native("owner"),
        native("delivered"),
        native("later"),
        REQUEST,
        *VOLATILE,
        *(() if begins else (native("start"),)),
    )
    return Write(
        operation="reposition",
        key=row.key,
        tests=as_seen(row),
        set={COUNTER: row.counter + 1, CHECKPOINT: place.checkpoint, SUB: 0, SWITCHES: 0, **begins},
        remove=(OWNER, HOLDER, CHILDREN, *PENDING, *(said if row.has_native else ())),
    )


def evict(row: LeaseRow) -> Write:
    """Build an operator's write that takes all names out of a row, and leaves the rest."""
    owner = (native("owner"),) if row.has_native else ()
    return Write(
        operation="evict",
        key=row.key,
        tests=as_seen(row),
        set={COUNTER: row.counter + 1},
        remove=(OWNER, HOLDER, *owner),
    )


def remove(row: LeaseRow) -> Write:
    """Build the tests under which an operator deletes a row: it is as seen."""
    return Write("remove", row.key, as_seen(row))


def request(row: LeaseRow, asked: Request) -> Write:
    """Build the write that asks something of a row's holder.

    The counter is neither tested nor raised, and no holder's write tests or sets what this one sets, but for those
    that answer it: so the holder goes on undisturbed, and sees the request in the reply to its next heartbeat.
    """
    return Write(
        operation="request",
        key=row.key,
        tests=(
            Is(OWNER, row.owner),
            Is(HOLDER, row.checkpoint_owner),
            Is(TOKEN, row.native.token),
            Is(REQUEST, None),
        ),
        set={REQUEST: map_from_request(asked)},
    )


def withdraw(row: LeaseRow, asked: Request) -> Write:
    """Build the write that takes a request back, if it has not been answered."""
    return Write(
        operation="withdraw",
        key=row.key,
        tests=(Is(REQUEST_ID, asked.id),) if asked.id else (),
        remove=(REQUEST,),
    )
