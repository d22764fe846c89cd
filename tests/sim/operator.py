"""Somebody outside who asks holders of shards to go on elsewhere or to let go, and pauses shards, as ``kcl`` does."""

from collections import Counter
from collections.abc import Callable
from itertools import count

from kcl_py.leases import by_hand, control, pausing
from kcl_py.leases.attributes import decode_item
from kcl_py.leases.expressions import update
from kcl_py.leases.items import row_from_item
from kcl_py.leases.repositioning import Change, place_of
from kcl_py.leases.requests import RELEASE, SEEK
from kcl_py.leases.row import LeaseRow, Paused, Request
from kcl_py.leases.store import Write
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.errors import ModelError
from kcl_py.records import SequenceNumber
from kcl_py.sources.source import LATEST, TRIM_HORIZON, Position, PositionKind
from tests.sim.history import History
from tests.sim.plan import PAUSES, Event
from tests.sim.rows import Rows
from tests.simclock import EPOCH_S

BETWEEN_S = 0.002
"""A time that is asked for is at least so far from that of each record."""


class Operator:
    """Asks, and knows for each request which records come before its place.

    Args:
        table: name of the lease table in ``tables``.
        rows: follows the table.
        now_s: virtual time.
    """

    def __init__(self, table: str, tables: DynamoDB, rows: Rows, history: History, now_s: Callable[[], float]) -> None:
        self._table, self._tables, self._rows, self._history, self._now_s = table, tables, rows, history, now_s
        self._put: dict[str, list[tuple[int, str, float]]] = {}
        self._before: dict[str, int] = {}
        self._keys = count()
        self.done: Counter[str] = Counter()
        rows.on_moved = self._moved
        self.finished: set[int] = set()
        """Numbers of the records that some processor has finished, or that nobody is to read any more."""

    def note_put(self, shard: str, number: int, sequence: str) -> None:
        """Note a record, in the order of its shard."""
        self._put.setdefault(shard, []).append((number, sequence, self._now_s()))

    def ask(self, event: Event) -> None:
        """Ask the holder of one of the shards, if it has one and nothing is asked of it; or pause or resume some."""
        if event.what in PAUSES:
            self._pause_or_resume(event)
            return
        row = self._chosen(event.share)
        if row is None or row.has_ended or row.native.token is None or row.holder is None or row.native.request:
            return
        key = f"r{len(self._before)}"
        if event.what == "release":
            request, before = Request(key, RELEASE), 0
        else:
            to, before = self._place(row.key, event)
            place = place_of(row, to, now_ms=int((EPOCH_S + self._now_s()) * 1000))
            request = Request(key, SEEK, str(place))
        self._before[key] = before
        self.done[event.what] += 1
        self._history.note("ask", shard=row.key, id=key, kind=request.kind, before=before)
        self._write(by_hand.request(row, request))

    def resume_all(self) -> None:
        """Have go on what is paused still."""
        for row in self._table_rows():
            if row.native.paused is not None:
                self._write(pausing.unpause(row))

    def go_on(self) -> None:
        """Have go on what has halted."""
        for row in self._table_rows() if self._rows.halted else ():
            if row.native.halted is not None and row.native.paused is None and not row.has_ended:
                self._make(control.resume(row, self._key()))

    def _pause_or_resume(self, event: Event) -> None:
        """Do what ``kcl pause`` and ``kcl resume`` do, to one of the shards or to all."""
        does, of = event.what.split()
        row = self._chosen(event.share)
        rows = [] if row is None else self._table_rows() if of == "stream" else [row]
        asked = Paused(int((EPOCH_S + self._now_s()) * 1000), is_of_stream=of == "stream")
        for each in rows:
            if not each.has_ended:
                self._make(control.pause(each, asked) if does == "pause" else control.resume(each, self._key()))
        self.done[event.what] += bool(rows)

    def _key(self) -> str:
        return f"h{next(self._keys)}"

    def _make(self, changes: list[Change]) -> None:
        for change in changes:
            assert change.write is not None
            self._write(change.write)

    def _write(self, write: Write) -> None:
        asked = {"TableName": self._table, "Key": {"leaseKey": {"S": write.key}}, "ReturnValues": "ALL_NEW"}
        asked |= update(write)
        self._rows.follow("", "UpdateItem", asked, self._tables.call("UpdateItem", asked))

    def _chosen(self, share: float) -> LeaseRow | None:
        rows = self._table_rows()
        return rows[int(share * len(rows))] if rows else None

    def _table_rows(self) -> list[LeaseRow]:
        try:
            items = [row.item for _, row in self._tables.table(self._table).rows]
        except ModelError:
            return []
        return [row_from_item(decode_item(item)) for item in items]

    def _place(self, shard: str, event: Event) -> tuple[Position | SequenceNumber, int]:
        """Return where the event goes in a shard, and how many of its records come before that."""
        put = self._put.get(shard, [])
        if event.what == "latest":
            at_s = self._now_s() - 2.0
            return LATEST, sum(put_s < at_s for _, _, put_s in put)
        before = int(event.to * (len(put) + 1))
        if event.what == "time":
            at_s = round(event.to * self._now_s(), 3)
            while any(abs(put_s - at_s) < BETWEEN_S for _, _, put_s in put):
                at_s += BETWEEN_S
            at_ms = round((EPOCH_S + at_s) * 1000)
            return Position(PositionKind.AT_TIMESTAMP, at_ms), sum(put_s < at_s for _, _, put_s in put)
        if not before:
            return TRIM_HORIZON, 0
        return SequenceNumber(int(put[before - 1][1])), before

    def _moved(self, shard: str, key: str) -> None:
        """A holder has done it: what comes before the place need not be read, and the rest is to be read again."""
        numbers = [number for number, _, _ in self._put.get(shard, ())]
        self.finished.update(numbers[: self._before[key]])
        self.finished.difference_update(numbers[self._before[key] :])
