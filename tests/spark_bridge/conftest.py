"""What the bridge's tests share: a Kinesis on 127.0.0.1, credentials that mean nothing, and the mark ``spark``."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark_bridge.harness import LocalStream


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "spark: starts a JVM")


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signatures are not looked at, but the client wants something to sign with."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAFAKE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "fake-secret")
    monkeypatch.delenv("AWS_PROFILE", raising=False)


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[LocalStream]:
    """A stream of two shards behind HTTP."""
    with LocalStream.serve(shards=2, spool=tmp_path / "spool") as stream:
        yield stream


@pytest.fixture(autouse=True)
def own_sigterm() -> Iterator[None]:
    """A reader takes SIGTERM over in what it believes to be its own process."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)
