"""Spans around calls."""

import subprocess
import sys
from importlib import import_module
from typing import Any, ClassVar

import pytest

from kcl_py import Batched, Batcher, Record, RecordBatch, RecordProcessor, ToBatch, processor
from kcl_py.processor import Checkpointer
from kcl_py.testing import run_processor
from tests.kcl_py.middlewares.opentelemetry import SpanKind, StatusCode, Tracer, current, modules

SHARD = "shardId-000000000000"
ATTRIBUTES = {
    "messaging.system": "aws.kinesis",
    "messaging.operation.name": "process",
    "messaging.operation.type": "process",
    "messaging.destination.name": "test-stream",
    "messaging.destination.partition.id": SHARD,
}


@pytest.fixture
def tracer() -> Tracer:
    return Tracer()


@pytest.fixture
def trace(tracer: Tracer, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The class, with another OpenTelemetry."""
    for name, module in modules(tracer).items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "kcl_py.middlewares.trace", raising=False)
    middleware = import_module("kcl_py.middlewares.trace").Trace
    monkeypatch.delitem(sys.modules, "kcl_py.middlewares.trace")
    return middleware


@pytest.mark.asyncio
async def test_record_is_processed_in_a_span(tracer: Tracer, trace: Any) -> None:
    """What the processor traces lies within it, and nothing of the payload is in it."""
    inside = []

    @processor(middlewares=[trace])
    async def handle(payload: bytes) -> None:
        inside.append(current())

    run = await run_processor(handle, ["s3cret", "s3cret"])
    assert inside == tracer.spans
    for span, record in zip(tracer.spans, run.records[SHARD], strict=True):
        assert (span.name, span.kind, span.parent) == ("process test-stream", SpanKind.CONSUMER, None)
        assert (span.is_ended, span.status) == (True, None)
        more = {"messaging.message.id": record.sequence_number, "kcl_py.outcome": "done"}
        assert span.attributes == ATTRIBUTES | more
    assert current() is None


@pytest.mark.asyncio
async def test_batch_that_fails_is_a_span_with_its_error(tracer: Tracer, trace: Any) -> None:
    """By its class alone: its text may quote a payload."""

    class Fails(RecordProcessor):
        middlewares = (trace,)

        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
            raise ValueError("s3cret")

    await run_processor(Fails, ["a", "b"], retries=0)
    [span] = tracer.spans
    assert (span.is_ended, span.status) == (True, StatusCode.ERROR)
    more = {"messaging.batch.message_count": 2, "kcl_py.outcome": "failed", "error.type": "ValueError"}
    assert span.attributes == ATTRIBUTES | more


@pytest.mark.asyncio
@pytest.mark.parametrize(("error", "outcome"), [(None, "done"), (ValueError("s3cret"), "failed")])
async def test_batch_of_a_batcher_has_a_span_of_its_own(
    tracer: Tracer, trace: Any, error: Exception | None, outcome: str
) -> None:
    """Beside those in which its records were given away; with its error, by its class alone."""

    class Gathers(RecordProcessor):
        middlewares = (trace,)
        batchers: ClassVar[dict[str, Batcher]] = {"both": Batcher(max_records=2)}

        async def process(self, record: Record) -> ToBatch:
            return ToBatch("both")

        async def handle_batch(self, batch: Batched) -> None:
            assert current() is tracer.spans[-1]
            if error is not None:
                raise error

    await run_processor(Gathers, ["a", "b"], retries=0)
    *_, last = tracer.spans
    assert [span.attributes["kcl_py.outcome"] for span in tracer.spans] == ["batched", "batched", outcome]
    assert last.attributes["messaging.batch.message_count"] == 2
    assert (last.is_ended, last.status) == (True, StatusCode.ERROR if error else None)
    assert last.attributes.get("error.type") == (type(error).__qualname__ if error else None)


def test_without_its_package_the_import_says_what_to_install() -> None:
    """In one sentence, which ``kcl check`` shows."""
    code = "import sys; sys.modules['opentelemetry'] = None; import kcl_py.middlewares.trace"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: cannot trace: expected the package opentelemetry-api, found none; install it beside kcl_py"
    )
