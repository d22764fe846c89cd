"""What keeps a worker from starting: each is one error of its own type, and nothing is taken or left behind."""

import asyncio
from typing import Any

import anyio
import pytest

from kcl_py import ConfigError, LeaseTableError, ProcessorError, RecordProcessor, Stream, StreamNotFoundError
from kcl_py.clients import Clients
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.processor import Checkpointer
from kcl_py.records import RecordBatch
from tests.kcl_py.tree.fleet import STREAM, Fleet, a_source, make_config
from tests.kcl_py.tree.wire import Fault
from tests.simloop import simulated


class Plain(RecordProcessor):
    """Does nothing with records."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None: ...


class Nothing(RecordProcessor):
    """Does not override process_records."""


@pytest.mark.parametrize(
    ("processor", "found"),
    [(Nothing, "found neither"), (Plain(), "found an instance of one; give the class itself"), (print, "that is none")],
)
@simulated
async def test_processor_that_is_none_is_a_typed_error_before_anything_is_taken(processor: Any, found: str) -> None:
    """A class that cannot be used, an instance in place of its class, or something else, is found out at once."""
    fleet = Fleet(shards=1)
    with pytest.raises(ProcessorError, match=found):
        async with Stream(make_config(), processor=processor, clients=Clients(a_source(fleet), fleet.store)):
            pass
    assert not fleet.rows()
    assert not fleet.loop.left()


@simulated
async def test_unknown_stream_is_the_same_error_over_clients_that_were_given() -> None:
    """Whoever made the clients, a stream that is not there is a fault of the set-up, and named."""
    fleet = Fleet(shards=1)
    fleet.model.call("DeleteStream", {"StreamName": STREAM})
    await asyncio.sleep(60)
    member = fleet.start("A")
    await member.ended()
    assert isinstance(member.error, StreamNotFoundError)
    assert "cannot read stream" in str(member.error)


@simulated
async def test_worker_waits_for_a_stream_that_is_being_created() -> None:
    """A deploy that creates stream and workers together needs no order."""
    fleet = Fleet(shards=1)
    fleet.model.call("DeleteStream", {"StreamName": STREAM})
    await asyncio.sleep(60)
    fleet.model.call("CreateStream", {"StreamName": STREAM, "ShardCount": 1})
    fleet.start("A")
    await asyncio.sleep(5)
    fleet.put(5)
    await fleet.delivered()
    await fleet.stopped()


@pytest.mark.parametrize("operation", ["ensure", "scan"])
@simulated
async def test_lease_table_that_vanishes_during_the_start_is_a_fault_of_the_set_up(operation: str) -> None:
    """It was there a moment ago: the error says so, and what to do."""
    member = Fleet(shards=1)
    worker = member.start("A")
    worker.wire.fail(operation, Fault.MISSING)
    await worker.ended()
    assert isinstance(worker.error, LeaseTableError)
    assert "start again" in str(worker.error)


def test_stream_is_refused_at_once_on_another_event_loop_than_that_of_asyncio() -> None:
    """AWS's clients run on asyncio alone; a worker on trio would only wait for its timeout."""

    async def open_it() -> None:
        async with Stream(make_config(), processor=Plain, clients=Clients(Any, MemoryLeaseStore())):  # type: ignore[arg-type]
            pass

    with pytest.raises(ConfigError, match="expected an asyncio event loop, found that of trio"):
        anyio.run(open_it, backend="trio")
