"""What a sample has written, in a form in which two runs can be compared.

Sequence numbers become the numbers of the records in the order in which they were put, and times become whether they
agree with each other: both differ from run to run.
"""

import json
import re
from collections import defaultdict
from datetime import datetime
from typing import Any

_NUMBER = re.compile(r"record (\d+)")


def comparable(text: str) -> dict[str, list[dict[str, Any]]]:
    """Return the events of each shard, in their order."""
    events: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in text.splitlines():
        event = json.loads(line)
        if event["what"] == "process_records":
            event["records"] = [_record(record) for record in event["records"]]
        events[event.pop("shard_id")].append(event)
    return dict(events)


def _record(record: Any) -> Any:
    if isinstance(record, str):
        return record
    number = record["sequence_number"]
    arrived = datetime.fromtimestamp(record["timestamp_millis"] / 1000)  # noqa: DTZ006 - amazon_kclpy's is without zone
    [name] = _NUMBER.findall(bytes.fromhex(record["binary_data"]).decode("latin-1"))
    told = {
        "sequence_number": f"of record {name}",
        "timestamp_millis": type(record["timestamp_millis"]).__name__,
        "approximate_arrival_timestamp": "the same" if record["approximate_arrival_timestamp"] == str(arrived) else "?",
        "get": {key: f"of record {name}" if value == number else value for key, value in record["get"].items()},
        "item": ["the same" if value == record["timestamp_millis"] else value for value in record["item"]],
    }
    return record | told
