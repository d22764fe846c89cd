"""What the tests with real processes share: one ``kcl local``, and a fleet of its own for each test."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest

from tests.kcl_py.local.world import boto
from tests.processes.fleet import Fleet
from tests.processes.process import KCL, Process, clean_env

APPS = count()


@pytest.fixture(scope="package")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A ``kcl local`` for all of them, with its DynamoDB loaded."""
    folder = tmp_path_factory.mktemp("local")
    with closing(Process(KCL, "local", "--port", "0", cwd=folder, env=clean_env())) as local:
        address = local.out.until_said("ready ").removeprefix("ready ")
        with boto("dynamodb", address) as client:
            client.list_tables()
        yield address


@pytest.fixture
def fleet(url: str, tmp_path: Path) -> Iterator[Fleet]:
    """An application without workers or stream yet."""
    with ExitStack() as stack:
        kinesis, dynamodb = (stack.enter_context(boto(service, url)) for service in ("kinesis", "dynamodb"))
        yield stack.enter_context(
            closing(Fleet(tmp_path, url, f"app-{next(APPS)}", kinesis=kinesis, dynamodb=dynamodb))
        )
