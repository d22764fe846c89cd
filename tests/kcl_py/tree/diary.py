"""What the processors of a whole fleet saw, and the laws that it must obey whatever happened to the workers.

Instants are seconds of the simulation.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from actors import Clock
from kcl_py import RecordProcessor
from kcl_py.processor import Checkpointer, OwnedShard
from kcl_py.records import Record, RecordBatch, Redelivery

Work = Callable[[RecordBatch, Checkpointer], Awaitable[None]]
"""What a processor does with a batch."""
FOREVER = float("inf")


@dataclass
class Handover:
    """One call of ``process_records``."""

    worker: str
    shard_id: str
    epoch: int
    life: int
    """Tells processors apart: an ownership has a second one after a handoff that was called off."""
    records: list[Record]
    redelivery: Redelivery | None
    begun_at: float
    ended_at: float = FOREVER
    is_done: bool = False

    @property
    def data(self) -> list[bytes]:
        return [record.data for record in self.records]


@dataclass(frozen=True)
class HookCall:
    """One call of a hook other than ``process_records``."""

    worker: str
    shard_id: str
    epoch: int
    hook: str
    at: float


@dataclass
class Diary:
    """All calls of all hooks, in order."""

    clock: Clock
    work_s: float = 0.02
    handovers: list[Handover] = field(default_factory=list)
    hooks: list[HookCall] = field(default_factory=list)
    done: set[bytes] = field(default_factory=set)
    """Payloads of all records whose processing has returned."""

    def processor(self, worker: str, work: Work | None = None) -> type[RecordProcessor]:
        """Make the processor class of one worker."""
        diary = self

        class Recorder(RecordProcessor):
            shard: OwnedShard
            life = 0

            async def initialize(self, shard: OwnedShard) -> None:
                self.shard, self.life = shard, len(diary.hooks)
                self._note("initialize")

            async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
                handover = Handover(
                    worker,
                    batch.shard_id,
                    self.shard.epoch,
                    self.life,
                    batch.records,
                    batch.redelivery,
                    diary.clock.monotonic(),
                )
                diary.handovers.append(handover)
                try:
                    await (work(batch, checkpointer) if work else diary.clock.sleep(diary.work_s))
                    handover.is_done = True
                    diary.done.update(handover.data)
                finally:
                    handover.ended_at = diary.clock.monotonic()

            async def lease_lost(self) -> None:
                self._note("lease_lost")

            async def shard_ended(self, checkpointer: Checkpointer) -> None:
                self._note("shard_ended")

            async def shutdown_requested(self, checkpointer: Checkpointer) -> None:
                self._note("shutdown_requested")

            def _note(self, hook: str) -> None:
                shard = self.shard
                diary.hooks.append(HookCall(worker, shard.shard_id, shard.epoch, hook, diary.clock.monotonic()))

        return Recorder

    def died(self, worker: str) -> None:
        """Note that what a worker had in hand has ended with it."""
        for handover in self.handovers:
            if handover.worker == worker and handover.ended_at == FOREVER:
                handover.ended_at = self.clock.monotonic()

    def of(self, shard_id: str) -> list[Handover]:
        """Return the hand-overs of one shard."""
        return [handover for handover in self.handovers if handover.shard_id == shard_id]

    def called(self, hook: str, *, worker: str | None = None, shard_id: str | None = None) -> list[HookCall]:
        """Return the calls of a hook."""
        return [
            call
            for call in self.hooks
            if call.hook == hook and worker in (None, call.worker) and shard_id in (None, call.shard_id)
        ]


def check_order(handovers: Sequence[Handover], truth: Sequence[bytes]) -> None:
    """Records of a shard come in its order: a processor goes on where it is, and none begins beyond a gap."""
    at = {data: index for index, data in enumerate(truth)}
    reached, next_of = -1, dict[tuple[str, int, int], int]()
    for handover in handovers:
        indices = [at[data] for data in handover.data]
        assert indices == list(range(indices[0], indices[0] + len(indices))), f"records out of order: {handover}"
        assert indices[0] <= reached + 1, f"records {reached + 1} to {indices[0] - 1} were passed over: {handover}"
        life = (handover.worker, handover.epoch, handover.life)
        if life in next_of and handover.redelivery is None:
            assert indices[0] == next_of[life], f"a processor did not go on where it was: {handover}"
        next_of[life] = indices[-1] + 1
        reached = max(reached, indices[-1])


def check_parents_first(handovers: Sequence[Handover], parents: Mapping[str, Sequence[str]]) -> None:
    """No record of a child is handed over before the last hand-over of its parents has ended."""
    for handover in handovers:
        for parent in parents[handover.shard_id]:
            for before in (each for each in handovers if each.shard_id == parent):
                assert before.ended_at <= handover.begun_at, f"{before} is later than its child's {handover}"


def check_disjoint(handovers: Sequence[Handover]) -> None:
    """The intervals of two ownerships of one shard, first hand-over to last end, do not overlap."""
    spans: dict[tuple[str, int], tuple[float, float]] = {}
    for handover in handovers:
        ownership = (handover.worker, handover.epoch)
        begun_at, ended_at = spans.get(ownership, (handover.begun_at, handover.ended_at))
        spans[ownership] = (min(begun_at, handover.begun_at), max(ended_at, handover.ended_at))
    for (one, before), (other, after) in pairwise(sorted(spans.items(), key=lambda each: each[1])):
        assert before[1] <= after[0], f"{one} until {before[1]} and {other} from {after[0]} overlap"
