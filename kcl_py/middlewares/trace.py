"""A span of OpenTelemetry for each call of a processor; what the processor traces itself lies within it.

Needs the package ``opentelemetry-api``, which kcl_py does not depend on. Source of names: the semantic conventions for
messaging spans.
"""

from contextvars import ContextVar
from importlib import import_module
from typing import Any

from kcl_py.batchers import Batched
from kcl_py.middleware import Middleware
from kcl_py.middlewares.outcome import word, word_of_record
from kcl_py.outcomes import BatchOutcome, RecordOutcome
from kcl_py.processor import OwnedShard
from kcl_py.records import Record, RecordBatch

try:
    _api, _context = import_module("opentelemetry.trace"), import_module("opentelemetry.context")
except ImportError:
    raise ImportError(
        "cannot trace: expected the package opentelemetry-api, found none; install it beside kcl_py"
    ) from None

_open: ContextVar[tuple[Any, object] | None] = ContextVar("kcl_py_open_span", default=None)


class Trace(Middleware):
    """Opens and ends the spans of one shard.

    Args:
        tracer: of OpenTelemetry; by default that of the provider that your program has set.
    """

    def __init__(self, tracer: Any = None) -> None:
        self._tracer = tracer or _api.get_tracer("kcl_py")

    def initialize(self, shard: OwnedShard) -> None:
        self._name = f"process {shard.stream}"
        self._attributes = {
            "messaging.system": "aws.kinesis",
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.destination.name": shard.stream,
            "messaging.destination.partition.id": shard.shard_id,
        }

    def before_record(self, record: Record) -> None:
        self._begin({"messaging.message.id": record.sequence_number})

    def after_record(self, record: Record, outcome: RecordOutcome | BaseException, took_s: float) -> None:
        self._end(outcome, word_of_record(outcome))

    def before_batch(self, batch: RecordBatch) -> None:
        self._begin({"messaging.batch.message_count": len(batch)})

    def after_batch(self, batch: RecordBatch, outcome: BatchOutcome | BaseException, took_s: float) -> None:
        self._end(outcome, word(outcome))

    def before_batched(self, batch: Batched) -> None:
        self._begin({"messaging.batch.message_count": len(batch)})

    def after_batched(self, batch: Batched, outcome: BatchOutcome | BaseException, took_s: float) -> None:
        self._end(outcome, word(outcome))

    def _begin(self, more: dict[str, Any]) -> None:
        span = self._tracer.start_span(self._name, kind=_api.SpanKind.CONSUMER, attributes=self._attributes | more)
        _open.set((span, _context.attach(_api.set_span_in_context(span))))

    def _end(self, outcome: object, said: str) -> None:
        if (opened := _open.get()) is None:
            return  # it could not be begun, and the log says why
        _open.set(None)
        span, token = opened
        span.set_attribute("kcl_py.outcome", said)
        if isinstance(outcome, BaseException):
            span.set_attribute("error.type", type(outcome).__qualname__)
            span.set_status(_api.StatusCode.ERROR)
        _context.detach(token)
        span.end()
