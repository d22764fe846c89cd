"""Turn table items into rows and back, under the Java client's attribute names.

No I/O. Items hold plain values (see ``row.Item``); what DynamoDB puts on the wire is ``attributes.py``'s business.
Instants are Unix milliseconds, ``lut`` alone is in seconds, throughput is in kB/s.
Source of names and types: the Java client's DynamoDBLeaseSerializer and WorkerMetricStats.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kcl_py.leases.row import (
    SENTINELS,
    TEXT_CHARACTERS,
    Halt,
    Item,
    Later,
    LeaseRow,
    MalformedRowError,
    Native,
    Paused,
    Pending,
    Request,
    WorkerRow,
)
from kcl_py.leases.store import Scan
from kcl_py.leases.throughput import credible
from kcl_py.records import SequenceNumber, is_number

WORKER_STATES = ("starting", "active", "draining")
STREAM = "stream"
"""What ``native.paused.of`` says where the whole stream is paused."""
UNSET_IN_WORKER = ("max", "strategy", "held_off", "changed")
"""Attributes of a worker row that are removed when they have no value."""
PENDING = ("pendingCheckpoint", "pendingCheckpointSubSequenceNumber", "pendingCheckpointState")
"""A prepared checkpoint."""


class _Fields:
    """An item or map with typed access; each wrong field is one sentence."""

    def __init__(self, fields: Item, *, of: str, prefix: str = "") -> None:
        self._fields, self._of, self._prefix = fields, of, prefix

    def fault(self, name: str, expected: str) -> MalformedRowError:
        found = repr(self._fields[name])[:TEXT_CHARACTERS] if name in self._fields else "nothing"
        return MalformedRowError(
            f"cannot read the row of {self._of!r}: expected {expected} in {self._prefix}{name}, found {found}; "
            "it is left alone"
        )

    def text(self, name: str) -> str | None:
        value = self._fields.get(name)
        if value is None or (isinstance(value, str) and value):
            return value
        raise self.fault(name, "a string that is not empty")

    def whole(self, name: str) -> int | None:
        value = self._fields.get(name)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise self.fault(name, "a whole number")

    def number(self, name: str) -> float | None:
        value = self._fields.get(name)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        raise self.fault(name, "a number")

    def ids(self, name: str) -> tuple[str, ...]:
        value = self._fields.get(name, ())
        if isinstance(value, set | frozenset | tuple | list) and all(isinstance(one, str) for one in value):
            return tuple(sorted(value))
        raise self.fault(name, "a set of strings")

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._fields.get(name, ())
        if isinstance(value, tuple | list) and all(isinstance(one, str) for one in value):
            return tuple(value)
        raise self.fault(name, "a list of strings")

    def digits(self, name: str) -> int | None:
        value = self.text(name)
        if value is None or is_number(value):
            return None if value is None else int(value)
        raise self.fault(name, "decimal digits")

    def request(self) -> Request | None:
        """Read what is asked of the holder; what cannot be read is nobody's fault here, but the holder's to refuse."""
        value = self._fields.get("request")
        if value is None or not isinstance(value, Mapping):
            return None if value is None else Request("", repr(value)[:TEXT_CHARACTERS])
        said = {
            name: one if isinstance(one, str) else repr(one)
            for name, one in value.items()
            if name in ("kind", "position")
        }
        key = value.get("id")
        return Request(key if isinstance(key, str) else "", said.get("kind", ""), said.get("position"))

    def later(self) -> tuple[Later, ...]:
        """Read what is put off; what cannot be read is due at once."""
        value = self._fields.get("later")
        found = [one for one in value if isinstance(one, Mapping)] if isinstance(value, list | tuple) else []
        return tuple(
            Later(one["seq"], one["due"])
            for one in found
            if isinstance(one.get("seq"), str) and type(one.get("due")) is int
        )

    def pause(self) -> Paused | None:
        """Read whether the shard is paused; what cannot be read pauses it, too, and can be taken out like any other."""
        value = self._fields.get("paused")
        if value is None:
            return None
        said = value if isinstance(value, Mapping) else {}
        at_ms, why = said.get("at"), said.get("why")
        return Paused(
            at_ms if type(at_ms) is int else 0, why if isinstance(why, str) else None, said.get("of") == STREAM
        )

    def map(self, name: str) -> "_Fields | None":
        value = self._fields.get(name)
        if value is None:
            return None
        if isinstance(value, Mapping):
            return _Fields(value, of=self._of, prefix=f"{self._prefix}{name}.")
        raise self.fault(name, "a map")


def row_from_item(item: Item) -> LeaseRow:
    """Read a lease row; raises ``MalformedRowError`` if the item is not a lease."""
    key = item.get("leaseKey")
    fields = _Fields(item, of=key if isinstance(key, str) else repr(key))
    if not isinstance(key, str) or not key:
        raise fields.fault("leaseKey", "a string that is not empty")
    if item.get("entityType", "LEASE") != "LEASE":
        raise fields.fault("entityType", "'LEASE' or nothing")
    counter = fields.whole("leaseCounter")
    if counter is None:
        raise fields.fault("leaseCounter", "a whole number")
    native = fields.map("native")
    return LeaseRow(
        key=key,
        counter=counter,
        owner=fields.text("leaseOwner"),
        checkpoint_owner=fields.text("checkpointOwner"),
        checkpoint=_checkpoint(fields),
        sub=fields.whole("checkpointSubSequenceNumber") or 0,
        switches=fields.whole("ownerSwitchesSinceCheckpoint") or 0,
        parents=fields.ids("parentShardId"),
        children=fields.ids("childShardIds"),
        hash_range=_hash_range(fields),
        throughput_kbps=credible(fields.number("throughputKBps")),
        pending=pending(*(item.get(name) for name in PENDING)),
        native=Native() if native is None else _native(native),
        has_native=native is not None,
    )


def item_from_row(row: LeaseRow) -> dict[str, Any]:
    """Write a whole lease row; attributes without a value are left out, as DynamoDB has no empty ones."""
    first, last = row.hash_range or (None, None)
    return _present(
        leaseKey=row.key,
        leaseCounter=row.counter,
        leaseOwner=row.owner,
        checkpointOwner=row.checkpoint_owner,
        checkpoint=row.checkpoint,
        checkpointSubSequenceNumber=row.sub,
        ownerSwitchesSinceCheckpoint=row.switches,
        parentShardId=frozenset(row.parents) or None,
        childShardIds=frozenset(row.children) or None,
        startingHashKey=None if first is None else str(first),
        endingHashKey=None if last is None else str(last),
        throughputKBps=row.throughput_kbps,
        **fields_from_pending(row.pending),
        native=map_from_native(row.native) if row.has_native else None,
    )


def map_from_native(native: Native) -> dict[str, Any]:
    """Write the ``native`` map."""
    return _present(
        token=native.token,
        owner=native.owner,
        taken=native.taken_ms,
        why=native.why,
        stream=native.stream,
        start=native.start_ms,
        delivered=native.delivered,
        clean=native.clean,
        lag_ms=native.lag_ms,
        lag_at=native.lag_at_ms,
        halted=None if native.halted is None else map_from_halt(native.halted),
        held_by=native.held_by,
        fault=native.fault,
        later=list_from_later(native.later) or None,
        request=None if native.request is None else map_from_request(native.request),
        paused=None if native.paused is None else map_from_pause(native.paused),
        quiet=native.quiet_for,
        transaction=native.transaction,
    )


def fields_from_pending(pending: Pending | None) -> dict[str, Any]:
    """Write the attributes of a prepared checkpoint."""
    if pending is None:
        return {}
    values = (str(pending.position), pending.position.sub, pending.state)
    return _present(**dict(zip(PENDING, values, strict=True)))


def pending(checkpoint: object, sub: object, state: object) -> Pending | None:
    """Read a prepared checkpoint; None for one that is no position, such as the Java client's of a shard's end."""
    if not isinstance(checkpoint, str) or not is_number(checkpoint):
        return None
    number = sub if isinstance(sub, int) and not isinstance(sub, bool) else 0
    return Pending(SequenceNumber(int(checkpoint), number), state if isinstance(state, bytes) else None)


def map_from_halt(halt: Halt) -> dict[str, str]:
    """Write the ``native.halted`` map."""
    return {"error": halt.error, "position": halt.position}


def list_from_later(later: Iterable[Later]) -> list[dict[str, Any]]:
    """Write the ``native.later`` list."""
    return [{"seq": each.sequence_number, "due": each.due_ms} for each in later]


def map_from_request(request: Request) -> dict[str, str]:
    """Write the ``native.request`` map."""
    return _present(id=request.id, kind=request.kind, position=request.position)


def map_from_pause(pause: Paused) -> dict[str, Any]:
    """Write the ``native.paused`` map."""
    return _present(at=pause.at_ms, why=pause.why, of=STREAM if pause.is_of_stream else None)


def scan_from_items(items: Iterable[Item]) -> Scan:
    """Read all rows of a lease table; what the Java client marks as something else than a lease is passed over."""
    rows, malformed = [], []
    for item in items:
        if item.get("entityType", "LEASE") != "LEASE":
            continue
        try:
            rows.append(row_from_item(item))
        except MalformedRowError as error:
            malformed.append(str(error))
    return Scan(tuple(rows), tuple(malformed))


def worker_from_item(item: Item) -> WorkerRow | None:
    """Read a worker row, or None if kcl_py did not write it: the Java client's rows have no ``beat``."""
    fields = _Fields(item, of=str(item.get("wid")))
    try:
        worker, beat, state = fields.text("wid"), fields.whole("beat"), fields.text("state")
        if worker is None or beat is None or state not in WORKER_STATES:
            return None
        return WorkerRow(
            worker=worker,
            beat=beat,
            state=state,
            held=fields.whole("held") or 0,
            max_leases=fields.whole("max"),
            strategy=fields.text("strategy") or "count",
            held_off=fields.text("held_off"),
            news=fields.whole("news") or 0,
            changed=fields.texts("changed"),
            updated_s=fields.whole("lut") or 0,
        )
    except MalformedRowError:
        return None


