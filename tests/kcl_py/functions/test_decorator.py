"""Functions as processors, run by real workers."""

import pickle
from typing import Any, ClassVar

import msgspec
import pytest

import kcl_py
from kcl_py import Checkpointer, OwnedShard, Record, RecordBatch, RecordProcessor, Reject, Retry, processor
from kcl_py.outcomes import BatchOutcome, RecordOutcome
from kcl_py.testing import HookCall, record, run_processor

pytestmark = pytest.mark.asyncio
SHARD = "shardId-000000000000"
SKIP = {"delivery": {"on_failure": "skip"}}


class Order(msgspec.Struct):
    """What most payloads are."""

    id: int


seen: list[Any] = []
to_return: dict[int, Any] = {}


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    seen.clear()
    to_return.clear()


@processor
async def handle(order: Order, record: Record, shard: OwnedShard) -> RecordOutcome:
    """Keep orders."""
    seen.append((order.id, record.partition_key, shard.shard_id))
    answer: RecordOutcome = to_return.pop(order.id, None)
    return answer


@processor()
async def handle_all(orders: list[Order], batch: RecordBatch, checkpointer: Checkpointer) -> BatchOutcome:
    seen.append([order.id for order in orders])
    assert [msgspec.json.decode(each.data)["id"] for each in batch] == seen[-1]
    answer = to_return.pop(orders[0].id, None)
    if answer == "checkpoint":
        await checkpointer.checkpoint(batch)
        raise ValueError("after the checkpoint")
    if isinstance(answer, Exception):
        raise answer
    return {batch.records[0]: answer} if isinstance(answer, Reject) else answer


def orders(*ids: int | str) -> list[str]:
    """Payloads of orders; a text is none."""
    return [f'{{"id": {number}}}' if isinstance(number, int) else number for number in ids]


def rejections(calls: tuple[HookCall[RecordProcessor], ...]) -> list[Record]:
    """The records of which ``handle_failed`` was told."""
    return [call.record for call in calls if call.hook == "handle_failed" and call.record is not None]


async def test_function_gets_payload_record_and_shard() -> None:
    """It is a processor like any other, under the function's name."""
    run = await run_processor(handle, [record('{"id": 1}', key="a"), record('{"id": 2}', key="b")])
    assert sorted(seen) == [(1, "a", SHARD), (2, "b", SHARD)]
    assert len(run.acknowledged) == 2
    assert issubclass(handle, RecordProcessor)
    assert (handle.__name__, handle.__module__, handle.__doc__) == ("handle", __name__, "Keep orders.")
    assert pickle.loads(pickle.dumps(handle)) is handle


async def test_outcome_of_the_function_is_that_of_the_record() -> None:
    """Retry and Reject, as of ``process``."""
    to_return.update({1: Retry(after_s=1), 2: Reject("no")})
    run = await run_processor(handle, orders(1, 2), options=SKIP)
    assert sorted(each[0] for each in seen) == [1, 1, 2]
    assert [each.data for each in rejections(run.calls)] == [b'{"id": 2}']


async def test_payload_that_cannot_be_decoded_is_rejected_at_once_and_the_function_not_called() -> None:
    """To try again does not help."""
    run = await run_processor(handle, orders(1, "s3cret"), options=SKIP)
    assert [each[0] for each in seen] == [1]
    assert [each.data for each in rejections(run.calls)] == [b"s3cret"]
    [reason] = [call.outcome.reason for call in run.calls if isinstance(call.outcome, Reject)]
    assert reason == "cannot decode payload as Order: expected JSON, found it malformed: invalid character (byte 0)"
    assert len(run.acknowledged) == 2


async def test_batch_function_gets_what_can_be_decoded_and_the_rest_is_rejected() -> None:
    """Payloads and records of the batch fit each other."""
    run = await run_processor(handle_all, orders(1, "x", 2, "y"), options=SKIP)
    assert seen == [[1, 2]]
    assert sorted(each.data for each in rejections(run.calls)) == [b"x", b"y"]
    assert len(run.acknowledged) == 4


async def test_batch_function_is_not_called_for_a_batch_without_anything_to_decode() -> None:
    """It would get nothing."""
    run = await run_processor(handle_all, orders("x", "y"), options=SKIP)
    assert (seen, len(run.acknowledged)) == ([], 2)


@pytest.mark.parametrize("answer", [Retry(after_s=1), ValueError("no")], ids=repr)
async def test_what_a_batch_function_says_is_said_of_what_it_got(answer: Any) -> None:
    """Only those come again."""
    to_return[1] = answer
    run = await run_processor(handle_all, orders(1, "x", 2), options=SKIP)
    assert seen == [[1, 2], [1, 2]]
    assert [each.data for each in rejections(run.calls)] == [b"x"]


async def test_mapping_of_a_batch_function_stands_beside_what_cannot_be_decoded() -> None:
    """Both are rejected, the rest is done."""
    to_return[1] = Reject("no")
    run = await run_processor(handle_all, orders(1, "x", 2), options=SKIP)
    assert seen == [[1, 2]]
    assert sorted(each.data for each in rejections(run.calls)) == [b"x", b'{"id": 1}']


async def test_checkpoint_of_a_batch_function_never_covers_a_record_that_is_yet_to_be_rejected() -> None:
    """Else the record would be gone if the worker died before it was put away."""
    to_return[1] = "checkpoint"
    run = await run_processor(handle_all, orders(1, "x", 2), checkpoint="manual", retries=0)
    assert run.acknowledged == [b'{"id": 1}']
    assert list(run.halted)


async def test_function_itself_is_no_processor() -> None:
    """The error says what is missing."""

    async def bare(payload: bytes) -> None: ...

    given: Any = bare
    with pytest.raises(
        kcl_py.ProcessorError, match=r"found function that is none; decorate it with @kcl_py\.processor"
    ):
        await run_processor(given)


class Nested:
    """A place for a processor."""

    inner: ClassVar[type[RecordProcessor]] = handle


async def test_processor_is_the_decorator_though_a_module_has_its_name() -> None:
    """Whoever imports the module first."""
    assert callable(kcl_py.processor)
    assert kcl_py.processor is processor
