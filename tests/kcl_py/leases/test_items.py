"""Reading items: what the Java client leaves, and what is no lease."""

from typing import Any

import pytest

from kcl_py.leases.items import row_from_item, scan_from_items, worker_from_item
from kcl_py.leases.row import LeaseRow, MalformedRowError, Pending
from kcl_py.records import SequenceNumber

JAVA: dict[str, Any] = {
    "leaseKey": "shardId-1",
    "leaseOwner": "java-1",
    "leaseCounter": 12,
    "ownerSwitchesSinceCheckpoint": 1,
    "checkpoint": "49590338271490256608559692538361571095921575989136588898",
    "checkpointSubSequenceNumber": 3,
    "parentShardId": frozenset({"shardId-0", "shardId-00"}),
    "startingHashKey": "0",
    "endingHashKey": "340282366920938463463374607431768211455",
    "throughputKBps": 1.5,
    "pendingCheckpoint": "49590338271490256608559692538361571095921575989136588899",
}


def test_row_of_the_java_client_is_read_without_a_native_map() -> None:
    """A table that only Java workers have written can be taken over."""
    row = row_from_item(JAVA)
    assert row == LeaseRow(
        key="shardId-1",
        counter=12,
        owner="java-1",
        checkpoint="49590338271490256608559692538361571095921575989136588898",
        sub=3,
        switches=1,
        parents=("shardId-0", "shardId-00"),
        hash_range=(0, 2**128 - 1),
        throughput_kbps=1.5,
        has_native=False,
        pending=Pending(SequenceNumber(49590338271490256608559692538361571095921575989136588899)),
    )
    assert row.position == SequenceNumber(49590338271490256608559692538361571095921575989136588898, 3)
    assert not row.native_is_current


def test_least_row_that_java_can_read_is_read() -> None:
    """Old tables have neither sub-sequence numbers nor hash keys."""
    assert row_from_item({"leaseKey": "s", "leaseCounter": 0, "checkpoint": "TRIM_HORIZON"}).position is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"leaseKey": 7}, "cannot read the row of '7': expected a string that is not empty in leaseKey, found 7"),
        ({"leaseCounter": None}, "expected a whole number in leaseCounter, found None"),
        ({"leaseCounter": True}, "expected a whole number in leaseCounter, found True"),
        ({"leaseCounter": 1.5}, "expected a whole number in leaseCounter, found 1.5"),
        ({"checkpoint": "12x"}, "expected a sequence number or a sentinel in checkpoint, found '12x'"),
        ({"checkpoint": "١٢"}, "expected a sequence number or a sentinel in checkpoint"),
        ({"leaseOwner": ""}, "expected a string that is not empty in leaseOwner, found ''"),
        ({"parentShardId": "shardId-0"}, "expected a set of strings in parentShardId, found 'shardId-0'"),
        ({"checkpoint": "9" * 5000}, f"expected a sequence number or a sentinel in checkpoint, found '{'9' * 199};"),
        ({"startingHashKey": "-1"}, "expected decimal digits in startingHashKey, found '-1'"),
        ({"startingHashKey": "9" * 5000}, "expected decimal digits in startingHashKey, found '9999"),
        ({"throughputKBps": "fast"}, "expected a number in throughputKBps, found 'fast'"),
        ({"native": "token"}, "expected a map in native, found 'token'"),
        ({"native": {"token": 5}}, "expected a string that is not empty in native.token, found 5"),
        ({"native": {"halted": {"error": 5}}}, "expected a string that is not empty in native.halted.error, found 5"),
        ({"entityType": "LEADER"}, "expected 'LEASE' or nothing in entityType, found 'LEADER'"),
    ],
)
def test_item_is_malformed_with_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    """The sentence names the row, the attribute and what is in it."""
    with pytest.raises(MalformedRowError) as caught:
        row_from_item(JAVA | changes)
    assert sentence in str(caught.value)
    assert str(caught.value).endswith("; it is left alone")


def test_scan_passes_over_what_java_marks_as_something_else() -> None:
    """Java 3.5 keeps leaders and metrics in the lease table; they are no faults."""
    scan = scan_from_items([JAVA, {"leaseKey": "w", "entityType": "WORKER_METRIC_STATS"}, {"leaseKey": "x"}])
    assert [row.key for row in scan.rows] == ["shardId-1"]
    assert len(scan.malformed) == 1


@pytest.mark.parametrize(
    "item",
    [
        {"wid": "java-1", "lut": 5, "sts": {}, "opr": {}},
        {"wid": "w", "beat": 1, "state": "asleep"},
        {"wid": "w", "beat": "1", "state": "active"},
        {"beat": 1, "state": "active"},
    ],
)
def test_worker_row_of_another_kind_is_passed_over(item: dict[str, Any]) -> None:
    """A Java worker's row has no beat, so it never counts as one of ours."""
    assert worker_from_item(item) is None
