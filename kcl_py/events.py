"""What the worker says of itself, by structlog as the program has set that up."""

import logging
from contextlib import suppress
from typing import Any, Self

import structlog

from kcl_py.log import Level


class Events:
    """Says events. Nothing depends on them: one that fails is an error of the logger ``kcl_py``, if that takes it.

    Args:
        logger: structlog's, or what has its methods for these levels, and ``bind``; None: one by its configuration.
    """

    def __init__(self, logger: Any = None) -> None:
        self._logger = structlog.get_logger() if logger is None else logger

    def bind(self, **fields: object) -> Self:
        """Return one that says these fields with every event."""
        try:
            return type(self)(self._logger.bind(**fields))
        except Exception as error:  # of what the program has set up
            self._fail("an event's fields", error)
            return self

    def debug(self, event: str, **fields: object) -> None:
        self._say("debug", event, fields)

    def info(self, event: str, **fields: object) -> None:
        self._say("info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._say("warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        self._say("error", event, fields)

    def _say(self, level: Level, event: str, fields: dict[str, object]) -> None:
        try:
            getattr(self._logger, level)(event, **fields)
        except Exception as error:
            self._fail(event, error)

    def _fail(self, what: str, error: Exception) -> None:
        with suppress(Exception):
            logging.getLogger("kcl_py").error("could not log %s: %r", what, error)
