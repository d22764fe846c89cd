"""What writes to a stream: batches of records by PutRecords, each record until it is in or given up.

At least once: after a reply that never came, its records are sent again and may be in twice. Retried records may come
after later ones of the same key. Keys and data never show in errors. Sizes are bytes, times are seconds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from actors.clock import Clock
from kcl_py.aws import request
from kcl_py.errors import KclError, RequestError
from kcl_py.sources.kinesis.polling import DEADLINE_S, KinesisClient

ENTRIES = 500
REQUEST_BYTES = 5 * 1024 * 1024
"""Limits of one PutRecords. Source: its API reference; data and partition keys count."""
BACKOFF_S = 0.1
BACKOFF_MAX_S = 5.0
TRIES = 12
"""How often one record is sent: with these pauses about half a minute of refusals."""

Entry = tuple[str, bytes]
"""A partition key and a payload."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where one record went."""

    shard_id: str
    sequence_number: str


class PutError(KclError):
    """Some records could not be put.

    Args:
        stream: the stream's name.
        failed: their indexes in what ``put`` was given, in order.
        reason: what AWS said about the first of them.
        placed: one item for each record that ``put`` was given; None for those that failed.
    """

    def __init__(self, stream: str, failed: tuple[int, ...], reason: str, placed: tuple[Placed | None, ...]) -> None:
        super().__init__(stream, failed, reason, placed)
        self.stream, self.failed, self.reason, self.placed = stream, failed, reason, placed

    def __str__(self) -> str:
        return (
            f"cannot put {len(self.failed)} of {len(self.placed)} records to {self.stream!r} "
            f"(the first is number {self.failed[0]}): {self.reason}"
        )


class StreamWriter:
    """Puts records to one stream.

    Args:
        client: as for ``KinesisSource``; the caller closes it.
        stream: the stream's name or ARN.
        clock: waits between tries.
        deadline_s: total time of one request.
    """

    def __init__(self, client: KinesisClient, stream: str, *, clock: Clock, deadline_s: float = DEADLINE_S) -> None:
        self._client = client
        self._stream = stream.rpartition("/")[2]
        self._naming = {"StreamARN": stream} if stream.startswith("arn:") else {"StreamName": stream}
        self._clock = clock
        self._deadline_s = deadline_s

    async def put(self, entries: Sequence[Entry]) -> list[Placed]:
        """Put all of ``entries`` and return where each went, in their order.

        Only the records that AWS refused are sent again. Raises ``PutError`` at the first request that cannot be
        completed: the records after it are not tried and count as failed.
        """
        placed: list[Placed | None] = [None] * len(entries)
        for start, end in batches(entries):
            refused = await self._put_range(entries, list(range(start, end)), placed)
            if refused:
                failed = (*refused, *range(end, len(entries)))
                raise PutError(self._stream, failed, next(iter(refused.values())), tuple(placed))
        return [place for place in placed if place is not None]

    async def _put_range(
        self, entries: Sequence[Entry], waiting: list[int], placed: list[Placed | None]
    ) -> dict[int, str]:
        """Put the records with the indexes ``waiting``; returns why the last try refused those that are not in."""
        refused: dict[int, str] = {}
        for attempt in range(TRIES):
            if attempt:
                await self._clock.sleep(min(BACKOFF_S * 2 ** (attempt - 1), BACKOFF_MAX_S))
            try:
                refused = await self._send(entries, waiting, placed)
            except RequestError as error:
                refused = dict.fromkeys(waiting, str(error))
                if not error.retryable:
                    break
            waiting = list(refused)
            if not waiting:
                break
        return refused

    async def _send(self, entries: Sequence[Entry], waiting: list[int], placed: list[Placed | None]) -> dict[int, str]:
        """Send one request; fills ``placed`` and returns AWS's code for each record that it refused."""
        records = [{"PartitionKey": entries[index][0], "Data": entries[index][1]} for index in waiting]
        with request("PutRecords", self._stream, deadline_s=self._deadline_s, clock=self._clock):
            reply = await self._client.put_records(Records=records, **self._naming)
        refused: dict[int, str] = {}
        for index, result in zip(waiting, reply["Records"], strict=True):
            if code := result.get("ErrorCode"):
                refused[index] = str(code)
            else:
                placed[index] = Placed(result["ShardId"], result["SequenceNumber"])
        return refused


def batches(entries: Sequence[Entry]) -> Iterator[tuple[int, int]]:
    """Cut ``entries`` into ranges that one request takes; a record above the limit is a range of its own."""
    start = size = 0
    for index, (key, data) in enumerate(entries):
        entry_bytes = len(key.encode()) + len(data)
        if index > start and (index - start == ENTRIES or size + entry_bytes > REQUEST_BYTES):
            yield start, index
            start, size = index, 0
        size += entry_bytes
    if start < len(entries):
        yield start, len(entries)
