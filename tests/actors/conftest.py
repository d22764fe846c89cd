"""Every test of the actors runs on asyncio and on trio, and none may hang."""

import pytest

from actors.testing import EventLog, ManualClock


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    backend: str = request.param
    return backend


@pytest.fixture
def log() -> EventLog:
    return EventLog()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()
