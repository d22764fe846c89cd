"""What a test does to a fake stream, and sees of it."""

import pytest

from actors import Node
from kcl_py import Checkpointer, ConfigError, OwnedShard, RecordBatch, RecordProcessor, Stream
from kcl_py.dead_letters import DeadLetterError
from kcl_py.local.errors import ModelError
from kcl_py.testing import FakeStream, ManualClock, record
from tests.kcl_py.dead_letters.places import a_letter

FIRST = "shardId-000000000000"


class Notes(RecordProcessor):
    """Notes what it is given, in a list of the test's."""

    heard: list[bytes]
    shards: list[str]

    async def initialize(self, shard: OwnedShard) -> None:
        self.shards.append(shard.shard_id)

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        self.heard.extend(each.data for each in batch)


def notes() -> type[Notes]:
    """Return the class with lists of its own."""
    return type("Notes", (Notes,), {"heard": [], "shards": []})


def test_put_returns_the_records_as_they_are_on_the_stream() -> None:
    """Data, key, place and time; a record without a key gets one of its own."""
    stream = FakeStream(clock=ManualClock(time=1_800_000_000.0))
    put = stream.put("a", b"b", record("c", key="x"))
    assert stream.records(FIRST) == put
    assert [each.data for each in put] == [b"a", b"b", b"c"]
    assert [each.partition_key for each in put] == ["key-0", "key-1", "x"]
    assert [each.position for each in put] == sorted(each.position for each in put)
    assert {each.arrived_s for each in put} == {1_800_000_000.0}


def test_put_takes_as_many_records_as_come() -> None:
    """Also more than one request holds."""
    stream = FakeStream(shards=3)
    put = stream.put(*(str(number) for number in range(1201)))
    assert len(put) == len({each.sequence_number for each in put}) == 1201
    assert sum(len(stream.records(shard_id)) for shard_id in stream.shards) == 1201


def test_put_refuses_what_aws_refuses() -> None:
    """At the test's own fault, in AWS's words."""
    with pytest.raises(ModelError, match="ValidationException"):
        FakeStream().put(b"x" * (11 * 1024 * 1024))


def test_split_and_merge_close_shards_and_open_others_at_once() -> None:
    """With their parents; records go to those that are open."""
    stream = FakeStream()
    before = stream.put(record("before", hash_key=0))
    low, high = stream.split(FIRST)
    assert stream.open_shards == [low, high]
    assert stream.parents(low) == stream.parents(high) == [FIRST]
    lower = stream.put(record("lower", hash_key=0))
    merged = stream.merge(low, high)
    assert stream.shards == [FIRST, low, high, merged]
    assert stream.open_shards == [merged]
    assert stream.parents(merged) == [low, high]
    after = stream.put("after")
    assert [stream.records(each) for each in stream.shards] == [before, lower, [], after]


def test_end_closes_every_open_shard() -> None:
    """Each is followed by two."""
    stream = FakeStream(shards=2)
    parents = stream.open_shards
    assert stream.end() == stream.open_shards
    assert [stream.parents(child) for child in stream.open_shards] == [[parents[0]]] * 2 + [[parents[1]]] * 2


@pytest.mark.parametrize("shard_id", ["shardId-000000000009", FIRST])
def test_split_of_a_shard_that_is_not_open_is_refused(shard_id: str) -> None:
    """One that does not exist, and one that is closed."""
    stream = FakeStream()
    stream.split(FIRST)
    with pytest.raises(ModelError, match=shard_id):
        stream.split(shard_id)


def test_lease_that_nobody_has_made_cannot_be_taken() -> None:
    """The sentence says what to do."""
    with pytest.raises(ValueError, match=f"cannot take the lease on '{FIRST}': .* let a worker run first"):
        FakeStream().take_lease(FIRST)


