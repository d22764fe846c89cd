"""What callers do wrong on the wire: they leave in the middle, or speak no HTTP. It is no news of the server's.

Needs aiohttp.
"""

import logging

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

_THEIRS = (ConnectionError, HttpProcessingError, web.RequestPayloadError)


def server_log() -> logging.Logger:
    """Return the log for aiohttp's server: it shows what the server does wrong, and nothing else."""
    log = logging.getLogger("kcl_py.local.server")
    log.addFilter(_is_ours)
    return log


def _is_ours(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], _THEIRS)
