"""``--data``: streams over a restart, a crash, a torn file and a full disk."""

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kcl_py.local.disk import MOST_OPEN, Disk
from kcl_py.local.errors import ModelError
from kcl_py.local.model import Kinesis
from tests.clocks import PromptClock
from tests.kcl_py.local.test_batches import disk_full_at, written
from tests.kcl_py.local.test_cli import failing, running
from tests.kcl_py.local.world import DELAY_S, World, boto

ROOT = "shardId-000000000000"
KEYED: dict[str, Any] = {
    "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
HOUR_S = 3600.0


class Kept(World):
    """A world in a folder."""

    def __init__(self, folder: Path, clock: PromptClock | None = None) -> None:
        self.clock, self.disk = clock or PromptClock(), Disk(folder)
        self.model = Kinesis(self.clock, archive=self.disk)
        self.model.adopt(self.disk.load("us-east-1", self.clock.now_s))
        if not self.model.has_stream("s"):
            self.model.add_stream("s", 1)

    def crash(self) -> None:
        """Let go of the folder without another word written."""
        for log in self.disk._logs.values():
            log.close()
        self.disk._lock.close()


def state(world: World) -> Any:
    """Return what a reader can see."""
    summary = world.call("DescribeStreamSummary", StreamName="s")
    consumers = world.call("ListStreamConsumers", StreamARN=summary["StreamDescriptionSummary"]["StreamARN"])
    shards = world.shards()
    return summary, consumers, shards, [world.read(shard["ShardId"]) for shard in shards]


def lived(folder: Path) -> Kept:
    """Return a world that has seen most of what can happen."""
    world = Kept(folder)
    world.put_many(700)
    world.split(ROOT)
    world.put_many(300, key="other")
    world.merge("shardId-000000000001", "shardId-000000000002")
    world.call("AddTagsToStream", StreamName="s", Tags={"a": "b"})
    arn = world.call("DescribeStreamSummary", StreamName="s")["StreamDescriptionSummary"]["StreamARN"]
    world.call("RegisterStreamConsumer", StreamARN=arn, ConsumerName="c")
    world.call("IncreaseStreamRetentionPeriod", StreamName="s", RetentionPeriodHours=48)
    world.settle()
    world.put(b"last", key="é")
    return world


@pytest.mark.parametrize("ending", ["stop", "crash"])
def test_all_of_a_stream_is_there_after_a_restart(tmp_path: Path, ending: str) -> None:
    """Shards, records, numbers, consumers, settings; old iterators too, and numbers go on."""
    world = lived(tmp_path)
    before, iterator = state(world), world.iterator("shardId-000000000003")
    last = world.put(b"later")["SequenceNumber"]
    after_last = state(world)
    if ending == "stop":
        world.disk.close()
    else:
        world.crash()
    with closing(Kept(tmp_path, world.clock).disk) as disk:
        again = Kept.__new__(Kept)
        again.clock, again.model, again.disk = world.clock, Kinesis(world.clock, archive=disk), disk
        again.model.adopt(disk.load("us-east-1", world.clock.now_s))
        assert state(again) == after_last != before
        assert again.get(iterator)["Records"][-1].sequence_number == last
        assert int(again.put()["SequenceNumber"]) > int(last)


def test_change_under_way_is_done_after_a_restart(tmp_path: Path) -> None:
    """Nothing hangs between two states."""
    world = Kept(tmp_path)
    world.call("SplitShard", StreamName="s", ShardToSplit=ROOT, NewStartingHashKey="1000")
    world.crash()
    again = Kept(tmp_path, world.clock)
    again.settle()
    assert len(again.open_ids()) == 2
    again.disk.close()


@pytest.mark.parametrize("lost", [1, 5, 30])
def test_batch_that_was_half_written_is_not_there_and_those_before_it_are(tmp_path: Path, lost: int) -> None:
    """And what is put after it stays."""
    world = Kept(tmp_path)
    world.put(b"whole")
    world.put_many(10)
    world.crash()
    [path] = tmp_path.glob("s.*/*.records")
    path.write_bytes(path.read_bytes()[:-lost])
    again = Kept(tmp_path, world.clock)
    assert [record.data for record in again.read()] == [b"whole"]
    again.put(b"after")
    again.crash()
    third = Kept(tmp_path, world.clock)
    assert [record.data for record in third.read()] == [b"whole", b"after"]
    third.disk.close()


def test_files_do_not_outlive_what_is_in_them(tmp_path: Path) -> None:
    """Full files go with the retention of their records, all of them with their stream."""
    world = Kept(tmp_path)
    for _ in range(40):
        world.put(b"x" * (2**20 - 1))
    full = sum(path.stat().st_size for path in tmp_path.glob("s.*/*"))
    world.clock.now_s += 25 * HOUR_S
    end = world.put(b"young")["SequenceNumber"]
    world.call("AddTagsToStream", StreamName="s", Tags={"a": "b"})
    left = sum(path.stat().st_size for path in tmp_path.glob("s.*/*"))
    assert full > 40 * 2**20 > 17 * 2**20 > left
    world.disk.close()
    again = Kept(tmp_path, world.clock)
    assert [record.sequence_number for record in again.read()] == [end]
    again.call("DeleteStream", StreamName="s")
    again.settle()
    assert again.call("ListStreams")["StreamNames"] == []
    again.disk.close()
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


@pytest.mark.parametrize("is_half_gone", [False, True])
def test_deletion_under_way_is_done_after_a_restart(tmp_path: Path, is_half_gone: bool) -> None:
    """Of the stream and of its files, also if the process was killed between the two."""
    world = Kept(tmp_path)
    world.put()
    world.call("DeleteStream", StreamName="s")
    world.crash()
    if is_half_gone:
        [saved] = tmp_path.glob("s.*/stream.json")
        saved.unlink()
    with closing(Disk(tmp_path)) as disk:
        assert disk.load("us-east-1", world.clock.now_s) == []
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_many_streams_are_written_to_with_few_open_files(tmp_path: Path) -> None:
    """A process may have a thousand; and each goes on in its own."""
    world = Kept(tmp_path)
    names = [f"stream-{number}" for number in range(MOST_OPEN + 20)]
    for name in names:
        world.model.add_stream(name, 1)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(2):
        for name in names:
            world.call("PutRecord", StreamName=name, Data=str(number).encode(), PartitionKey="k")
    assert len(os.listdir("/proc/self/fd")) <= before + MOST_OPEN
    world.crash()
    again = Kept(tmp_path, world.clock)
    for name in names:
        start = {"StreamName": name, "ShardId": ROOT, "ShardIteratorType": "TRIM_HORIZON"}
        found = again.get(again.call("GetShardIterator", **start)["ShardIterator"])["Records"]
        assert [record.data for record in found] == [b"0", b"1"]
    again.disk.close()


def test_folder_keeps_what_is_not_ours(tmp_path: Path) -> None:
    """Whatever a user has beside it."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    world = Kept(tmp_path)
    world.call("DeleteStream", StreamName="s")
    world.settle()
    world.disk.close()
    assert (tmp_path / "mine" / "file").read_text() == "x"


def test_numbers_go_on_where_all_records_were_trimmed(tmp_path: Path) -> None:
    """No number is given twice, though nothing on disk has the old ones."""
    world = Kept(tmp_path)
    world.put_many(500)
    last = world.read()[-1].sequence_number
    world.clock.now_s += 25 * HOUR_S
    world.disk.close()
    again = Kept(tmp_path, world.clock)
    after = {"StreamName": "s", "ShardId": ROOT, "ShardIteratorType": "AFTER_SEQUENCE_NUMBER"}
    assert again.call("GetShardIterator", **after, StartingSequenceNumber=last)
    assert again.read() == []
    assert int(again.put()["SequenceNumber"]) > int(last)
    again.disk.close()


def test_nothing_is_put_while_the_disk_is_full_and_all_goes_on_afterwards(tmp_path: Path) -> None:
    """A record that could not be kept is not read, and its number is free; reading goes on."""
    world = Kept(tmp_path)
    world.put(b"before")
    with disk_full_at(1000):
        for _ in range(3):
            with pytest.raises(ModelError, match="InternalFailureException: cannot write to the folder of --data"):
                world.put(b"x" * 2000)
        assert [record.data for record in world.read()] == [b"before"]
    world.put(b"after")
    seen = state(world)
    assert [record.data for record in world.read()] == [b"before", b"after"]
    world.crash()
    again = Kept(tmp_path, world.clock)
    assert state(again) == seen
    again.disk.close()


def test_change_that_cannot_be_kept_is_shown_to_nobody_until_it_can_be(tmp_path: Path) -> None:
    """Neither to a subscription, which ends with an error of AWS's."""
    world = Kept(tmp_path)
    arn = world.call("DescribeStreamSummary", StreamName="s")["StreamDescriptionSummary"]["StreamARN"]
    consumer = world.call("RegisterStreamConsumer", StreamARN=arn, ConsumerName="c")["Consumer"]["ConsumerARN"]
    world.settle()
    start = {"ConsumerARN": consumer, "ShardId": ROOT, "StartingPosition": {"Type": "LATEST"}}
    subscription = world.call("SubscribeToShard", **start)["EventStream"]
    split = {"StreamName": "s", "ShardToSplit": ROOT, "NewStartingHashKey": "1000"}
    with disk_full_at(100):
        for operation, params in (("SplitShard", split), ("ListShards", {"StreamName": "s"})):
            with pytest.raises(ModelError, match="InternalFailureException"):
                world.call(operation, **params)
        world.settle()
        with pytest.raises(ModelError, match="InternalFailureException"):
            subscription.event(world.clock.now_s)
        world.disk.tables.close()
        [saved] = tmp_path.glob("s.*/stream.json")
        assert b'"change":null' in saved.read_bytes()
    assert len(world.open_ids()) == 2
    world.crash()
    again = Kept(tmp_path, world.clock)
    assert len(again.open_ids()) == 2
    again.disk.close()


def test_looking_at_streams_writes_nothing(tmp_path: Path) -> None:
    """Or a worker that lists shards would keep the disk busy."""
    world = Kept(tmp_path)
    world.put()
    state(world)
    [saved] = tmp_path.glob("s.*/stream.json")
    before = saved.stat().st_ino
    state(world)
    world.call("ListStreams")
    assert saved.stat().st_ino == before
    world.disk.close()


def test_shard_that_goes_with_the_change_under_way_hinders_no_restart(tmp_path: Path) -> None:
    """It was closed exactly as long ago as the stream keeps its records."""
    world = Kept(tmp_path)
    world.split(ROOT)
    world.clock.now_s += 24 * HOUR_S - DELAY_S / 2
    cut = sum(world.hash_range("shardId-000000000001")) // 2
    world.call("SplitShard", StreamName="s", ShardToSplit="shardId-000000000001", NewStartingHashKey=str(cut))
    world.crash()
    again = Kept(tmp_path, world.clock)
    again.settle()
    assert len(again.open_ids()) == 3
    again.disk.close()


def test_kcl_local_finds_its_data_again_after_it_was_killed(tmp_path: Path) -> None:
    """With the records and items that were answered, and --stream given again."""
    arguments = ("--port", "0", "--stream", "flights:2", "--data", str(tmp_path / "new"))
    with running(*arguments) as (process, line), boto("kinesis", line.split()[1]) as client:
        number = client.put_record(StreamName="flights", Data=b"x", PartitionKey="k")["SequenceNumber"]
        with boto("dynamodb", line.split()[1]) as tables:
            tables.create_table(TableName="leases", **KEYED)
            tables.get_waiter("table_exists").wait(TableName="leases", WaiterConfig={"Delay": 0.01})
            tables.put_item(TableName="leases", Item={"k": {"S": "a"}, "b": {"B": b"\xff"}})
        code, errors = failing("--port", "0", "--data", str(tmp_path / "new"))
        assert (code, "another kcl local uses it" in errors) == (2, True)
        process.kill()
    with running(*arguments, "--realistic") as (process, line), boto("kinesis", line.split()[1]) as client:
        found = []
        for shard in client.list_shards(StreamName="flights")["Shards"]:
            start = client.get_shard_iterator(
                StreamName="flights", ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )
            found += client.get_records(ShardIterator=start["ShardIterator"])["Records"]
        assert [record["SequenceNumber"] for record in found] == [number]
        with boto("dynamodb", line.split()[1]) as tables:
            assert tables.scan(TableName="leases")["Items"] == [{"k": {"S": "a"}, "b": {"B": b"\xff"}}]
        process.terminate()
        assert process.wait(20) == 0
        assert process.stderr
        assert process.stderr.read() == ""


def a_file(folder: Path) -> None:
    folder.write_text("x")


def a_file_of_another_kind(folder: Path) -> None:
    (folder / "s.0000000001").mkdir(parents=True)
    (folder / "s.0000000001" / "stream.json").write_text("[]")


def a_folder_in_place_of_a_file(folder: Path) -> None:
    (folder / "s.0000000001" / "stream.json").mkdir(parents=True)


def damaged_tables(folder: Path) -> None:
    (folder / "tables").mkdir(parents=True)
    path = written(folder / "tables" / "0000000001.journal", b"x" * 20, b"second")
    path.write_bytes(b"?" + path.read_bytes()[1:])


@pytest.mark.parametrize("make", [a_file, a_file_of_another_kind, a_folder_in_place_of_a_file, damaged_tables])
def test_data_that_cannot_be_used_is_one_error_line_and_exit_2(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """And nothing of it is touched."""
    make(tmp_path / "data")
    before = [(path, path.stat().st_size) for path in sorted(tmp_path.rglob("*"))]
    code, errors = failing("--port", "0", "--data", str(tmp_path / "data"))
    assert (code, errors.count("\n"), errors.startswith("error: cannot ")) == (2, 1, True)
    after = [(path, path.stat().st_size) for path in sorted(tmp_path.rglob("*")) if path.name != "lock"]
    assert [path for path in after if path[0].is_file()] == [path for path in before if path[0].is_file()]


def test_start_on_a_full_disk_is_one_error_line_and_exit_2(tmp_path: Path) -> None:
    """What is there stays."""
    world = Kept(tmp_path)
    before = state(world)
    world.crash()
    with disk_full_at(10):
        code, errors = failing("--port", "0", "--data", str(tmp_path), "--stream", "another:1")
    assert (code, errors.count("\n"), "cannot write to the folder of --data: File too large" in errors) == (2, 1, True)
    again = Kept(tmp_path, world.clock)
    assert state(again) == before
    again.disk.close()
