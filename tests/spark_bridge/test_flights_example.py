"""The demo's query: what it stores of each micro-batch, also if a batch runs twice."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from examples.demo.carriers import CarrierFigures, read
from examples.demo.spark_rows import identities
from examples.flights_spark import store

pytestmark = pytest.mark.spark

COLUMNS = "shardId STRING, sequenceNumber STRING, time_hour STRING, carrier STRING, flight INT, dep_delay INT"


def rows(session: SparkSession, *flights: tuple[str, int, int | None]) -> DataFrame:
    """Return flights, each given as carrier, number and delay, as the query makes them of records."""
    return session.createDataFrame([("s", "1", "noon", *flight) for flight in flights], COLUMNS)


def test_batch_that_runs_again_replaces_what_it_left(session: SparkSession, tmp_path: Path) -> None:
    """So does one that was killed between its rows and its sums; a missing delay counts as a flight alone."""
    store_batch = store(tmp_path)
    first = rows(session, ("UA", 1, 10), ("UA", 2, None), ("AA", 3, -5))
    second = rows(session, ("UA", 4, 2), ("OO", 5, None))
    store_batch(first, 0)
    store_batch(first, 0)
    second.write.parquet(str(tmp_path / "rows" / "batch=1"))
    store_batch(second, 1)
    assert read(tmp_path / "carriers.json") == {
        "AA": CarrierFigures(1, 1, -5),
        "OO": CarrierFigures(1, 0, 0),
        "UA": CarrierFigures(3, 2, 12),
    }
    assert sorted(identities(tmp_path)) == ["noon AA 3", "noon OO 5", "noon UA 1", "noon UA 2", "noon UA 4"]
