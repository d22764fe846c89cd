"""Functions that are ``def`` as processors: they run off the event loop."""

import sys
import threading
from typing import Any

import msgspec
import pytest

from kcl_py import OwnedShard, ProcessorError, Record, RecordBatch, RecordProcessor, Records, Reject, Retry, processor
from kcl_py.acceptance import load_processor
from kcl_py.executors.checkpointer import SyncCheckpointer
from kcl_py.middlewares.metrics import Metrics
from kcl_py.outcomes import BatchOutcome, RecordOutcome
from kcl_py.testing import FakeStream, HookCall, record, run_processor

pytestmark = pytest.mark.asyncio
OPTIONS = [{"delivery": {"executor": executor, "on_failure": "skip"}} for executor in ("thread", "process")]
executors = pytest.mark.parametrize("options", OPTIONS, ids=["thread", "process"])
metrics = Metrics()


class Order(msgspec.Struct):
    """What a payload is."""

    id: int


def where() -> str:
    """Say where this runs."""
    if sys.argv[0] == "-c":  # as a child process is started
        return "child"
    return "event loop" if threading.current_thread() is threading.main_thread() else "thread"


@processor(middlewares=[metrics])
def handle(order: Order, record: Record, shard: OwnedShard) -> RecordOutcome:
    """Say something of each."""
    if order.id == 1 and record.redelivery is None:
        return Retry(after_s=1)
    return Reject(f"{where()} {order.id} {record.partition_key} {shard.shard_id}") if order.id == 2 else None


@processor
def handle_all(orders: list[Order], batch: RecordBatch, checkpointer: SyncCheckpointer) -> BatchOutcome:
    checkpointer.checkpoint(batch)
    if orders[0].id == 7:
        raise ValueError("after the checkpoint")
    return {batch.records[-1]: Reject(f"{where()} {[order.id for order in orders]}")}


def orders(*ids: int | str) -> list[str]:
    """Payloads of orders; a text is none."""
    return [f'{{"id": {number}}}' if isinstance(number, int) else number for number in ids]


def verdicts(calls: tuple[HookCall[RecordProcessor], ...]) -> list[Any]:
    """What was said of records, and of those in batches."""
    said = [call.outcome for call in calls if call.hook in ("process", "process_records")]
    return [each for outcome in said for each in (outcome.values() if isinstance(outcome, dict) else [outcome])]


@executors
async def test_function_gets_payload_record_and_shard_off_the_event_loop(options: dict[str, Any]) -> None:
    """What it returns counts, and its middlewares hear of it in the worker."""
    before = metrics.snapshot()
    records = [record(payload, key="a") for payload in orders(1, 2, "x")]
    run = await run_processor(handle, records, options=options)
    assert len(run.acknowledged) == 3
    place = "thread" if options is OPTIONS[0] else "child"
    reasons = [each.reason for each in verdicts(run.calls) if isinstance(each, Reject)]
    assert reasons[0] == f"{place} 2 a shardId-000000000000"
    assert reasons[1].startswith("cannot decode payload as Order")
    assert sum(isinstance(each, Retry) for each in verdicts(run.calls)) == 1
    assert metrics.snapshot() != before


@executors
async def test_batch_function_gets_what_can_be_decoded_and_the_rest_is_rejected(options: dict[str, Any]) -> None:
    """Its verdicts stand beside that."""
    run = await run_processor(handle_all, orders(1, "x", 2), options=options)
    assert len(run.acknowledged) == 3
    place = "thread" if options is OPTIONS[0] else "child"
    assert sorted(each.reason.partition(":")[0] for each in verdicts(run.calls)) == [
        "cannot decode payload as Order",
        f"{place} [1, 2]",
    ]


@executors
async def test_checkpoint_never_covers_a_record_that_is_yet_to_be_rejected(options: dict[str, Any]) -> None:
    """Else the record would be gone if the worker died before it was put away."""
    halting = {"delivery": options["delivery"] | {"on_failure": "halt"}}
    run = await run_processor(handle_all, orders(7, "x", 8), checkpoint="manual", retries=0, options=halting)
    assert run.acknowledged == [b'{"id": 7}']
    assert list(run.halted)


async def test_function_is_refused_as_it_is_named_where_it_cannot_run() -> None:
    """With the option that lets it, or the other way round."""
    path = f"{__name__}:handle"
    with pytest.raises(ProcessorError) as refused:
        load_processor(path)
    assert str(refused.value) == (
        f"cannot use processor '{path}': expected `async def handle`, found `def`; "
        "set delivery.executor to thread or process if it is to run off the event loop"
    )

    @processor
    async def waits(payload: bytes) -> None: ...

    with pytest.raises(ProcessorError, match=r"expected `def waits` for delivery\.executor: process, found `async def"):
        await run_processor(waits, options=OPTIONS[1])


async def test_loop_over_records_is_refused_in_a_child_process() -> None:
    """The loop is in the worker."""
    fake = FakeStream()
    with pytest.raises(ProcessorError, match=r"Records': expected `def process` for delivery\.executor: process"):
        async with fake.worker(Records, delivery={"executor": "process"}):
            raise AssertionError
