"""The fourth example takes orders, has some wait, and passes over what is none."""

import signal
from typing import Any

from tests.examples.conftest import Run


def test_typed_orders_are_delivered_in_order_and_what_is_none_is_skipped(run: Run, kinesis: Any) -> None:
    """The reason shows nothing of the record; other customers do not wait for one who does."""
    orders = [
        ("ann", '{"item": "apple", "count": 3}'),
        ("ann", '{"item": "bean"}'),
        ("bob", '{"item": "bean", "count": 2}'),
        ("eve", '{"item": "s3cret", "count": "s3cret"}'),
    ]
    records = [{"PartitionKey": key, "Data": data.encode()} for key, data in orders]
    assert kinesis.put_records(StreamName="example", Records=records)["FailedRecordCount"] == 0
    worker = run("e04_typed_orders.yaml")
    worker.out.until_said("1 bean for ann")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert [line for line in worker.out.lines if " for " in line] == [
        "2 bean for bob",
        "3 apple for ann",
        "1 bean for ann",
    ]
    assert [line.split()[0] for line in worker.out.lines if " in less than " in line].count("rejected") == 1
    [skipped] = worker.logged("record.skipped")
    assert skipped["error"] == "cannot decode payload as Order: at $.count: expected int, found str"
