"""What the bridge's tests share: a Kinesis on 127.0.0.1, credentials that mean nothing, and the mark ``spark``."""

import logging
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from pyspark.sql import SparkSession

from spark_bridge.session import local_session
from tests.spark_bridge.harness import LocalStream

ROOT = Path(__file__).parents[2]
KEYS = {"AWS_ACCESS_KEY_ID": "AKIAFAKE", "AWS_SECRET_ACCESS_KEY": "fake-secret"}
"""Signatures are not looked at, but the client wants something to sign with."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "spark: starts a JVM")


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test use those of whoever runs it."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[LocalStream]:
    """A stream of two shards behind HTTP."""
    with LocalStream.serve(shards=2, spool=tmp_path / "spool") as stream:
        yield stream


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    """The one Spark of the test run; its processes find the packages and get the credentials by the environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (KEYS | {"PYTHONPATH": str(ROOT)}).items():
            patch.setenv(name, value)
        session = local_session("tests")
        yield session
        session.stop()


@pytest.fixture(autouse=True)
def shared_process() -> Iterator[None]:
    """A reader sets up SIGTERM and the log of what it believes to be its own process."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)
    if structlog.is_configured():
        logging.root.handlers.clear()
        structlog.reset_defaults()
