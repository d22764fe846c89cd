"""A processor of single records that does as it is told, and notes what it sees."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kcl_py import Failure, OwnedShard, Record, RecordProcessor
from kcl_py.outcomes import RecordOutcome
from kcl_py.processor import Checkpointer, FailurePolicy
from kcl_py.records import SequenceNumber

Answer = Callable[[Record], RecordOutcome | Exception]


@dataclass
class Desk:
    """What the processors of one worker do and see."""

    work_s: dict[str, float] = field(default_factory=dict)
    """How long a record takes, by its number; else a hundredth of a second."""
    answers: dict[str, list[RecordOutcome | Exception]] = field(default_factory=dict)
    """What the attempts of a record end with, by its number, one after the other; then it is done."""
    policy: FailurePolicy | Exception | None = None
    seen: list[Record] = field(default_factory=list)
    spans: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    hooks: list[str] = field(default_factory=list)
    in_hand: set[str] = field(default_factory=set)
    most_in_hand: int = 0

    def processor(self) -> type[RecordProcessor]:
        """Make the processor's class."""
        desk = self

        class Lanes(RecordProcessor):
            async def initialize(self, shard: OwnedShard) -> None:
                desk.hooks.append("initialize")

            async def process(self, record: Record) -> RecordOutcome:
                return await desk.work(record)

            async def handle_failed(self, failure: Failure) -> FailurePolicy | None:
                desk.failures.append(failure)
                if isinstance(desk.policy, Exception):
                    raise desk.policy
                return desk.policy

            async def shutdown_requested(self, checkpointer: Checkpointer) -> None:
                desk.hooks.append("shutdown_requested")

            async def shard_ended(self, checkpointer: Checkpointer) -> None:
                desk.hooks.append("shard_ended")

            async def lease_lost(self) -> None:
                desk.hooks.append("lease_lost")

        return Lanes

    async def work(self, record: Record) -> RecordOutcome:
        """Do the work of one call."""
        number, loop = record.sequence_number, asyncio.get_running_loop()
        begun_at = loop.time()
        self.seen.append(record)
        self.in_hand.add(number)
        self.most_in_hand = max(self.most_in_hand, len(self.in_hand))
        try:
            await asyncio.sleep(self.work_s.get(number, 0.01))
        finally:
            self.in_hand.discard(number)
            self.spans.setdefault(number, []).append((begun_at, loop.time()))
        left = self.answers.get(number)
        answer = left.pop(0) if left else None
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            self.done.append(number)
        return answer

    def numbers(self) -> list[int]:
        """The numbers of all calls, in order."""
        return [int(record.sequence_number) for record in self.seen]


def keyed(keys: Iterable[str], *, first: int = 1, arrived_s: float = 0.0) -> list[Record]:
    """Make records with a partition key each, with consecutive numbers from ``first`` on."""
    return [Record(str(first + place), b"x", key, arrived_s) for place, key in enumerate(keys)]


def at(number: int) -> SequenceNumber:
    return SequenceNumber(number)
