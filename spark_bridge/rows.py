"""The columns that Spark sees, and records as Arrow in exactly that shape.

One conversion serves the spool and the re-reading of Kinesis, so both give the same rows. No I/O, no Spark.
"""

from collections.abc import Sequence

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
    return pa.RecordBatch.from_arrays(
        [
            pa.array([record.data for record in records], pa.binary()),
            pa.repeat(pa.scalar(stream), count),
            pa.repeat(pa.scalar(shard_id), count),
            pa.array([record.partition_key for record in records], pa.string()),
            pa.array([record.sequence_number for record in records], pa.string()),
            pa.array([record.sub_sequence_number for record in records], pa.int32()),
            pa.nulls(count, pa.string()),
            pa.array([round(record.arrived_s * _MICROSECONDS) for record in records], SCHEMA.field(7).type),
            pa.array([record.encryption_type for record in records], pa.string()),
        ],
        schema=SCHEMA,
    )
