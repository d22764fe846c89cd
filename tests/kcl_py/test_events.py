"""A log that fails is no reason for a worker to end."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from kcl_py import Checkpointer, OwnedShard, RecordBatch, RecordProcessor
from kcl_py.events import Events
from kcl_py.testing import run_processor


def full(_logger: Any, _method: str, _event: structlog.typing.EventDict) -> str:
    raise OSError("no space left")


@pytest.fixture
def _full_log() -> Iterator[None]:
    """All that the program logs by structlog fails."""
    structlog.configure(processors=[full])
    yield
    structlog.reset_defaults()


@pytest.mark.usefixtures("_full_log")
@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_event_that_cannot_be_logged_is_named_by_pythons_own_logging(
    caplog: pytest.LogCaptureFixture, level: str
) -> None:
    """At level error."""
    getattr(Events().bind(shard_id="s-1"), level)("kcl_py.shard.taken", taken_from=None)
    assert caplog.messages == ["could not log kcl_py.shard.taken: OSError('no space left')"]


class Refusing:
    """A logger that can be neither bound nor used."""

    def __init__(self, *_arguments: object, **_fields: object) -> None:
        raise OSError("no space left")


class RefusingHandler(logging.Handler):
    """A handler of Python's own logging that raises."""

    def emit(self, record: logging.LogRecord) -> None:
        raise RecursionError(record.msg)


@pytest.mark.parametrize("options", [{"logger_factory": Refusing}, {"wrapper_class": Refusing}])
def test_logging_that_cannot_even_begin_is_no_more_than_that(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is one that refuses to hear of it."""
    structlog.configure(**options)
    monkeypatch.setattr(logging.getLogger("kcl_py"), "handlers", [RefusingHandler()])
    Events().bind(shard_id="s-1").bind(epoch=1).warning("kcl_py.shard.taken")
    structlog.reset_defaults()


class Failing(RecordProcessor):
    """Each first attempt fails, so there is much to log."""

    async def initialize(self, shard: OwnedShard) -> None:
        self.tries = 0

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        self.tries += 1
        if self.tries % 2:
            raise ValueError("not yet")


@pytest.mark.usefixtures("_full_log")
@pytest.mark.asyncio
async def test_worker_whose_log_is_full_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """It reads, tries again and stores its checkpoint as ever."""
    run = await run_processor(Failing, ["a", "b"])
    assert run.acknowledged == [b"a", b"b"]
    assert "could not log kcl_py.worker.started: OSError('no space left')" in caplog.messages
