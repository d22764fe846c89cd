"""Lives of a query in a pure world: records, splits and merges, a tree that reads, a Spark that crashes at any time.

The world knows nothing of the rules under test: it reads ranges as Kinesis would and keeps Spark's log. Records are
numbered through all shards, and a record's number is also its time.
"""

import json
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from kcl_py.leases.row import SHARD_END, LeaseRow
from kcl_py.records import SequenceNumber
from kcl_py.sources.source import ShardInfo
from spark_bridge.offsets import Mark, Offset, Reach, check_forward
from spark_bridge.plan import Segment, Strand, plan_end, plan_ranges, release
from spark_bridge.seed import children_of, first_offset, seed

SHARDS = 12
"""Most shards of a life; enough for three generations."""


@dataclass
class FakeShard:
    """A shard of the world."""

    info: ShardInfo
    numbers: list[int] = field(default_factory=list)
    closed: bool = False


class FakeTree:
    """Delivers what follows its lease rows, parents first, in segments of any size."""

    def __init__(self, world: dict[str, FakeShard], offset: Offset) -> None:
        begin = seed(offset, [shard.info for shard in world.values()])
        assert begin.lost == ()
        self.world, self.strands, self.rows = world, begin.strands, {row.key: row for row in begin.rows}
        self.read: dict[str, int] = {}

    def readable(self) -> list[str]:
        """Shards that a worker may read now; a parent without a row is still to be read."""
        ended = {key for key, row in self.rows.items() if row.has_ended}
        return [key for key, row in sorted(self.rows.items()) if key not in ended and ended.issuperset(row.parents)]

    def deliver(self, shard_id: str, count: int, *, knows_children: bool) -> None:
        """Spool the next ``count`` records of a shard, or its end."""
        row, shard = self.rows[shard_id], self.world[shard_id]
        strand = self.strands.setdefault(shard_id, Strand())
        strand.parents = shard.info.parents
        start = row.position.value if row.position else row.native.start_ms or 0
        after = self.read.setdefault(shard_id, start)
        numbers = [number for number in shard.numbers if number > after][:count]
        if numbers:
            first, last = SequenceNumber(numbers[0]), SequenceNumber(numbers[-1])
            strand.segments.append(Segment(shard_id, first, last, len(numbers), len(numbers), float(numbers[0])))
            self.read[shard_id] = numbers[-1]
        elif shard.closed:
            children = children_of(shard_id, [other.info for other in self.world.values()])
            strand.has_ended, strand.children = True, children if knows_children else None
            self.rows[shard_id] = LeaseRow(shard_id, checkpoint=SHARD_END)
            for child in children:
                self.rows.setdefault(child, LeaseRow(child, parents=self.world[child].info.parents))


class Life(RuleBasedStateMachine):
    """One query over one stream, with everything that can happen between its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.world: dict[str, FakeShard] = {}
        self.number = 0
        self.seen: list[int] = []
        self.tree: FakeTree | None = None

    @initialize(shards=st.integers(1, 3), history=st.lists(st.integers(0, 99), max_size=3), is_latest=st.booleans())
    def begin(self, shards: int, history: list[int], *, is_latest: bool) -> None:
        """Begin at the oldest record, or behind the newest of a stream that has been split before."""
        for _ in range(shards):
            self.add(())
        for pick in history:
            self.put(pick, 2)
            self.split(pick)
        self.since = self.number if is_latest else 0
        listed = [shard.info for shard in self.world.values() if not (is_latest and shard.closed)]
        self.at = self.logged = first_offset(listed, self.since)

    def add(self, parents: tuple[str, ...]) -> None:
        shard_id = f"s{len(self.world):02}"
        self.world[shard_id] = FakeShard(ShardInfo(shard_id, parents))

    def open_shards(self) -> list[str]:
        return [shard_id for shard_id, shard in self.world.items() if not shard.closed]

    @rule(pick=st.integers(0, 99), count=st.integers(1, 5))
    def put(self, pick: int, count: int) -> None:
        open_shards = self.open_shards()
        for _ in range(count):
            self.number += 1
            self.world[open_shards[pick % len(open_shards)]].numbers.append(self.number)

    @precondition(lambda self: len(self.world) + 2 <= SHARDS)
    @rule(pick=st.integers(0, 99))
    def split(self, pick: int) -> None:
        open_shards = self.open_shards()
        parent = open_shards[pick % len(open_shards)]
        self.world[parent].closed = True
        self.add((parent,))
        self.add((parent,))

    @precondition(lambda self: len(self.world) < SHARDS and len(self.open_shards()) > 1)
    @rule(pick=st.integers(0, 99))
    def merge(self, pick: int) -> None:
        open_shards = self.open_shards()
        index = pick % (len(open_shards) - 1)
        parents = tuple(open_shards[index : index + 2])
        for parent in parents:
            self.world[parent].closed = True
        self.add(parents)

    @rule(pick=st.integers(0, 99), count=st.integers(1, 4), knows_children=st.booleans())
    def deliver(self, pick: int, count: int, *, knows_children: bool) -> None:
        self.tree = self.tree or FakeTree(self.world, self.logged)
        readable = self.tree.readable()
        if readable:
            self.tree.deliver(readable[pick % len(readable)], count, knows_children=knows_children)

    @rule(max_rows=st.none() | st.integers(1, 6), crash=st.booleans())
    def batch(self, max_rows: int | None, *, crash: bool) -> None:
        """Plan from what is finished, log the end, then crash or run the tasks."""
        self.tree = self.tree or FakeTree(self.world, self.at)
        release(self.at, self.tree.strands)
        self.logged = plan_end(self.at, self.tree.strands, max_rows=max_rows)
        check_forward(self.at, self.logged)
        if crash:
            self.tree = None
        self.run_tasks()

    @rule()
    def crash(self) -> None:
        """Lose everything but Spark's log."""
        self.tree = None

    def run_tasks(self) -> None:
        """Read the batch from its start to its logged end, as Kinesis holds it or as it was spooled."""
        start, end = (Offset.parse(json.loads(json.dumps(offset.to_json()))) for offset in (self.at, self.logged))
        ranges = plan_ranges(start, end, self.tree.strands if self.tree else {})
        shards = {item.shard_id for item in ranges}
        for item in ranges:
            shard = self.world[item.shard_id]
            assert shards.isdisjoint(shard.info.parents), "a parent and its child share a batch"
            numbers = [n for n in shard.numbers if item.start < Mark.after(SequenceNumber(n)) <= item.end]
            if item.start.reach is Reach.SINCE:
                numbers = [number for number in numbers if number > item.start.value]
            if item.segments is not None:
                assert sum(segment.rows for segment in item.segments) == len(numbers)
            self.seen += numbers
        self.at = self.logged

    def teardown(self) -> None:
        """When nothing new happens, everything arrives, once, and the offset is small again."""
        for _ in range(20 * SHARDS):
            self.batch(None, crash=False)
            assert self.tree is not None
            for shard_id in self.tree.readable():
                self.tree.deliver(shard_id, 100, knows_children=True)
        assert sorted(self.seen) == list(range(self.since + 1, self.number + 1))
        for shard in self.world.values():
            assert [number for number in self.seen if number in shard.numbers] == [
                number for number in shard.numbers if number > self.since
            ]
        assert all(shard_id in self.open_shards() or self.at[shard_id].has_ended for shard_id in self.at)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=150, stateful_step_count=40, deadline=None, derandomize=True)
