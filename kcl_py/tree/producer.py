"""The Producer: reads one shard ahead of its Pipeline, no further than there is room, and never past its quota.

Born stopped; the Pipeline opens and closes it. One request is on its way at a time. Iterators that expire are opened
again after the last record *received*. Mirrors: ``KinesisClient.Stream.Shard.Producer`` (Elixir).
"""

from dataclasses import dataclass

from actors import Actor, OwnedTask, Ref, Timer
from kcl_py.delivery.ahead import Ahead
from kcl_py.delivery.budget import Account
from kcl_py.delivery.retry import Backoff
from kcl_py.errors import IteratorExpiredError, MissingError, RequestError, ThrottledError
from kcl_py.sources.source import Fetched, Position, PositionKind
from kcl_py.tree.messages import CaughtUp, CloseReading, EndSeen, FetchedBatch, InHand, OpenReading, Room
from kcl_py.tree.worker import Worker

BACKOFF_S = 0.5
BACKOFF_MAX_S = 8.0
"""Pauses after a failed request double up to this, with jitter: within a shard's 5-second penalty for 10 MB."""


@dataclass(frozen=True, slots=True)
class _Read:
    fetched: Fetched


@dataclass(frozen=True, slots=True)
class _AgedOut:
    pass


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception


@dataclass(frozen=True, slots=True)
class _GoOn:
    pass


class Producer(Actor):
    """Reads one shard.

    Args:
        worker: what the worker's actors share.
        shard_id: the shard.
        pipeline: who receives what is read.
        account: the shard's share of the worker's memory budget; the Pipeline closes it.
    """

    def __init__(self, worker: Worker, shard_id: str, pipeline: Ref, account: Account) -> None:
        self._worker, self._shard_id = worker, shard_id
        self._pipeline, self._account = pipeline, account
        self._log = worker.log.bind(shard_id=shard_id)
        self._position: Position | None = None
        self._iterator: str | None = None
        self._reading = 0
        self._room_records = self._room_bytes = 0
        self._ahead = Ahead(worker.config.delivery.max_ahead.seconds)
        self._arrived_bytes = 0
        self._backoff = Backoff(BACKOFF_S, BACKOFF_MAX_S, worker.ids.jitter)
        self._request: OwnedTask | None = None
        self._pause: Timer | None = None
        self.state = "stopped"

    async def on_message(self, message: object) -> None:
        match message:
            case OpenReading(position, reading, epoch):
                self._close()
                self._log = self._log.bind(epoch=epoch)
                self._position, self._reading, self.state = position, reading, "reading"
            case Room(records, size_bytes):
                self._room_records += records
                self._room_bytes += size_bytes
                self._ahead.free(records)
            case InHand(reads, room_records, room_bytes):
                self._room_records, self._room_bytes = room_records, room_bytes
                for read_at, records in reads:
                    self._ahead.add(records, read_at)
            case CloseReading():
                self._close()
            case _Read(fetched):
                self._request = None
                self._backoff.reset()
                self._take(fetched)
            case _AgedOut():
                self._request = None
                self._log.warning("kcl_py.shard.aged_out", position=str(self._position.value if self._position else 0))
                self._end(Fetched([], None, (), 0, 0))
            case _Failed(error):
                self._request = None
                self._recover(error)
            case _GoOn():
                self._pause = None
            case _:
                self.unhandled(message)
        self._advance()

    def _close(self) -> None:
        for task in (self._request, self._pause):
            if task is not None:
                task.cancel()
        self._request = self._pause = None
        self._account.give_back(self._arrived_bytes)  # of a reply whose message is void now
        self._arrived_bytes = self._reading = 0
        self._position = self._iterator = None
        self._room_records = self._room_bytes = 0
        self._backoff.reset()
        self._ahead.clear()
        self.state = "stopped"

    def _advance(self) -> None:
        is_idle = self._request is None and self._pause is None
        has_room = (
            self._room_records > 0 and self._room_bytes > 0 and not self._ahead.is_too_old(self.clock.monotonic())
        )
        if is_idle and has_room and self.state == "reading":
            self._request = self.run_task(self._read, done=lambda outcome: outcome, failed=_Failed)

    async def _read(self) -> _Read | _AgedOut:
        """Ask for memory last: it is counted as full while the request is on its way, and must not wait for a quota."""
        reading, iterator = self._reading, self._iterator or await self._open()
        if iterator is None:
            return _AgedOut()
        await self._quota_allows()
        await self._account.turn()
        size_bytes = 0
        try:
            fetched = await self._fetch(iterator)
            if self._reading == reading:  # else the reply has come together with the cancellation: nobody hears of it
                size_bytes = self._arrived_bytes = fetched.size_bytes
            return _Read(fetched)
        finally:
            self._account.settle(size_bytes)

    async def _open(self) -> str | None:
        assert self._position is not None
        try:
            return await self._worker.source.open(self._shard_id, self._position)
        except MissingError as error:
            listing = await self._worker.source.list_shards()  # raises if it is the stream that is gone
            is_listed = any(shard.shard_id == self._shard_id for shard in listing.shards)
            if not is_listed and not listing.is_behind([self._shard_id]):
                return None
            raise RequestError(
                error.operation, error.target, error.code, "which the stream lists, or has yet to list"
            ) from error

    async def _quota_allows(self) -> None:
        clock, quota = self.clock, self._worker.quota(self._shard_id)
        while (wait_s := quota.wait_s(clock.monotonic())) > 0:
            await clock.sleep(wait_s)

    async def _fetch(self, iterator: str) -> Fetched:
        sent_at, size_bytes = self.clock.monotonic(), 0
        try:
            fetched = await self._worker.source.fetch(
                self._shard_id, iterator, limit=self._worker.config.fetch.max_records
            )
            size_bytes = fetched.size_bytes
        finally:
            self._worker.quota(self._shard_id).spent(sent_at, size_bytes)
        return fetched

    def _take(self, fetched: Fetched) -> None:
        self._arrived_bytes = 0
        if fetched.records:
            last = fetched.records[-1]
            self._position = Position(PositionKind.AFTER, int(last.sequence_number))
            self._room_records -= len(fetched.records)
            self._room_bytes -= fetched.size_bytes
            self._ahead.add(len(fetched.records), self.clock.monotonic())
            self._pipeline.tell(FetchedBatch(fetched.records, fetched.lag_ms, fetched.size_bytes, self._reading))
        elif fetched.next_iterator is not None:
            self._pipeline.tell(CaughtUp(fetched.lag_ms, self._reading))
        self._iterator = fetched.next_iterator
        if self._iterator is None:
            self._end(fetched)
        elif not fetched.records and fetched.lag_ms == 0:
            self._wait(self._worker.config.fetch.idle_s)

    def _end(self, fetched: Fetched) -> None:
        self.state = "ended"
        self._pipeline.tell(EndSeen(fetched.children, self._reading))

    def _recover(self, error: Exception) -> None:
        match error:
            case IteratorExpiredError():
                self._iterator = None
                self._log.info("kcl_py.fetch.iterator_expired")
                return
            case ThrottledError():
                self._log.warning("kcl_py.fetch.throttled", error=str(error))
            case RequestError(retryable=True):
                self._log.warning("kcl_py.fetch.failed", error=str(error))
            case _:
                raise error
        self._wait(self._backoff.next_s())

    def _wait(self, delay_s: float) -> None:
        self._pause = self.send_after(delay_s, _GoOn())
