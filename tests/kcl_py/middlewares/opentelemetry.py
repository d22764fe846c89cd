"""As much of OpenTelemetry's API as a tracing middleware calls, with its names and meaning."""

from collections.abc import Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType
from typing import Any, Optional

_current: ContextVar[Optional["Span"]] = ContextVar("current_span", default=None)


class SpanKind(Enum):
    """Whose side a span tells of."""

    CONSUMER = 4


class StatusCode(Enum):
    """How a span has ended."""

    ERROR = 2


@dataclass(eq=False)
class Span:
    """Takes nothing any more once it has ended."""

    name: str
    kind: SpanKind
    attributes: dict[str, Any]
    parent: Optional["Span"]
    status: StatusCode | None = None
    is_ended: bool = False

    def set_attribute(self, key: str, value: object) -> None:
        assert not self.is_ended
        self.attributes[key] = value

    def set_status(self, status: StatusCode) -> None:
        assert not self.is_ended
        self.status = status

    def end(self) -> None:
        assert not self.is_ended
        self.is_ended = True


@dataclass
class Tracer:
    """Keeps its spans."""

    spans: list[Span] = field(default_factory=list)

    def start_span(self, name: str, *, kind: SpanKind, attributes: Mapping[str, Any]) -> Span:
        span = Span(name, kind, dict(attributes), _current.get())
        self.spans.append(span)
        return span


def attach(span: Span) -> Token[Span | None]:
    return _current.set(span)


def current() -> Span | None:
    return _current.get()


def modules(tracer: Tracer) -> dict[str, ModuleType]:
    """Return what is imported in the place of OpenTelemetry."""
    trace, context = ModuleType("opentelemetry.trace"), ModuleType("opentelemetry.context")
    vars(trace).update(
        SpanKind=SpanKind, StatusCode=StatusCode, get_tracer=lambda _: tracer, set_span_in_context=lambda span: span
    )
    vars(context).update(attach=attach, detach=_current.reset)
    return {"opentelemetry": ModuleType("opentelemetry"), trace.__name__: trace, context.__name__: context}
