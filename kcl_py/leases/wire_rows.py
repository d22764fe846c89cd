"""Lease rows straight from DynamoDB's form of an item, in C as far as that goes.

Pure. What is anything but regular is read again by ``items.py``, which says what is wrong with it; so both give the
same rows, and this one at a tenth of the cost (``python -m bench.lease_requests``).
"""

from collections.abc import Iterable, Mapping
from sys import intern
from typing import Any

import msgspec

from kcl_py.leases.attributes import Attribute, decode_item, number
from kcl_py.leases.items import STREAM, pending, row_from_item, scan_from_items
from kcl_py.leases.row import SENTINELS, Halt, Later, LeaseRow, Native, Paused, Pending, Request
from kcl_py.leases.store import Scan
from kcl_py.leases.throughput import credible
from kcl_py.records import is_number

WireItem = Mapping[str, Attribute] | msgspec.Raw
"""An item as botocore returns it, or in JSON as it came."""


class _Text(msgspec.Struct, rename={"value": "S"}, gc=False):
    value: str


class _Number(msgspec.Struct, rename={"value": "N"}, gc=False):
    value: str


class _Bytes(msgspec.Struct, rename={"value": "B"}, gc=False):
    value: bytes


class _Texts(msgspec.Struct, rename={"value": "SS"}, gc=False):
    value: list[str]


class _Halt(msgspec.Struct):
    error: _Text
    position: _Text


class _HaltMap(msgspec.Struct, rename={"value": "M"}):
    value: _Halt


class _Later(msgspec.Struct):
    seq: _Text
    due: _Number


class _LaterMap(msgspec.Struct, rename={"value": "M"}):
    value: _Later


class _LaterList(msgspec.Struct, rename={"value": "L"}):
    value: list[_LaterMap]


class _Request(msgspec.Struct):
    id: _Text
    kind: _Text
    position: _Text | None = None


class _RequestMap(msgspec.Struct, rename={"value": "M"}):
    value: _Request


class _Pause(msgspec.Struct):
    at: _Number
    why: _Text | None = None
    of: _Text | None = None


class _PauseMap(msgspec.Struct, rename={"value": "M"}):
    value: _Pause


class _Native(msgspec.Struct):
    token: _Text | None = None
    owner: _Text | None = None
    taken: _Number | None = None
    why: _Text | None = None
    stream: _Text | None = None
    start: _Number | None = None
    delivered: _Text | None = None
    clean: _Number | None = None
    lag_ms: _Number | None = None
    lag_at: _Number | None = None
    halted: _HaltMap | None = None
    held_by: _Text | None = None
    later: _LaterList | None = None
    fault: _Text | None = None
    request: _RequestMap | None = None
    paused: _PauseMap | None = None
    quiet: _Number | None = None
    transaction: _Text | None = None


class _NativeMap(msgspec.Struct, rename={"value": "M"}):
    value: _Native


class _Lease(msgspec.Struct, rename="camel"):
    """The attributes of ``items.row_from_item``; others are passed over."""

    lease_key: _Text
    lease_counter: _Number
    checkpoint: _Text
    entity_type: _Text | None = None
    lease_owner: _Text | None = None
    checkpoint_owner: _Text | None = None
    checkpoint_sub_sequence_number: _Number | None = None
    owner_switches_since_checkpoint: _Number | None = None
    parent_shard_id: _Texts | None = None
    child_shard_ids: _Texts | None = None
    starting_hash_key: _Text | None = None
    ending_hash_key: _Text | None = None
    throughput: _Number | None = msgspec.field(name="throughputKBps", default=None)
    pending_checkpoint: _Text | None = None
    pending_checkpoint_sub_sequence_number: _Number | None = None
    pending_checkpoint_state: _Bytes | None = None
    native: _NativeMap | None = None


_decode_lease = msgspec.json.Decoder(_Lease).decode


def row_from_wire(item: WireItem) -> LeaseRow:
    """Read a lease row; raises ``MalformedRowError`` if the item is not a lease."""
    return _regular(item) or row_from_item(plain(item))


def plain(item: WireItem) -> dict[str, Any]:
    """Read an item of any kind; raises ``msgspec.DecodeError`` if it is none."""
    return decode_item(msgspec.json.decode(item, type=dict[str, Any]) if isinstance(item, msgspec.Raw) else item)