def test_configuration_takes_the_options_of_the_file() -> None:
    """Over defaults that fit the stream; a wrong one is refused."""
    config = FakeStream(name="orders").config(checkpoint={"mode": "manual"}, grace_s=3)
    assert (config.stream, config.checkpoint.mode, config.grace_s) == ("orders", "manual", 3.0)
    with pytest.raises(ConfigError, match="grace"):
        FakeStream().config(grace=3)


@pytest.mark.asyncio
async def test_worker_runs_on_time_that_only_the_test_moves() -> None:
    """It reads at once, looks again after its pause, and stores with its heartbeats."""
    stream, processor = FakeStream(), notes()
    stream.put("a")
    async with stream.worker(processor) as worker:
        await stream.clock.advance(0)
        assert processor.heard == [b"a"]
        assert stream.checkpoints == {FIRST: "TRIM_HORIZON"}
        [b] = stream.put("b")
        await stream.clock.advance(0.9)
        assert processor.heard == [b"a"]
        await stream.clock.advance(0.2)
        assert processor.heard == [b"a", b"b"]
        await stream.clock.advance(3.4)
        assert stream.checkpoints == {FIRST: b.sequence_number}
        assert isinstance(worker.tree(), Node)
    assert stream.checkpoints == {FIRST: b.sequence_number}


@pytest.mark.asyncio
async def test_clients_serve_a_stream_that_is_opened_by_hand() -> None:
    """As the configuration says."""
    stream, processor = FakeStream(), notes()
    config = stream.config(app="another-app")
    stream.put("a")
    async with Stream(config, processor=processor, clients=stream.clients(config), clock=stream.clock):
        await stream.clock.advance(0)
    assert processor.heard == [b"a"]
    assert stream.checkpoints == {}
    assert stream.service.leases(config).rows()[FIRST].position is not None


@pytest.mark.asyncio
async def test_two_workers_share_the_shards_of_a_stream() -> None:
    """The second pulls its part, whoever stops hands over, and each record arrives once."""
    stream, ours, theirs = FakeStream(shards=4), notes(), notes()
    payloads = [str(number).encode() for number in range(40)]
    async with stream.clock.passing(), stream.worker(ours):
        await stream.clock.sleep(5)
        async with stream.worker(theirs):
            await stream.clock.sleep(30)
            stream.put(*payloads)
            await stream.clock.sleep(5)
        assert len(theirs.shards) == 2
    assert sorted(ours.heard + theirs.heard) == sorted(payloads)
    assert theirs.heard


@pytest.mark.asyncio
async def test_worker_finds_out_that_its_lease_was_taken() -> None:
    """With its next heartbeat; once the other's has expired it takes the shard again."""
    stream, processor = FakeStream(), notes()
    async with stream.clock.passing(), stream.worker(processor):
        await stream.clock.sleep(5)
        stream.take_lease(FIRST)
        await stream.clock.sleep(4)
        stream.put("a")
        await stream.clock.sleep(2)
        assert (processor.shards, processor.heard) == ([FIRST], [])
        await stream.clock.sleep(10)
    assert (processor.shards, processor.heard) == ([FIRST, FIRST], [b"a"])


def test_all_shards_of_a_large_stream_are_shown() -> None:
    """More than one answer of ListShards holds: a run waits for each of them."""
    assert len(FakeStream(shards=1001).shards) == 1001


@pytest.mark.asyncio
async def test_dead_letters_of_workers_are_in_the_stream_wherever_they_go() -> None:
    """No network in a test; what a dead worker sends is lost, and who has no destination gets none."""
    stream, letter = FakeStream(), a_letter()
    config = stream.config(delivery={"on_failure": "dead_letter", "dead_letter": "s3://failures"})
    line = stream.service.line()
    letters = stream.service.clients(config, stream.name, line).dead_letters
    assert letters is not None
    await letters.store(letter)
    line.is_cut = True
    with pytest.raises(DeadLetterError):
        await letters.store(letter)
    assert stream.dead_letters == [letter]
    assert stream.clients().dead_letters is None
