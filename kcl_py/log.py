"""Events on stderr: JSON lines, or text on a terminal.

Only the command line calls ``configure``; the library itself never configures logging. Record data is never logged, and
tracebacks only at level debug. What other libraries log comes out the same way, from level warning on: botocore's own
debug lines would show payloads.
"""

import logging
import sys
from collections.abc import Callable
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor

from kcl_py.log_line import TextLine, in_order
from kcl_py.printable import printable

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["auto", "text", "json"]

_OURS = "kcl_py"
_TIMESTAMP = "%Y-%m-%dT%H:%M:%S.%fZ"
"""ISO 8601, always of the same length."""


def configure(level: Level, format: Format, *, file: TextIO | None = None) -> None:
    """Send events of ``level`` and above to ``file`` (default: stderr); may be called again."""
    file = file or sys.stderr
    number = logging.getLevelNamesMapping()[level.upper()]
    is_text = format == "text" or (format == "auto" and file.isatty())
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt=_TIMESTAMP, utc=True),
        _with_traceback if number == logging.DEBUG else _without_traceback,
    ]
    render: Processor = structlog.processors.JSONRenderer(default=str)
    if is_text:
        before.append(_printable)
        render = TextLine(is_terminal=file.isatty())
    structlog.configure(
        processors=[*before, in_order, render],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=file),
    )
    _route_other_libraries(before, render, file)
    logging.getLogger(_OURS).setLevel(number)


def shows_tracebacks() -> bool:
    """Whether the level is debug."""
    return logging.getLogger(_OURS).level == logging.DEBUG


def may_show_tracebacks() -> bool:
    """Whether the program has set structlog up: its own default shows all variables with them, records too."""
    return structlog.is_configured()


def _route_other_libraries(before: list[Processor], render: Processor, file: TextIO) -> None:
    handler = logging.StreamHandler(file)
    drop_meta: Callable[..., Any] = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    name: Processor = structlog.stdlib.add_logger_name
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=[name, *before], processors=[drop_meta, in_order, render])
    )
    logging.root.handlers = [handler]
    logging.root.setLevel(logging.WARNING)


def _printable(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Escape what could steer the terminal; the lines of a traceback stay lines. JSON has escapes of its own."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = "\n".join(map(printable, value.split("\n")))
    return event


def _with_traceback(logger: Any, method: str, event: EventDict) -> EventDict:
    return structlog.processors.format_exc_info(logger, method, event)


def _without_traceback(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Keep only the class of an exception: its text may hold record data."""
    event.pop("stack_info", None)
    info = event.pop("exc_info", None)
    error = sys.exc_info()[1] if info is True else info[1] if isinstance(info, tuple) else info
    if isinstance(error, BaseException):
        event.setdefault("error", type(error).__name__)
    return event
