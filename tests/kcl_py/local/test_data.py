"""``--data``: streams over a restart, a crash and a torn file."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kcl_py.local.disk import Disk
from kcl_py.local.model import Kinesis
from tests.clocks import PromptClock
from tests.kcl_py.local.test_cli import failing, running
from tests.kcl_py.local.world import World, boto

ROOT = "shardId-000000000000"
HOUR_S = 3600.0


class Kept(World):
    """A world in a folder."""

    def __init__(self, folder: Path, clock: PromptClock | None = None) -> None:
        self.clock, self.disk = clock or PromptClock(), Disk(folder)
        self.model = Kinesis(self.clock, archive=self.disk)
        self.model.adopt(self.disk.load("us-east-1"))
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
        again.model.adopt(disk.load("us-east-1"))
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
    again.disk.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "streams.json"]


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


def test_kcl_local_finds_its_streams_again_after_it_was_killed(tmp_path: Path) -> None:
    """With the records that were answered, and --stream given again."""
    arguments = ("--port", "0", "--stream", "flights:2", "--data", str(tmp_path / "new"))
    with running(*arguments) as (process, line), boto("kinesis", line.split()[1]) as client:
        number = client.put_record(StreamName="flights", Data=b"x", PartitionKey="k")["SequenceNumber"]
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
        process.terminate()
        assert process.wait(20) == 0


def test_data_that_cannot_be_used_is_one_error_line_and_exit_2(tmp_path: Path) -> None:
    """A file in its place, or a file of another kind in it."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "streams.json").write_text("[]")
    for folder in ("file", "other"):
        code, errors = failing("--port", "0", "--data", str(tmp_path / folder))
        assert (code, errors.count("\n"), errors.startswith("error: cannot ")) == (2, 1, True)
