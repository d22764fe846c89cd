"""Every write of a lease row by a worker as plain data, and what a read says about one whose outcome is unknown.

One function for each line of docs/leases.md, "Writes". Each takes the row as last seen and who writes, and returns a
``store.Write``; nothing here does I/O, draws tokens or knows the time. Attributes not named here are never touched.
``owner`` is ``<worker id>/<incarnation>``, ``token`` the one that this ownership's take wrote.
"""

from dataclasses import dataclass, replace
from typing import Any

from kcl_py.leases.items import list_from_later, map_from_halt, map_from_native
from kcl_py.leases.paths import (
    CHECKPOINT,
    CHILDREN,
    COUNTER,
    HOLDER,
    NATIVE,
    OWNER,
    PAUSED,
    PENDING,
    REQUEST,
    REQUEST_ID,
    SUB,
    SWITCHES,
    THROUGHPUT,
    TOKEN,
    VOLATILE,
    as_seen,
    native,
)
from kcl_py.leases.pausing import paused_as
from kcl_py.leases.requests import Place, asks_to_let_go
from kcl_py.leases.row import SHARD_END, TRIM_HORIZON, Halt, Later, LeaseRow, Native, Paused, Request
from kcl_py.leases.store import AnyOf, Is, Path, Test, Write
from kcl_py.records import SequenceNumber
from kcl_py.sources.source import ShardInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a holder says about its shard with a heartbeat; None leaves a field as it is, unless it says otherwise."""

    position: SequenceNumber | None = None
    """The newest finished prefix; one that is not beyond the stored checkpoint is not written."""
    lag_ms: int | None = None
    lag_at_ms: int | None = None
    throughput_kbps: float | None = None
    held_by: str | None = None
    later: tuple[Later, ...] = ()
    """Of this and ``held_by`` what is said holds, also where it is nothing."""
    halted: Halt | None = None
    """None: the shard does not stand still, and what the row says of a halt is removed, as is a fault in any case."""
    stream: str | None = None
    quiet_for: int | None = None
    """The pause, by its ``at_ms``, under which nothing is in hand; None: what the row says of that is removed."""


def new_row(
    shard: ShardInfo,
    *,
    stream: str,
    checkpoint: str = TRIM_HORIZON,
    start_ms: int | None = None,
    counter: int = 0,
    paused: Paused | None = None,
) -> LeaseRow:
    """Make the first row of a shard: a child at its parent's end (at TRIM_HORIZON), or as discovery says.

    ``paused`` is that of the stream, if it is paused.
    """
    return LeaseRow(
        key=shard.shard_id,
        counter=counter,
        checkpoint=checkpoint,
        parents=shard.parents,
        hash_range=shard.hash_range,
        native=Native(stream=stream, start_ms=start_ms, paused=paused),
    )


def parent_is_mine(row: LeaseRow, *, owner: str, token: str) -> Write:
    """Build the check that goes with creating a child: the parent is still held by this ownership, and as seen.

    Also whether the stream is paused, which the child's row repeats.
    """
    held = by_holder(row, "create child", owner=owner, token=token)
    return replace(held, tests=(*held.tests, *paused_as(row)))


def take(
    row: LeaseRow, *, owner: str, token: str, now_ms: int, stream: str | None = None, why: str | None = None
) -> Write:
    """Build a take of a row that is free, expired, an own earlier one, or ours after a handoff.

    ``token`` is fresh; ``stream`` is stored if the row names none yet; ``why`` is for people. What the former owner
    said about its lag, halt or fault goes; start, requests and progress stay.
    """
    stream = None if row.native.stream else stream
    fields = map_from_native(Native(token=token, owner=owner, taken_ms=now_ms, why=why, stream=stream))
    switched = row.owner not in (None, owner) or row.checkpoint_owner == owner
    return Write(
        operation="take",
        key=row.key,
        tests=as_seen(row),
        set={COUNTER: row.counter + 1, OWNER: owner}
        | ({native(name): value for name, value in fields.items()} if row.has_native else {NATIVE: fields}),
        remove=(HOLDER, *(VOLATILE if row.has_native else ())),
        add={SWITCHES: 1} if switched else {},
        owner=owner,
        token=token,
    )


def heartbeat(row: LeaseRow, *, owner: str, token: str, report: Report | None = None) -> Write:
    """Build a renewal, with the newest finished prefix and all that the holder has to report, in one."""
    return _renewal(row, "heartbeat", owner=owner, token=token, report=report or Report())


def checkpoint(row: LeaseRow, *, owner: str, token: str, report: Report) -> Write:
    """Build an explicit checkpoint of ``report.position``; it renews as a heartbeat does."""
    return _renewal(row, "checkpoint", owner=owner, token=token, report=report)


def start_handoff(row: LeaseRow, *, owner: str) -> Write:
    """Build a receiver's request for a held row; the counter is neither tested nor raised, so the holder goes on."""
    holder = _name_of(row, row.owner, "a holder")
    return Write(
        operation="start handoff",
        key=row.key,
        tests=(Is(OWNER, holder), Is(HOLDER, None), Is(TOKEN, row.native.token)),
        set={OWNER: owner, HOLDER: holder},
        owner=owner,
        token=row.native.token,
    )


