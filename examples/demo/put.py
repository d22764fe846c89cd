"""Puts the flights into the stream at a steady pace, and notes each one that is in.

The notes are a file, ``put.tsv``, in the form of the workers' facts: shard, sequence number, flight and partition key.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

from actors.clock import Clock
from examples.demo.dataset import Flight
from kcl_py.sources.kinesis.writer import Entry, Placed

CHUNK = 500
"""Flights put at once. Source: the limit of one PutRecords."""


class Writer(Protocol):
    """A ``StreamWriter``."""

    async def put(self, entries: Sequence[Entry]) -> list[Placed]: ...


async def put(
    flights: Iterable[Flight],
    writer: Writer,
    notes: Path,
    *,
    rate: float,
    clock: Clock,
    tell: Callable[[int], Awaitable[None]],
) -> None:
    """Put all flights.

    Args:
        flights: in the order in which they are put.
        writer: puts them.
        notes: the file to note them in.
        rate: flights a second; less if the stream does not keep up.
        clock: keeps the pace.
        tell: is told how many are in, after each chunk.
    """
    done, begun_at = 0, clock.monotonic()
    with notes.open("wb") as file:
        for chunk in chunks(flights):
            await clock.sleep(max(begun_at + done / rate - clock.monotonic(), 0))
            placed = await writer.put([(flight.key, flight.payload()) for flight in chunk])
            for flight, place in zip(chunk, placed, strict=True):
                file.write(f"{place.shard_id}\t{place.sequence_number}\t{flight.identity}\t{flight.key}\n".encode())
            file.flush()
            done += len(chunk)
            await tell(done)


def chunks(flights: Iterable[Flight]) -> Iterator[list[Flight]]:
    """Cut the flights into lists of up to ``CHUNK``."""
    rest = iter(flights)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk
