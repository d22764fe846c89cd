"""What the examples' tests share: one ``kcl local``, and a worker of it in a folder of its own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from tests.kcl_py.local.world import boto
from tests.processes.process import KCL, Process, clean_env

EXAMPLES = Path(__file__).parents[2] / "examples"
SECRETS = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": "us-east-1"}

Run = Callable[..., Process]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A ``kcl local`` with the stream of the examples, of one shard, so that order is certain."""
    with closing(Process(KCL, "local", "--port", "0", "--stream", "example:1", cwd=tmp_path, env=clean_env())) as local:
        yield local.out.until(lambda: local.out.lines[:1], "ready line")[0].removeprefix("ready ")


@pytest.fixture
def kinesis(url: str) -> Iterator[Any]:
    """boto3's client of it."""
    with boto("kinesis", url) as client:
        yield client


@pytest.fixture
def run(url: str, tmp_path: Path) -> Iterator[Run]:
    """Start ``kcl run`` on an example, with more environment as named."""
    with ExitStack() as stack:

        def start(file: str, **more: str) -> Process:
            env = clean_env(**SECRETS, KCL_AWS__ENDPOINT=url, **more)
            return stack.enter_context(closing(Process(KCL, "run", str(EXAMPLES / file), cwd=tmp_path, env=env)))

        yield start


def put(kinesis: Any, *texts: str) -> None:
    """Put records, each under its first letter as key."""
    records = [{"PartitionKey": text[0], "Data": text.encode()} for text in texts]
    assert kinesis.put_records(StreamName="example", Records=records)["FailedRecordCount"] == 0