def transfer(
    row: LeaseRow,
    *,
    owner: str,
    position: SequenceNumber | None = None,
    delivered: str | None = None,
    later: tuple[Later, ...] = (),
) -> Write:
    """Build the holder's last write of a handoff: final checkpoint and the receiver alone, in one update.

    ``delivered``: how far records were handed over, when all that was in hand came to its end; ``later``: those that
    are put off.

    The token is tested as seen, so that one who was asked before it ever took the row can pass it on (no position).
    """
    progress, ended = _progress(row, position)
    return Write(
        operation="transfer",
        key=row.key,
        tests=(Is(COUNTER, row.counter), Is(OWNER, row.owner), Is(HOLDER, owner), Is(TOKEN, row.native.token)),
        set={COUNTER: row.counter + 1, **progress, **_handed_over(row, delivered, later)},
        remove=(HOLDER, *ended),
        owner=owner,
        token=row.native.token,
    )


def cancel_handoff_by_receiver(row: LeaseRow, *, owner: str) -> Write:
    """Build a receiver's withdrawal of its request; the counter is untouched."""
    holder = _name_of(row, row.checkpoint_owner, "a handoff under way")
    return Write(
        operation="cancel handoff by receiver",
        key=row.key,
        tests=(Is(OWNER, owner), Is(HOLDER, holder)),
        set={OWNER: holder},
        remove=(HOLDER,),
        owner=owner,
    )


def cancel_handoff_by_holder(row: LeaseRow, *, owner: str, token: str) -> Write:
    """Build the holder's cancel of a handoff whose receiver has died; counts as a heartbeat."""
    return Write(
        operation="cancel handoff by holder",
        key=row.key,
        tests=(Is(COUNTER, row.counter), Is(OWNER, row.owner), Is(HOLDER, owner), Is(TOKEN, token)),
        set={COUNTER: row.counter + 1, OWNER: owner},
        remove=(HOLDER,),
        owner=owner,
        token=token,
    )


def complete(row: LeaseRow, *, owner: str, token: str, children: tuple[str, ...]) -> Write:
    """Build the end of a shard: child ids, SHARD_END and no owner, in one update; the children have their rows.

    Whatever was asked meanwhile comes too late.
    """
    return replace(
        by_holder(row, "complete", owner=owner, token=token),
        set={
            COUNTER: row.counter + 1,
            CHECKPOINT: SHARD_END,
            SUB: 0,
            SWITCHES: 0,
            **({CHILDREN: frozenset(children)} if children else {}),
        },
        remove=(OWNER, HOLDER, native("owner"), REQUEST, PAUSED, *VOLATILE, *PENDING),
    )


def release(
    row: LeaseRow,
    *,
    owner: str,
    token: str,
    position: SequenceNumber | None = None,
    delivered: str | None = None,
    later: tuple[Later, ...] = (),
    fault: str | None = None,
) -> Write:
    """Build a holder's letting go: final checkpoint, how far was handed over (when clean), why it could not run.

    It answers a request to let go, whatever it was made for.
    """
    progress, ended = _progress(row, position)
    asked = row.native.request
    answered = asked if asks_to_let_go(asked) else None
    tests = (Is(COUNTER, row.counter), Is(OWNER, owner), Is(HOLDER, None), Is(TOKEN, token))
    kept: dict[Path, Any] = _handed_over(row, delivered, later) | ({} if fault is None else {native("fault"): fault})
    return Write(
        operation="release",
        key=row.key,
        tests=(*tests, *_stands(answered)),
        set={COUNTER: row.counter + 1, **progress, **kept},
        remove=(
            *(OWNER, native("owner"), *ended, *((REQUEST,) if answered is not None else ())),
            *(path for path in VOLATILE if path not in kept),
        ),
        owner=owner,
        token=token,
    )


def seek(row: LeaseRow, *, owner: str, token: str, fresh: str, place: Place) -> Write:
    """Build a holder's answer to a request to go on elsewhere: a take of its own row, there, in one update.

    What comes later from under the old ``token`` has no effect. ``fresh`` is the same for each try to answer one
    request, so that a read tells whether one of them took effect.
    """
    held = by_holder(row, "seek", owner=owner, token=token)
    start = native("start")
    return Write(
        operation=held.operation,
        key=row.key,
        tests=(*held.tests, *_stands(row.native.request)),
        set={COUNTER: row.counter + 1, CHECKPOINT: place.checkpoint, SUB: 0, SWITCHES: 0, TOKEN: fresh}
        | ({} if place.start_ms is None else {start: place.start_ms}),
        remove=(
            REQUEST,
            native("delivered"),
            native("later"),
            *VOLATILE,
            *PENDING,
            *(() if place.start_ms is not None else (start,)),
        ),
        owner=owner,
        token=fresh,
    )


