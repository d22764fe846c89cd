"""The destination in a worker's life: opened when it starts, its own in all, closed when it ends."""

import gc
import socket
from pathlib import Path
from typing import Any

import pytest

from actors.clock import SystemClock
from kcl_py import AwsSetupError, Checkpointer, Clients, RecordBatch, RecordProcessor, Stream
from kcl_py.cli.check import check_command
from kcl_py.dead_letters import DeadLetter
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.local.client import KinesisClient
from kcl_py.local.model import Kinesis
from kcl_py.sources.kinesis.polling import KinesisSource
from tests.kcl_py.dead_letters.places import Place, a_letter


class Plain(RecordProcessor):
    """Does nothing with records."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None: ...


class Kept:
    """Keeps letters in a list."""

    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []

    async def store(self, letter: DeadLetter) -> None:
        self.letters.append(letter)


def a_stream(place: Place, *, dead_letters: Kept | None = None, **delivery: Any) -> Stream:
    """Return a worker whose stream and leases are in memory."""
    clock = SystemClock()
    model = Kinesis(clock, delay_s=0.0)
    model.add_stream("orders", 1)
    source = KinesisSource(KinesisClient(model, clock), "orders", clock=clock)
    clients = Clients(source, MemoryLeaseStore(), dead_letters=dead_letters)
    return Stream(place.config(**delivery), processor=Plain, clients=clients)


@pytest.mark.asyncio
async def test_worker_opens_its_destination_and_closes_it(place: Place) -> None:
    """And leaves no connection behind (aiohttp would warn, which fails here)."""
    stream = a_stream(place)
    async with stream:
        letters = stream._worker.dead_letters
        assert letters is not None
        await letters.store(a_letter())
    assert await place.found() == [a_letter()]
    gc.collect()


@pytest.mark.asyncio
async def test_worker_does_not_start_without_its_destination(aws: Place) -> None:
    """Not at the first failure at night."""
    missing = {"kinesis": "kinesis:nowhere", "s3": "s3://nowhere"}.get(aws.text.partition(":")[0], f"{aws.text[:-5]}x")
    with pytest.raises(AwsSetupError, match=f"cannot keep dead letters in {missing}, in us-east-1 at {aws.url}: "):
        async with a_stream(aws, dead_letter=missing):
            pass


@pytest.mark.asyncio
async def test_worker_takes_the_destination_that_it_is_given(place: Place) -> None:
    """Whoever brings its own clients brings this, too; nothing is opened then."""
    kept = Kept()
    stream = a_stream(place, dead_letters=kept, dead_letter="kinesis:nowhere")
    async with stream:
        assert stream._worker.dead_letters is kept


@pytest.mark.asyncio
async def test_worker_has_no_destination_where_none_is_configured(place: Place) -> None:
    """None, not something that loses what it is given."""
    stream = a_stream(place, on_failure="halt", dead_letter=None)
    async with stream:
        assert stream._worker.dead_letters is None


def test_check_opens_no_socket_and_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the destination."""
    monkeypatch.setattr(socket.socket, "connect", None)
    (tmp_path / "plain.py").write_text(
        "from kcl_py import RecordProcessor\n"
        "class Plain(RecordProcessor):\n"
        "    async def process_records(self, batch, checkpointer): ...\n"
    )
    file = tmp_path / "worker.yaml"
    for text in (f"file:{tmp_path}/letters", "s3://failures", "kinesis:failures"):
        file.write_text(
            "{app: shop, stream: orders, processor: 'plain:Plain', aws: {endpoint: 'http://127.0.0.1:1'}, "
            f"delivery: {{on_failure: dead_letter, dead_letter: '{text}'}}}}"
        )
        assert check_command(file) == 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["plain.py", "worker.yaml"]
