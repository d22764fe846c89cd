"""Every write of a lease row as plain data, and what a read says about one whose outcome is unknown.

One function for each line of docs/leases.md, "Writes". Each takes the row as last seen and who writes, and returns a
``store.Write``; nothing here does I/O, draws tokens or knows the time. Attributes not named here are never touched.
``owner`` is ``<worker id>/<incarnation>``, ``token`` the one that this ownership's take wrote.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kcl_py.leases.items import item_from_row, map_from_halt, map_from_native
from kcl_py.leases.row import SHARD_END, TRIM_HORIZON, Halt, LeaseRow, Native
from kcl_py.leases.store import AnyOf, Is, Path, Write
from kcl_py.records import SequenceNumber
from kcl_py.sources.source import ShardInfo

Outcome = Literal["succeeded", "lost", "again"]

_COUNTER: Path = ("leaseCounter",)
_OWNER: Path = ("leaseOwner",)
_HOLDER: Path = ("checkpointOwner",)
_SWITCHES: Path = ("ownerSwitchesSinceCheckpoint",)
_CHECKPOINT: Path = ("checkpoint",)
_SUB: Path = ("checkpointSubSequenceNumber",)
_CHILDREN: Path = ("childShardIds",)
_THROUGHPUT: Path = ("throughputKBps",)
_NATIVE: Path = ("native",)
_PENDING: tuple[Path, ...] = (
    ("pendingCheckpoint",),
    ("pendingCheckpointSubSequenceNumber",),
    ("pendingCheckpointState",),
)
"""A prepared checkpoint of the Java client; as there, a real checkpoint ends it."""


def _native(field: str) -> Path:
    return ("native", field)


_TOKEN = _native("token")
_VOLATILE = tuple(_native(field) for field in ("lag_ms", "lag_at", "halted", "fault"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a holder says about its shard with a heartbeat; None leaves a field as it is, unless it says otherwise."""

    position: SequenceNumber | None = None
    """The newest finished prefix; one that is not beyond the stored checkpoint is not written."""
    lag_ms: int | None = None
    lag_at_ms: int | None = None
    throughput_kbps: float | None = None
    halted: Halt | None = None
    """None: the shard does not stand still, and what the row says of a halt is removed, as is a fault in any case."""
    stream: str | None = None


def new_row(
    shard: ShardInfo, *, stream: str, checkpoint: str = TRIM_HORIZON, start_ms: int | None = None, counter: int = 0
) -> LeaseRow:
    """Make the first row of a shard: a child at its parent's end (at TRIM_HORIZON), or as discovery says."""
    return LeaseRow(
        key=shard.shard_id,
        counter=counter,
        checkpoint=checkpoint,
        parents=shard.parents,
        hash_range=shard.hash_range,
        native=Native(stream=stream, start_ms=start_ms),
    )


def parent_is_mine(row: LeaseRow, *, owner: str, token: str) -> Write:
    """Build the check that goes with creating a child: the parent is still held by this ownership, and as seen."""
    return _held(row, "create child", owner=owner, token=token)


def take(
    row: LeaseRow, *, owner: str, token: str, now_ms: int, stream: str | None = None, why: str | None = None
) -> Write:
    """Build a take of a row that is free, expired, an own earlier one, or ours after a handoff.

    ``token`` is fresh; ``stream`` is stored if the row names none yet; ``why`` is for people. What the former owner
    said about its lag, halt or fault goes; start, requests and progress stay.
    """
    stream = None if row.native.stream else stream
    native = Native(token=token, owner=owner, taken_ms=now_ms, why=why, stream=stream)
    fields = map_from_native(native)
    switched = row.owner not in (None, owner) or row.checkpoint_owner == owner
    return Write(
        operation="take",
        key=row.key,
        tests=_as_seen(row),
        set={_COUNTER: row.counter + 1, _OWNER: owner}
        | ({_native(name): value for name, value in fields.items()} if row.has_native else {_NATIVE: fields}),
        remove=(_HOLDER, *(_VOLATILE if row.has_native else ())),
        add={_SWITCHES: 1} if switched else {},
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
        tests=(Is(_OWNER, holder), Is(_HOLDER, None), Is(_TOKEN, row.native.token)),
        set={_OWNER: owner, _HOLDER: holder},
        owner=owner,
        token=row.native.token,
    )