def item_from_worker(row: WorkerRow) -> dict[str, Any]:
    """Write a worker row in the shape of the Java client's, to which an empty ``sts`` and ``opr`` mean: no metrics."""
    return _present(
        wid=row.worker,
        lut=row.updated_s,
        sts={},
        opr={},
        beat=row.beat,
        state=row.state,
        held=row.held,
        max=row.max_leases,
        strategy=None if row.strategy == "count" else row.strategy,
        held_off=row.held_off,
        news=row.news,
        changed=list(row.changed) or None,
    )


def _present(**fields: object) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _checkpoint(fields: _Fields) -> str:
    text = fields.text("checkpoint")
    if text is None or not (text in SENTINELS or is_number(text)):
        raise fields.fault("checkpoint", "a sequence number or a sentinel")
    return text


def _hash_range(fields: _Fields) -> tuple[int, int] | None:
    first, last = fields.digits("startingHashKey"), fields.digits("endingHashKey")
    return None if first is None or last is None else (first, last)


def _native(fields: _Fields) -> Native:
    halted = fields.map("halted")
    return Native(
        token=fields.text("token"),
        owner=fields.text("owner"),
        taken_ms=fields.whole("taken"),
        why=fields.text("why"),
        stream=fields.text("stream"),
        start_ms=fields.whole("start"),
        delivered=fields.text("delivered"),
        clean=fields.whole("clean"),
        lag_ms=fields.whole("lag_ms"),
        lag_at_ms=fields.whole("lag_at"),
        halted=None if halted is None else Halt(halted.text("error") or "", halted.text("position") or ""),
        held_by=fields.text("held_by"),
        fault=fields.text("fault"),
        later=fields.later(),
        request=fields.request(),
        paused=fields.pause(),
        quiet_for=fields.whole("quiet"),
        transaction=fields.text("transaction"),
    )