def scan_from_wire(items: Iterable[WireItem]) -> Scan:
    """Read rows of a lease table as ``items.scan_from_items`` does."""
    rows: list[LeaseRow] = []
    malformed: list[str] = []
    for item in items:
        row = _regular(item)
        if row is not None:
            rows.append(row)
            continue
        found = scan_from_items([plain(item)])
        rows += found.rows
        malformed += found.malformed
    return Scan(tuple(rows), tuple(malformed))


def _regular(item: WireItem) -> LeaseRow | None:
    """Read a row if nothing about it is odd."""
    try:
        return _row(_decode_lease(item) if isinstance(item, msgspec.Raw) else msgspec.convert(item, _Lease))
    except ValueError:  # msgspec's own errors are of this class
        return None


def _row(lease: _Lease) -> LeaseRow:
    """Raises ValueError for what ``items.py`` has to look at."""
    checkpoint, native = lease.checkpoint.value, lease.native
    if not (checkpoint in SENTINELS or is_number(checkpoint)):
        raise ValueError(checkpoint)
    if lease.entity_type is not None and lease.entity_type.value != "LEASE":
        raise ValueError(lease.entity_type.value)
    first, last = _digits(lease.starting_hash_key), _digits(lease.ending_hash_key)
    key = _text(lease.lease_key)
    assert key is not None
    return LeaseRow(
        key=key,
        counter=int(lease.lease_counter.value),
        owner=_name(lease.lease_owner),
        checkpoint_owner=_name(lease.checkpoint_owner),
        checkpoint=checkpoint,
        sub=_whole(lease.checkpoint_sub_sequence_number) or 0,
        switches=_whole(lease.owner_switches_since_checkpoint) or 0,
        parents=() if lease.parent_shard_id is None else tuple(sorted(lease.parent_shard_id.value)),
        children=() if lease.child_shard_ids is None else tuple(sorted(lease.child_shard_ids.value)),
        hash_range=None if first is None or last is None else (first, last),
        throughput_kbps=None if lease.throughput is None else credible(number(lease.throughput.value)),
        pending=_pending(lease),
        native=Native() if native is None else _native(native.value),
        has_native=native is not None,
    )


def _pending(lease: _Lease) -> Pending | None:
    if lease.pending_checkpoint is None:
        return None
    state = lease.pending_checkpoint_state
    return pending(
        lease.pending_checkpoint.value,
        _whole(lease.pending_checkpoint_sub_sequence_number),
        None if state is None else state.value,
    )


def _native(native: _Native) -> Native:
    halted = native.halted
    return Native(
        token=_text(native.token),
        owner=_name(native.owner),
        taken_ms=_whole(native.taken),
        why=_name(native.why),
        stream=_name(native.stream),
        start_ms=_whole(native.start),
        delivered=_text(native.delivered),
        clean=_whole(native.clean),
        lag_ms=_whole(native.lag_ms),
        lag_at_ms=_whole(native.lag_at),
        halted=None if halted is None else Halt(str(_text(halted.value.error)), str(_text(halted.value.position))),
        held_by=_text(native.held_by),
        fault=_text(native.fault),
        later=() if native.later is None else tuple(map(_later, native.later.value)),
        request=None if native.request is None else _request(native.request.value),
        paused=None if native.paused is None else _pause(native.paused.value),
        quiet_for=_whole(native.quiet),
        transaction=_text(native.transaction),
    )


def _later(later: _LaterMap) -> Later:
    return Later(str(_text(later.value.seq)), int(later.value.due.value))


def _request(request: _Request) -> Request:
    return Request(str(_text(request.id)), str(_text(request.kind)), _text(request.position))


def _pause(pause: _Pause) -> Paused:
    return Paused(int(pause.at.value), _text(pause.why), _text(pause.of) == STREAM)


def _text(found: _Text | None) -> str | None:
    if found is None:
        return None
    if not found.value:
        raise ValueError("empty")
    return found.value


def _name(found: _Text | None) -> str | None:
    """Read what many rows share, so that it is in memory once."""
    text = _text(found)
    return None if text is None else intern(text)


def _whole(found: _Number | None) -> int | None:
    return None if found is None else int(found.value)


def _digits(found: _Text | None) -> int | None:
    if found is None:
        return None
    if not is_number(found.value):
        raise ValueError(found.value)
    return int(found.value)
