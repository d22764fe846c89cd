"""The columns that Spark sees, and records as Arrow in exactly that shape.

One conversion serves the spool and the re-reading of Kinesis, so both give the same rows. Columns are made from
buffers, because pyarrow's own conversions import pandas first: a second of each query's start. No I/O, no Spark.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate

import pyarrow as pa

from kcl_py.records import Record

COLUMNS = (
    "data BINARY, stream STRING, shardId STRING, partitionKey STRING, sequenceNumber STRING, subSequenceNumber INT, "
    "explicitHashKey STRING, approximateArrivalTimestamp TIMESTAMP, encryptionType STRING"
)
"""The schema in Spark's words."""

SCHEMA = pa.schema(
    [
        ("data", pa.binary()),
        ("stream", pa.string()),
        ("shardId", pa.string()),
        ("partitionKey", pa.string()),
        ("sequenceNumber", pa.string()),
        ("subSequenceNumber", pa.int32()),
        ("explicitHashKey", pa.string()),
        ("approximateArrivalTimestamp", pa.timestamp("us", tz="UTC")),
        ("encryptionType", pa.string()),
    ]
)
"""The same in Arrow's; Spark refuses a batch that differs in anything."""

_MICROSECONDS = 1_000_000


def to_arrow(records: Sequence[Record], *, stream: str, shard_id: str) -> pa.RecordBatch:
    """Return the records of one shard as one batch of ``SCHEMA``, in their order."""
    count = len(records)
    data = [record.data for record in records]
    return pa.RecordBatch.from_arrays(
        [
            _variable(pa.binary(), _ends(map(len, data)), b"".join(data)),
            _same(stream, count),
            _same(shard_id, count),
            _texts([record.partition_key for record in records]),
            _texts([record.sequence_number for record in records]),
            _fixed(pa.int32(), array("i", [record.sub_sequence_number for record in records])),
            _same(None, count),
            _fixed(SCHEMA.field(7).type, array("q", [round(record.arrived_s * _MICROSECONDS) for record in records])),
            _optional_texts([record.encryption_type for record in records]),
        ],
        schema=SCHEMA,
    )


def _optional_texts(values: list[str | None]) -> pa.Array:
    texts = [value for value in values if value is not None]
    if not texts:
        return _same(None, len(values))
    return _texts([value or "" for value in values], _validity(values) if len(texts) < len(values) else None)


def _texts(values: list[str], validity: pa.Buffer | None = None) -> pa.Array:
    text = "".join(values)
    sizes = map(len, values) if text.isascii() else map(len, map(str.encode, values))
    return _variable(pa.string(), _ends(sizes), text.encode(), validity)


def _same(value: str | None, count: int) -> pa.Array:
    data = (value or "").encode()
    ends = array("i", range(0, len(data) * count + 1, len(data))) if data else array("i", bytes(4 * (count + 1)))
    return _variable(pa.string(), ends, data * count, pa.py_buffer(bytes((count + 7) // 8)) if value is None else None)


def _ends(sizes: Iterable[int]) -> "array[int]":
    return array("i", accumulate(sizes, initial=0))


def _variable(kind: pa.DataType, ends: "array[int]", data: bytes, validity: pa.Buffer | None = None) -> pa.Array:
    return pa.Array.from_buffers(kind, len(ends) - 1, [validity, pa.py_buffer(ends), pa.py_buffer(data)])


def _fixed(kind: pa.DataType, values: "array[int]") -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _validity(values: Sequence[str | None]) -> pa.Buffer:
    """Arrow's bitmap of which values are there: the first in the lowest bit of the first byte."""
    bits = "".join("0" if value is None else "1" for value in reversed(values))
    return pa.py_buffer(int(bits, 2).to_bytes((len(values) + 7) // 8, "little"))
