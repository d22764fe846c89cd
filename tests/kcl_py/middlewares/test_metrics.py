"""Figures of calls."""

from typing import cast

from kcl_py import Batched, Record, RecordBatch, Reject, Retry, ToBatch
from kcl_py.middlewares.metrics import Call, Metrics
from kcl_py.outcomes import BatchOutcome

RECORDS = [Record(str(number), b"", "k") for number in range(4)]
BATCH = RecordBatch("orders", "shardId-0", RECORDS, 0)


def test_outcomes_of_records_are_counted_and_their_durations_added() -> None:
    """Each attempt once."""
    metrics = Metrics()
    for outcome in (None, None, Retry(), Reject("no"), ValueError("no")):
        metrics.after_record(RECORDS[0], outcome, 0.5)
    figures = metrics.snapshot()
    assert figures.calls == figures.records == {"done": 2, "retry": 1, "rejected": 1, "failed": 1}
    assert (figures.took_s, figures.longest_s) == (2.5, 0.5)


def test_mapping_of_a_batch_counts_each_record() -> None:
    """Those that it does not name are done."""
    metrics = Metrics()
    metrics.after_batch(BATCH, {RECORDS[0]: Reject("no"), RECORDS[1]: ValueError("no")}, 1.0)
    metrics.after_batch(BATCH, None, 2.0)
    metrics.after_batch(BATCH, {}, 1.0)
    metrics.after_batch(BATCH, Retry(), 1.0)
    figures = metrics.snapshot()
    assert figures.calls == {"partly": 1, "done": 2, "retry": 1}
    assert figures.records == {"done": 10, "rejected": 1, "failed": 1, "retry": 4}
    assert (figures.took_s, figures.longest_s) == (5.0, 2.0)


def test_records_of_a_batcher_count_as_given_away_and_then_with_their_batch() -> None:
    """To be given away is no failure."""
    calls: list[Call] = []
    metrics = Metrics(calls.append)
    for record in RECORDS[:2]:
        metrics.after_record(record, ToBatch("b"), 0.5)
    metrics.after_batched(Batched("b", None, [(record, None) for record in RECORDS[:2]], "age"), None, 1.0)
    assert metrics.snapshot().records == {"batched": 2, "done": 2}
    some = Batched("b", None, [(record, None) for record in RECORDS[:2]], "age")
    metrics.after_batched(some, {RECORDS[0]: ValueError("no")}, 1.0)
    assert metrics.snapshot().records == {"batched": 2, "done": 3, "failed": 1}
    metrics.after_batch(BATCH, cast("BatchOutcome", ToBatch("b")), 1.0)
    assert metrics.snapshot().records["failed"] == 1 + len(BATCH)
    assert calls[2] == Call("batched", "done", {"done": 2}, 1.0)


def test_each_call_is_reported() -> None:
    """For systems that count by themselves."""
    calls: list[Call] = []
    metrics = Metrics(calls.append)
    metrics.after_record(RECORDS[0], None, 0.5)
    metrics.after_batch(BATCH, {RECORDS[0]: Retry()}, 1.0)
    assert calls == [
        Call("record", "done", {"done": 1}, 0.5),
        Call("batch", "partly", {"retry": 1, "done": 3}, 1.0),
    ]


def test_snapshot_stays_as_it_is() -> None:
    """It is of one moment."""
    metrics = Metrics()
    before = metrics.snapshot()
    metrics.after_record(RECORDS[0], None, 0.5)
    assert (before.calls, before.took_s) == ({}, 0.0)
