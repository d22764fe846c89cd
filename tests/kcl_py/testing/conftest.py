"""What all tests of the users' testing package have."""

from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import LogCapture


@pytest.fixture(autouse=True)
def log() -> Iterator[LogCapture]:
    """Keep what is logged, instead of printing it."""
    capture = LogCapture()
    structlog.configure(processors=[capture])
    yield capture
    structlog.reset_defaults()
