"""A client with faults is otherwise the client that it stands around."""

from random import Random

import pytest
from botocore.exceptions import ClientError

from kcl_py.config import Service
from kcl_py.local.client import KinesisClient
from kcl_py.local.faults.client import FaultyClient
from kcl_py.local.faults.fault import Fault, Kind
from kcl_py.local.faults.faults import Faults
from kcl_py.sessions import Sessions
from tests.kcl_py.local.faults.site import in_memory
from tests.kcl_py.local.world import World

pytestmark = pytest.mark.asyncio


async def test_what_is_no_operation_passes_through() -> None:
    """Meta data, exceptions, closing: all of the real client's."""
    world, service = World(), Service(region="eu-west-1", endpoint="http://127.0.0.1:1")
    async with Sessions().client("kinesis", service) as real:
        client = FaultyClient(real, "kinesis", Faults([Fault(kind=Kind.ERROR)], random=Random(1)), clock=world.clock)
        assert client.meta is real.meta
        assert client.exceptions is real.exceptions
        assert client.can_paginate("list_shards")
        with pytest.raises(AttributeError):
            client.no_such_thing  # noqa: B018  # looking is what raises
        with pytest.raises(real.exceptions.ClientError, match="InternalFailure"):
            await client.list_streams()


async def test_without_rules_the_clients_own_call_is_made() -> None:
    """Nothing stands between, so it costs next to nothing; a rule that comes later is met all the same."""
    world, faults = World(), Faults(random=Random(1))
    client = FaultyClient(KinesisClient(world.model, world.clock), "kinesis", faults, clock=world.clock)
    call = client.list_shards(StreamName="s")
    assert call.cr_code is KinesisClient.list_shards.__code__
    assert len((await call)["Shards"]) == 1
    faults.add(Fault(kind=Kind.ERROR))
    with pytest.raises(ClientError, match="InternalFailure"):
        await client.list_shards(StreamName="s")


async def test_a_stale_reply_is_the_callers_own() -> None:
    """What it does with a reply changes no other."""
    async with in_memory(Fault(kind=Kind.STALE)) as site:
        for _ in range(3):
            reply = await site.call("kinesis.list_shards", {"StreamName": "s"})
            assert len(reply.pop("Shards")) == 1
