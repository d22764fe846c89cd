"""What the worker says of itself, by structlog as the program has set that up."""

import logging
from typing import Any, Self

import structlog


class Events:
    """Says events. Nothing depends on them: a log that fails is itself an error of the logger ``kcl_py``, no more.

    Args:
        logger: structlog's, or whatever else has these methods; None: one by its configuration.
    """

    def __init__(self, logger: Any = None) -> None:
        self._logger = structlog.get_logger() if logger is None else logger

    def bind(self, **fields: object) -> Self:
        """Return one that says these fields with every event."""
        return type(self)(self._logger.bind(**fields))

    def debug(self, event: str, **fields: object) -> None:
        self._say("debug", event, fields)

    def info(self, event: str, **fields: object) -> None:
        self._say("info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._say("warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        self._say("error", event, fields)

    def _say(self, level: str, event: str, fields: dict[str, object]) -> None:
        try:
            getattr(self._logger, level)(event, **fields)
        except Exception as error:  # of what the program has set up
            logging.getLogger("kcl_py").error("could not log %s: %r", event, error)
