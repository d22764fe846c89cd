"""What a worker has still to do before a run of it is over. Pure, but for looking at the stream and its lease table."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from kcl_py.leases.row import LeaseRow
from kcl_py.processor import RecordProcessor
from kcl_py.records import SequenceNumber
from kcl_py.testing.run import HookCall
from kcl_py.testing.stream import FakeStream

P = TypeVar("P", bound=RecordProcessor)


def awaited(stream: FakeStream, rows: Mapping[str, LeaseRow], calls: Sequence[HookCall[P]]) -> list[str]:
    """Say what is left to do, shard by shard; nothing is once every shard is finished or cannot go on."""
    left: list[str] = []
    stuck: set[str] = set()
    for shard_id in stream.shards:
        mine, row = [call for call in calls if call.shard_id == shard_id], rows.get(shard_id)
        if is_halted(row, mine) or stuck.intersection(stream.parents(shard_id)):
            stuck.add(shard_id)
        elif (what := _left(stream, shard_id, row, mine)) is not None:
            left.append(f"{shard_id}: {', '.join(filter(None, (what, _obstacle(row, mine))))}")
    return left


def is_halted(row: LeaseRow | None, calls: Sequence[HookCall[P]]) -> bool:
    """Tell whether the shard was halted by the worker that made these calls: a take removes an earlier one's halt."""
    return row is not None and row.native.halted is not None and bool(calls)


def _left(stream: FakeStream, shard_id: str, row: LeaseRow | None, calls: Sequence[HookCall[P]]) -> str | None:
    if row is not None and row.has_ended:
        return None
    records, settled = stream.records(shard_id), {each for call in calls for each in _settled(call)}
    at = row.position if row is not None else None
    left = [each for each in records if each.position not in settled and (at is None or each.position > at)]
    finished = len(records) - len(left)
    if finished < len(records):
        return f"{finished} of {len(records)} records are finished"
    if shard_id not in stream.open_shards:
        return "its end is not stored"
    if not any(call.hook == "initialize" and call.has_returned for call in calls):
        return "it is not initialized"
    return None


def _settled(call: HookCall[P]) -> Iterator[SequenceNumber]:
    """Yield the records that are finished by a call, or given up after it."""
    yield from (record.position for record in call.finished)
    if call.hook == "handle_failed" and call.record is not None:
        yield call.record.position


def _obstacle(row: LeaseRow | None, calls: Sequence[HookCall[P]]) -> str | None:
    """Say why a shard with something left to do does not get on, as far as can be seen."""
    failed = [call for call in calls if call.error is not None]
    if not calls and row is not None and row.holder is not None:
        return f"its lease is with {row.holder!r}"
    if failed and failed[-1] is calls[-1]:
        return f"{failed[-1].hook} has raised {len(failed)} times, at last {type(failed[-1].error).__name__}"
    return None