def resume(row: LeaseRow, *, owner: str, token: str, fresh: str, position: SequenceNumber | None = None) -> Write:
    """Build a holder's answer to a request to go on in a new ownership: as ``seek``, but where it is."""
    held = by_holder(row, "resume", owner=owner, token=token)
    progress, ended = _progress(row, position)
    return replace(
        held,
        tests=(*held.tests, *_stands(row.native.request)),
        set={COUNTER: row.counter + 1, TOKEN: fresh, **progress},
        remove=(REQUEST, *VOLATILE, *ended),
        token=fresh,
    )


def refuse(row: LeaseRow, *, owner: str, token: str) -> Write:
    """Build a holder's removal of a request that it cannot carry out, or that was meant for another; it renews."""
    held = by_holder(row, "refuse", owner=owner, token=token)
    tests = (*held.tests, *_stands(row.native.request))
    return replace(held, tests=tests, set={COUNTER: row.counter + 1}, remove=(REQUEST,))


def let_go(row: LeaseRow, *, owner: str) -> Write:
    """Build the last word before exit on a row that still names us as its actual owner; no checkpoint.

    In a handoff the receiver stays named.
    """
    return Write(
        operation="let go",
        key=row.key,
        tests=as_seen(row),
        set={COUNTER: row.counter + 1},
        remove=(HOLDER,) if row.in_handoff else (OWNER,),
        owner=owner,
    )


def delete_completed(row: LeaseRow) -> Write:
    """Build the tests under which the row of a shard that was read to its end is deleted: it is as seen."""
    return Write("delete completed", row.key, (Is(CHECKPOINT, SHARD_END), Is(COUNTER, row.counter)))


def reset(row: LeaseRow) -> Write:
    """Build the tests under which a row of an earlier stream is deleted."""
    return Write("reset", row.key, (Is(COUNTER, row.counter), Is(native("stream"), row.native.stream)))


def _name_of(row: LeaseRow, owner: str | None, expected: str) -> str:
    if owner is None:
        raise ValueError(f"cannot write to the row of {row.key!r}: expected {expected}, found no owner")
    return owner


def _stands(answered: Request | None) -> tuple[Test, ...]:
    """Test that a request which is answered has been neither withdrawn nor replaced; one without an id may have."""
    return (Is(REQUEST_ID, answered.id),) if answered is not None and answered.id else ()


def by_holder(row: LeaseRow, operation: str, *, owner: str, token: str) -> Write:
    """Build the tests of a write by who holds the row, in a handoff or not."""
    named = AnyOf((Is(OWNER, owner), Is(HOLDER, owner)))
    tests = (Is(COUNTER, row.counter), named, Is(TOKEN, token))
    return Write(operation, row.key, tests, owner=owner, token=token)


def _renewal(row: LeaseRow, operation: str, *, owner: str, token: str, report: Report) -> Write:
    held = by_holder(row, operation, owner=owner, token=token)
    progress, ended = _progress(row, report.position, is_asked=operation == "checkpoint")
    said = {
        THROUGHPUT: report.throughput_kbps,
        native("lag_ms"): report.lag_ms,
        native("lag_at"): report.lag_at_ms,
        native("halted"): None if report.halted is None else map_from_halt(report.halted),
        native("held_by"): report.held_by,
        native("later"): list_from_later(report.later) or None,
        native("stream"): report.stream,
        native("quiet"): report.quiet_for,
    }
    over = {
        native("halted"): row.native.halted,
        native("held_by"): row.native.held_by,
        native("later"): row.native.later or None,
        native("fault"): row.native.fault,
        native("quiet"): row.native.quiet_for,
    }
    return Write(
        operation=operation,
        key=row.key,
        tests=held.tests,
        set={COUNTER: row.counter + 1, **progress} | {path: value for path, value in said.items() if value is not None},
        remove=(*ended, *(path for path, was in over.items() if was is not None and said.get(path) is None)),
        owner=owner,
        token=token,
    )


def _handed_over(row: LeaseRow, delivered: str | None, later: tuple[Later, ...]) -> dict[Path, Any]:
    """What the last write of an owner says of how far it came, until which write that holds, and what it put off."""
    said: dict[Path, Any] = {native("later"): list_from_later(later)} if later else {}
    return said if delivered is None else said | {native("delivered"): delivered, native("clean"): row.counter + 1}


def _progress(
    row: LeaseRow, position: SequenceNumber | None, *, is_asked: bool = False
) -> tuple[dict[Path, Any], tuple[Path, ...]]:
    """What a checkpoint sets and removes; nothing if it would not go forward.

    One that the processor asks for ends what it had prepared, as in the Java client; another one only when it has come
    as far.
    """
    if position is None or row.has_ended or (row.position is not None and position <= row.position):
        return {}, ()
    stands = not is_asked and row.pending_after(position) is not None
    return {CHECKPOINT: str(position), SUB: position.sub, SWITCHES: 0}, () if stands else PENDING