def transfer(row: LeaseRow, *, owner: str, position: SequenceNumber | None = None) -> Write:
    """Build the holder's last write of a handoff: final checkpoint and the receiver alone, in one update.

    The token is tested as seen, so that one who was asked before it ever took the row can pass it on (no position).
    """
    progress, ended = _progress(row, position)
    return Write(
        operation="transfer",
        key=row.key,
        tests=(Is(_COUNTER, row.counter), Is(_OWNER, row.owner), Is(_HOLDER, owner), Is(_TOKEN, row.native.token)),
        set={_COUNTER: row.counter + 1, **progress},
        remove=(_HOLDER, *ended),
        owner=owner,
        token=row.native.token,
    )


def cancel_handoff_by_receiver(row: LeaseRow, *, owner: str) -> Write:
    """Build a receiver's withdrawal of its request; the counter is untouched."""
    holder = _name_of(row, row.checkpoint_owner, "a handoff under way")
    return Write(
        operation="cancel handoff by receiver",
        key=row.key,
        tests=(Is(_OWNER, owner), Is(_HOLDER, holder)),
        set={_OWNER: holder},
        remove=(_HOLDER,),
        owner=owner,
    )


def cancel_handoff_by_holder(row: LeaseRow, *, owner: str, token: str) -> Write:
    """Build the holder's cancel of a handoff whose receiver has died; counts as a heartbeat."""
    return Write(
        operation="cancel handoff by holder",
        key=row.key,
        tests=(Is(_COUNTER, row.counter), Is(_OWNER, row.owner), Is(_HOLDER, owner), Is(_TOKEN, token)),
        set={_COUNTER: row.counter + 1, _OWNER: owner},
        remove=(_HOLDER,),
        owner=owner,
        token=token,
    )


def complete(row: LeaseRow, *, owner: str, token: str, children: tuple[str, ...]) -> Write:
    """Build the end of a shard: child ids, SHARD_END and no owner, in one update; the children have their rows."""
    held = _held(row, "complete", owner=owner, token=token)
    return Write(
        operation=held.operation,
        key=row.key,
        tests=held.tests,
        set={
            _COUNTER: row.counter + 1,
            _CHECKPOINT: SHARD_END,
            _SUB: 0,
            _SWITCHES: 0,
            **({_CHILDREN: frozenset(children)} if children else {}),
        },
        remove=(_OWNER, _HOLDER, _native("owner"), *_VOLATILE, *_PENDING),
        owner=owner,
        token=token,
    )


def release(
    row: LeaseRow,
    *,
    owner: str,
    token: str,
    position: SequenceNumber | None = None,
    delivered: str | None = None,
    fault: str | None = None,
) -> Write:
    """Build a holder's letting go: final checkpoint, how far was handed over (when clean), why it could not run."""
    progress, ended = _progress(row, position)
    said = {_native("delivered"): delivered, _native("fault"): fault}
    kept = {path: value for path, value in said.items() if value is not None}
    return Write(
        operation="release",
        key=row.key,
        tests=(Is(_COUNTER, row.counter), Is(_OWNER, owner), Is(_HOLDER, None), Is(_TOKEN, token)),
        set={_COUNTER: row.counter + 1, **progress, **kept},
        remove=(_OWNER, _native("owner"), *(path for path in _VOLATILE if path not in kept), *ended),
        owner=owner,
        token=token,
    )


def let_go(row: LeaseRow, *, owner: str) -> Write:
    """Build the last word before exit on a row that still names us as its actual owner; no checkpoint.

    In a handoff the receiver stays named.
    """
    return Write(
        operation="let go",
        key=row.key,
        tests=_as_seen(row),
        set={_COUNTER: row.counter + 1},
        remove=(_HOLDER,) if row.in_handoff else (_OWNER,),
        owner=owner,
    )


def reset(row: LeaseRow) -> Write:
    """Build the tests under which a row of an earlier stream is deleted."""
    return Write("reset", row.key, (Is(_COUNTER, row.counter), Is(_native("stream"), row.native.stream)))


def reposition(row: LeaseRow, *, checkpoint: str, start_ms: int | None) -> Write:
    """Build an operator's write that has a shard begin elsewhere, held by nobody; what was said of it goes."""
    begins: dict[Path, Any] = {}
    if start_ms is not None:
        begins = (
            {_native("start"): start_ms} if row.has_native else {_NATIVE: map_from_native(Native(start_ms=start_ms))}
        )
    said = (_native("owner"), _native("delivered"), *_VOLATILE, *(() if start_ms is not None else (_native("start"),)))
    return Write(
        operation="reposition",
        key=row.key,
        tests=_as_seen(row),
        set={_COUNTER: row.counter + 1, _CHECKPOINT: checkpoint, _SUB: 0, _SWITCHES: 0, **begins},
        remove=(_OWNER, _HOLDER, _CHILDREN, *_PENDING, *(said if row.has_native else ())),
    )


