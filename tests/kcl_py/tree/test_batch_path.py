"""The path of a batch, from the bytes of a reply to the checkpoint, costs the same in Python whatever it holds."""

import asyncio
import base64
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from kcl_py.processor import Checkpointer
from kcl_py.records import RecordBatch
from kcl_py.sources.kinesis.decode import decode_reply
from kcl_py.sources.kinesis.polling import KinesisSource
from kcl_py.tree.messages import Complete, Progress
from tests.kcl_py.tree.fleet import STREAM
from tests.kcl_py.tree.pipelines import a_pipeline
from tests.simclock import SimClock
from tests.simloop import run, sim_loop

ROOT = f"{Path(__file__).parents[3]}/"
FEW, MANY = 10, 10_000
DELIVERY = {"batch": {"max_records": MANY}, "max_ahead": {"records": 2 * MANY}}


class Client:
    """Stands where aioboto3's client would: the only reply of a shard as bytes, decoded by our decoder."""

    def __init__(self, records: int) -> None:
        sample = {"Data": base64.b64encode(b"x" * 100).decode(), "ApproximateArrivalTimestamp": 1.7e9}
        found = [{"SequenceNumber": str(10**55 + n), "PartitionKey": f"k{n}", **sample} for n in range(records)]
        self._body = msgspec.json.encode({"Records": found, "MillisBehindLatest": 0, "ChildShards": []})

    async def get_shard_iterator(self, **arguments: Any) -> Any:
        await asyncio.sleep(0.01)
        return {"ShardIterator": "first"}

    async def get_records(self, **arguments: Any) -> Any:
        await asyncio.sleep(0.01)
        reply: dict[str, Any] = {}
        decode_reply({"status_code": 200, "body": self._body}, reply)
        return reply

    async def describe_stream_summary(self, **arguments: Any) -> Any:
        raise NotImplementedError

    async def list_shards(self, **arguments: Any) -> Any:
        raise NotImplementedError

    async def put_records(self, **arguments: Any) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing is open."""


class Calls:
    """Counts calls of the project's functions, and calls of built-in ones from them, by name."""

    def __init__(self) -> None:
        self.by_name: Counter[str] = Counter()

    def __enter__(self) -> "Calls":
        sys.setprofile(self._count)
        return self

    def __exit__(self, *ended: object) -> None:
        sys.setprofile(None)

    def _count(self, frame: FrameType, event: str, argument: object) -> None:
        path = frame.f_code.co_filename.removeprefix(ROOT)
        if not path.startswith(("actors/", "kcl_py/")):
            return
        if event == "call":
            self.by_name[f"{path}:{frame.f_code.co_qualname}"] += 1
        elif event == "c_call":
            self.by_name[f"{path}: {getattr(argument, '__qualname__', argument)}"] += 1


async def calls_for(records: int) -> Counter[str]:
    """Deliver a shard of that many records as one batch; return the calls from the start to its end."""
    batches: list[int] = []

    async def work(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        batches.append(len(batch))

    source = KinesisSource(Client(records), STREAM, clock=SimClock(sim_loop()))
    async with a_pipeline(source=source, work=work, delivery=DELIVERY) as played:
        with Calls() as calls:
            played.begin()
            await played.lease.hears(Complete)
        assert batches == [records]
        assert played.lease.of(Progress)[-1].records == records
    return calls.by_name


def test_batch_path_makes_as_many_calls_for_ten_thousand_records_as_for_ten() -> None:
    """Nothing in Python happens once for each record: from the bytes of a reply to its progress, calls are the same."""
    few, many = (run(partial(calls_for, records)) for records in (FEW, MANY))
    assert many == few, f"more: {many - few}, fewer: {few - many}"
    assert few["kcl_py/tree/forms.py:BatchForm.attempt"] == 1
    assert few["kcl_py/sources/kinesis/decode.py:decode_reply"] == 1
