"""StreamWriter: every record in, or named as missing."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError, ParamValidationError

from actors.testing import ManualClock
from kcl_py.local.client import KinesisClient
from kcl_py.local.model import Kinesis
from kcl_py.sources.kinesis.polling import KinesisSource
from kcl_py.sources.kinesis.writer import Placed, PutError, StreamWriter, batches
from kcl_py.sources.source import TRIM_HORIZON
from tests.clocks import PromptClock

pytestmark = pytest.mark.asyncio

SHARD = "shardId-000000000000"
Fault = Callable[[int, list[bytes]], set[int]]


class FaultyClient(KinesisClient):
    """Refuses the entries that ``fault`` names, by call number from 1 and payloads, while the others go in."""

    def __init__(self, model: Kinesis, fault: Fault) -> None:
        super().__init__(model, ManualClock())
        self._fault = fault
        self.sent: list[list[bytes]] = []

    async def put_records(self, **params: Any) -> dict[str, Any]:
        payloads = [record["Data"] for record in params["Records"]]
        self.sent.append(payloads)
        refused = self._fault(len(self.sent), payloads)
        taken = [record for index, record in enumerate(params["Records"]) if index not in refused]
        results: list[dict[str, Any]] = []
        if taken:
            results = (await super().put_records(**params | {"Records": taken}))["Records"]
        for index in sorted(refused):
            results.insert(index, {"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "rate"})
        return {"FailedRecordCount": len(refused), "Records": results}


def a_stream() -> Kinesis:
    """Return a service with one stream of one shard."""
    model = Kinesis(ManualClock())
    model.add_stream("orders", 1)
    return model


async def content(model: Kinesis) -> list[bytes]:
    """Return what is in the stream, in order."""
    source = KinesisSource(KinesisClient(model, ManualClock()), "orders", clock=ManualClock())
    fetched = await source.fetch(SHARD, await source.open(SHARD, TRIM_HORIZON), limit=10_000)
    return [record.data for record in fetched.records]


def some_entries(count: int) -> list[tuple[str, bytes]]:
    """Return entries with the payloads 0, 1, 2 and so on."""
    return [(f"key-{number}", b"%d" % number) for number in range(count)]


async def test_put_returns_a_place_for_each_record_in_order() -> None:
    """More records than one request takes go out as several; the places line up with what was given."""
    model = a_stream()
    client = FaultyClient(model, lambda _call, _payloads: set())
    placed = await StreamWriter(client, "orders", clock=PromptClock()).put(some_entries(1201))
    assert [len(payloads) for payloads in client.sent] == [500, 500, 201]
    numbers = [int(place.sequence_number) for place in placed]
    assert numbers == sorted(numbers)
    assert {place.shard_id for place in placed} == {SHARD}
    assert await content(model) == [data for _, data in some_entries(1201)]


async def test_put_sends_exactly_the_refused_records_again() -> None:
    """Records 2 and 5 fail twice: nothing else is sent again, and nothing is doubled."""
    model, clock = a_stream(), PromptClock()
    faults: dict[int, set[int]] = {1: {2, 5}, 2: {0, 1}}
    client = FaultyClient(model, lambda call, _payloads: faults.get(call, set()))
    placed = await StreamWriter(client, "orders", clock=clock).put(some_entries(7))
    assert client.sent == [[b"0", b"1", b"2", b"3", b"4", b"5", b"6"], [b"2", b"5"], [b"2", b"5"]]
    assert await content(model) == [b"0", b"1", b"3", b"4", b"6", b"2", b"5"]
    assert [int(placed[n].sequence_number) > int(placed[6].sequence_number) for n in (2, 5)] == [True, True]
    assert clock.slept_s == [0.1, 0.2]


async def test_put_names_what_could_not_be_put_and_keeps_its_content_to_itself() -> None:
    """A record that is refused for ever is reported by number, with the places of all others."""
    model = a_stream()
    client = FaultyClient(model, lambda _call, payloads: {payloads.index(b"3")} if b"3" in payloads else set())
    with pytest.raises(PutError, match="cannot put 1 of 5 records to 'orders'") as raised:
        await StreamWriter(client, "orders", clock=PromptClock()).put(
            [*some_entries(3), ("private", b"3"), ("k", b"4")]
        )
    assert raised.value.failed == (3,)
    assert [place is None for place in raised.value.placed] == [False, False, False, True, False]
    assert "private" not in str(raised.value)
    assert await content(model) == [b"0", b"1", b"2", b"4"]


class RaisingClient:
    """Raises what it is given, then takes everything."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.sent = list(errors), 0

    async def put_records(self, **params: Any) -> dict[str, Any]:
        self.sent += 1
        if self.errors:
            raise self.errors.pop(0)
        return {"Records": [{"ShardId": SHARD, "SequenceNumber": "1"} for _ in params["Records"]]}


async def test_put_tries_again_when_a_whole_request_fails() -> None:
    """Throttling and lost replies are repeated, with longer and longer pauses."""
    throttled = ClientError({"Error": {"Code": "ThrottlingException", "Message": "rate"}}, "PutRecords")
    clock, client = PromptClock(), RaisingClient(throttled, TimeoutError(), throttled)
    writer: Any = client
    assert await StreamWriter(writer, "orders", clock=clock).put([("key", b"data")]) == [Placed(SHARD, "1")]
    assert clock.slept_s == [0.1, 0.2, 0.4]


async def test_put_gives_up_at_once_when_repeating_cannot_help() -> None:
    """A wrong request fails as it is, and the records after it are not tried: all of them are named."""
    client: Any = RaisingClient(ParamValidationError(report="hidden"))
    with pytest.raises(PutError) as raised:
        await StreamWriter(client, "orders", clock=PromptClock()).put(some_entries(600))
    assert raised.value.failed == tuple(range(600))
    assert client.sent == 1


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([0] * 500, [(0, 500)]),
        ([0] * 501, [(0, 500), (500, 501)]),
        ([2**20 - 1] * 6, [(0, 5), (5, 6)]),
        ([2**20] * 5, [(0, 4), (4, 5)]),
        ([6 * 2**20, 0], [(0, 1), (1, 2)]),
    ],
)
async def test_batches_keep_to_the_limits_of_one_request(sizes: list[int], expected: list[tuple[int, int]]) -> None:
    """500 records or 5 MiB, keys included; a record above that goes alone, for AWS to judge."""
    assert list(batches([("k", bytes(size)) for size in sizes])) == expected
