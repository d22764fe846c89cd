"""What the tests with real processes share: one ``kcl local``, and a fleet of its own for each test."""

import signal
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import pytest

from tests.kcl_py.local.world import boto
from tests.processes.fleet import Fleet
from tests.processes.process import KCL, Process, clean_env

APPS = count()

for number in (signal.SIGHUP, signal.SIGINT):
    if signal.getsignal(number) is signal.SIG_IGN:  # as in the background; what is started would ignore them, too
        signal.signal(number, lambda *_: None)


@contextmanager
def running_local(folder: Path, *arguments: str) -> Iterator[tuple[Process, str]]:
    """Run ``kcl local``; yields it and its address, once its DynamoDB is loaded."""
    with closing(Process(KCL, "local", "--port", "0", *arguments, cwd=folder, env=clean_env())) as local:
        url = local.out.until_said("ready ").removeprefix("ready ")
        with boto("dynamodb", url) as client:
            client.list_tables()
        yield local, url


@contextmanager
def a_fleet(url: str, folder: Path) -> Iterator[Fleet]:
    """Give an application without workers or stream yet."""
    with boto("kinesis", url) as kinesis, boto("dynamodb", url) as dynamodb:
        fleet = Fleet(folder, url, f"app-{next(APPS)}", kinesis=kinesis, dynamodb=dynamodb)
        with closing(fleet):
            yield fleet


@pytest.fixture(scope="package")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A ``kcl local`` for all of them."""
    with running_local(tmp_path_factory.mktemp("local")) as (_, url):
        yield url


@pytest.fixture
def fleet(url: str, tmp_path: Path) -> Iterator[Fleet]:
    """A fleet on the AWS of all."""
    with a_fleet(url, tmp_path) as fleet:
        yield fleet


@pytest.fixture
def aws_and_fleet(tmp_path: Path) -> Iterator[tuple[Process, Fleet]]:
    """An AWS that the test may end, and a fleet on it."""
    with running_local(tmp_path) as (local, url), a_fleet(url, tmp_path) as fleet:
        yield local, fleet


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