def evict(row: LeaseRow) -> Write:
    """Build an operator's write that takes all names out of a row, and leaves the rest."""
    owner = (_native("owner"),) if row.has_native else ()
    return Write(
        operation="evict",
        key=row.key,
        tests=_as_seen(row),
        set={_COUNTER: row.counter + 1},
        remove=(_OWNER, _HOLDER, *owner),
    )


def remove(row: LeaseRow) -> Write:
    """Build the tests under which an operator deletes a row: it is as seen."""
    return Write("remove", row.key, _as_seen(row))


def decide(write: Write, found: LeaseRow | None) -> Outcome:
    """Say what a consistent read tells about a write that failed its condition or had no reply.

    Args:
        write: the write in question, as built here.
        found: the row as read after it, or None if there is no row.

    Returns:
        "succeeded": the row is as the write leaves it (transfer, release, let go: we are no longer named).
        "again": it has not taken effect, but the row still names us under this token; go on from ``found``.
        "lost": neither; for a take or a request, it was not granted.

    A holder's cancel must also have raised the counter: the receiver's own cancel leaves the same owners and renews
    nothing.
    """
    if found is None:
        return "lost"
    named = write.owner in (found.owner, found.checkpoint_owner)
    mine = write.token is None or found.native.token == write.token
    match write.operation:
        case "transfer" | "release" | "let go":
            succeeded = not named
        case "take":
            return "succeeded" if named and mine else "lost"
        case "start handoff":
            return "succeeded" if _has_fields(write, found) else "lost"
        case "complete" | "cancel handoff by receiver":
            succeeded = mine and _has_fields(write, found)
        case _:
            succeeded = named and mine and _has_fields(write, found)
    if succeeded:
        return "succeeded"
    return "again" if named and mine else "lost"


def _name_of(row: LeaseRow, owner: str | None, expected: str) -> str:
    if owner is None:
        raise ValueError(f"cannot write to the row of {row.key!r}: expected {expected}, found no owner")
    return owner


def _as_seen(row: LeaseRow) -> tuple[Is, ...]:
    return (Is(_COUNTER, row.counter), Is(_OWNER, row.owner), Is(_HOLDER, row.checkpoint_owner))


def _held(row: LeaseRow, operation: str, *, owner: str, token: str) -> Write:
    named = AnyOf((Is(_OWNER, owner), Is(_HOLDER, owner)))
    tests = (Is(_COUNTER, row.counter), named, Is(_TOKEN, token))
    return Write(operation, row.key, tests, owner=owner, token=token)


def _renewal(row: LeaseRow, operation: str, *, owner: str, token: str, report: Report) -> Write:
    held = _held(row, operation, owner=owner, token=token)
    progress, ended = _progress(row, report.position)
    said = {
        _THROUGHPUT: report.throughput_kbps,
        _native("lag_ms"): report.lag_ms,
        _native("lag_at"): report.lag_at_ms,
        _native("halted"): None if report.halted is None else map_from_halt(report.halted),
        _native("stream"): report.stream,
    }
    over = {_native("halted"): row.native.halted, _native("fault"): row.native.fault}
    return Write(
        operation=operation,
        key=row.key,
        tests=held.tests,
        set={_COUNTER: row.counter + 1, **progress}
        | {path: value for path, value in said.items() if value is not None},
        remove=(*ended, *(path for path, was in over.items() if was is not None and said.get(path) is None)),
        owner=owner,
        token=token,
    )


def _progress(row: LeaseRow, position: SequenceNumber | None) -> tuple[dict[Path, Any], tuple[Path, ...]]:
    """What a checkpoint sets and removes; nothing if it would not go forward."""
    if position is None or row.has_ended or (row.position is not None and position <= row.position):
        return {}, ()
    return {_CHECKPOINT: str(position), _SUB: position.sub, _SWITCHES: 0}, _PENDING


def _has_fields(write: Write, found: LeaseRow) -> bool:
    item = item_from_row(found)
    return all(_value(item, path) == value for path, value in write.set.items()) and all(
        _value(item, path) is None for path in write.remove
    )


def _value(item: Mapping[str, Any], path: Path) -> Any:
    value: Any = item
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
