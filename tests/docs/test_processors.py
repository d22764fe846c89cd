"""The processors that users are shown do what the page says."""

from typing import Any

import pytest

from kcl_py import Records, Reject
from kcl_py.testing import FakeStream, record, run_processor
from tests.docs.pages import DOCS, blocks

pytestmark = pytest.mark.asyncio


@pytest.fixture
def shown() -> dict[str, Any]:
    """The names that the programs of the page define."""
    names: dict[str, Any] = {"__name__": __name__}
    for program in blocks(DOCS / "processors.md", "python"):
        exec(compile(program, "processors.md", "exec"), names)
    return names


async def test_function_adds_up_orders_and_rejects_what_is_none(shown: dict[str, Any]) -> None:
    """With the reason that the page cites."""
    orders = [
        record('{"customer": "a", "cents": 5}', key="a"),
        record('{"customer": "a", "cents": "5"}', key="a"),
        record('{"customer": "a", "cents": 7}', key="a"),
    ]
    run = await run_processor(shown["add_up"], orders, options={"delivery": {"on_failure": "skip"}})
    assert shown["totals"] == {"a": 12}
    [reason] = [call.outcome.reason for call in run.calls if isinstance(call.outcome, Reject)]
    assert reason == "cannot decode payload as Order: at $.cents: expected int, found str"
    assert f"`{reason}`" in (DOCS / "processors.md").read_text(encoding="utf-8")


async def test_function_of_batches_stores_them(shown: dict[str, Any]) -> None:
    """And checkpoints."""
    run = await run_processor(shown["store"], ['{"a": 1}', '{"a": 2}'], checkpoint="manual")
    assert shown["rows"] == [{"a": 1}, {"a": 2}]
    assert len(run.acknowledged) == 2


async def test_class_puts_a_record_off(shown: dict[str, Any]) -> None:
    """It comes again."""
    run = await run_processor(shown["Numbers"], ["0", "1"])
    assert run.processors[0].sum == 1
    assert run.redelivered == [b"0"]


async def test_loop_takes_the_first_and_has_them_done(shown: dict[str, Any]) -> None:
    """The last one too, which it acknowledges."""
    stream = FakeStream()
    records = stream.put(*[record(each, key="k") for each in "abcd"])

    def open_stream(_: object, processor: Any) -> Any:
        assert processor is Records
        return stream.worker(processor)

    shown["Stream"] = open_stream
    async with stream.clock.passing():
        assert await shown["first"](3, stream.config()) == [b"a", b"b", b"c"]
    assert stream.checkpoints == {"shardId-000000000000": records[2].sequence_number}


async def test_middlewares_hear_of_each_call(shown: dict[str, Any]) -> None:
    """As many as records."""
    await run_processor(shown["ignore"], ["a", "b"])
    assert shown["metrics"].snapshot().records == {"done": 2}
    assert shown["slow"] == []
