"""The processors of a simulated fleet: as slow and as faulty as the plan says, and they note all that they see."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from typing import ClassVar

from kcl_py import Batched, Batcher, Once, RecordProcessor
from kcl_py.dead_letters import DeadLetter, DeadLetterError
from kcl_py.effects import Update
from kcl_py.errors import CheckpointFailedError, LeaseLostError
from kcl_py.executors.hosted import is_own
from kcl_py.outcomes import BatchOutcome, RecordOutcome, Reject, Retry, ToBatch, Verdict
from kcl_py.processor import Checkpointer, Failure, FailurePolicy, OwnedShard
from kcl_py.records import Record, RecordBatch, Redelivery
from tests.sim.history import History
from tests.sim.plan import GATHERED_S, Form, Work
from tests.sim.services import EFFECTS, MARKERS, number_of

WORK_S = 0.03
"""The longest that a batch takes a processor in good health."""
SLOW_S = 4.0
LONG_S, LONG_CHANCE = 60.0, 0.1
"""Of what is slow, some takes longer than handoffs, stops and leases may; it ends when the faults do."""
PUT_OFF_S = 8.0
"""The longest that a record is put off."""
BATCHER = "gathered"
MARKED_S = 604_800.0
"""Longer than any life, and than a clock jumps."""
FINAL_CHANCE = 0.1
"""Of a dead letter that is not stored to be one that never can be."""


class Storm:
    """What the processors of a fleet have in common."""

    def __init__(self, finished: set[int]) -> None:
        self.is_on = True
        """Whether things go wrong at present."""
        self.finished = finished
        """Numbers of the records that some processor has finished; shared with who has them read again."""


class Day:
    """What one worker's life has in store for its processors.

    Args:
        life: its name.
        on_failure: what happens with a record that is given up, unless a processor chooses.
        must_save: whether nothing is stored that a processor does not ask for.
    """

    def __init__(
        self,
        life: str,
        work: Work,
        form: Form,
        storm: Storm,
        history: History,
        draw: random.Random,
        *,
        on_failure: FailurePolicy,
        must_save: bool,
    ) -> None:
        self.life, self.work, self.form, self.on_failure, self.must_save = life, work, form, on_failure, must_save
        self.storm, self.history, self.draw = storm, history, draw
        self.numbers = count()
        self.given_up: dict[int, dict[str, object]] = {}
        """In which ownership each record was."""

    def happens(self, chance: float) -> bool:
        return self.storm.is_on and chance > 0 and self.draw.random() < chance

    async def go_by(self) -> None:
        """Take some time, and sometimes fail."""
        left_s = self.draw.uniform(0, WORK_S)
        if self.happens(self.work.slow):
            left_s = self.draw.uniform(0, LONG_S if self.happens(LONG_CHANCE) else SLOW_S)
        while left_s > SLOW_S and self.storm.is_on:
            left_s -= SLOW_S
            await asyncio.sleep(SLOW_S)
        await asyncio.sleep(min(left_s, SLOW_S))
        self.fail()

    def fail(self) -> None:
        """Sometimes do."""
        if self.happens(self.work.fails):
            raise ValueError("the plan says so")

    def away(self, record: Record) -> ToBatch | None:
        """Say which batch a record goes to; None: it is not given away."""
        gathers, number = self.form.gathers, number_of(record)
        if gathers is None or random.Random(f"share {number}").random() >= gathers.share:
            return None
        return ToBatch(BATCHER, value=number, key=record.partition_key if gathers.is_by_key else "")

    def verdict(self) -> Verdict | None:
        """Say what a record ends with that has been worked on."""
        if self.happens(self.form.rejects):
            return Reject("the plan says so")
        if self.happens(self.form.puts_off):
            return Retry(after_s=round(self.draw.uniform(0, PUT_OFF_S), 3))
        return None


class Noting(RecordProcessor):
    """What all of them do."""

    day: ClassVar[Day]
    shard: OwnedShard
    number = -1

    async def initialize(self, shard: OwnedShard) -> None:
        self.shard, self.number = shard, next(self.day.numbers)
        self._note("initialize")
        await self.day.go_by()

    async def handle_failed(self, failure: Failure) -> FailurePolicy | None:
        """Hear of it, and sometimes choose otherwise than the options do; a crash in here changes nothing."""
        day, record = self.day, number_of(failure.record)
        day.given_up[record] = self._owned
        self._say("given_up", n=record, attempts=failure.attempts, rejected=failure.is_rejected)
        chosen: FailurePolicy | None = day.draw.choice((None, None, "skip", "halt")) if day.storm.is_on else None
        try:
            await day.go_by()
        except ValueError:
            self._note_policy(record, None)
            raise
        self._note_policy(record, chosen)
        return chosen

    async def lease_lost(self) -> None:
        self._note("lease_lost")
        await self.day.go_by()

    async def shard_ended(self, checkpointer: Checkpointer) -> None:
        self._note("shard_ended")
        await self.day.go_by()

    async def shutdown_requested(self, checkpointer: Checkpointer) -> None:
        self._note("shutdown_requested")
        await self.day.go_by()
        if self.day.must_save or self.day.draw.random() < 0.5:
            await checkpointer.checkpoint()

    def _note(self, hook: str) -> None:
        self._say("hook", hook=hook)

    def _note_policy(self, record: int, chosen: FailurePolicy | None) -> None:
        """What follows comes before anything else does."""
        policy = chosen or self.day.on_failure
        if policy == "skip":
            self.day.storm.finished.add(record)
            self._say("skipped", n=record)
        elif policy == "halt":
            self._say("halts", n=record)

    def _say(self, event: str, **more: object) -> None:
        self.day.history.note(event, w=self.day.life, **self._owned, **more)

    @property
    def _owned(self) -> dict[str, object]:
        return {"processor": self.number, "shard": self.shard.shard_id, "epoch": self.shard.epoch}

    def _begin(self, records: Sequence[Record], *, again: bool, **more: object) -> int:
        """Note a call, and return its number."""
        call = self.day.history.counts["batch"]
        numbers, marks = [*map(number_of, records)], [*map(_mark, records)]
        self._say("batch", id=call, records=numbers, again=again, marks=marks, **more)
        return call

    def _finish(self, call: int, records: Sequence[Record], verdicts: Mapping[Record, Verdict]) -> None:
        """Note what is done of a call, and what is not."""
        done = [number_of(record) for record in records if record not in verdicts]
        self.day.storm.finished.update(done)
        left = {"left": [*map(number_of, verdicts)]} if verdicts else {}
        self.day.history.note("done", w=self.day.life, id=call, **left)

    def _return(self, call: int, verdicts: Mapping[Record, Verdict] | None, **more: object) -> None:
        """Note how a call has ended; None: it was cut off, has raised, or has given its record ``away``."""
        said: dict[str, object] = {"done": verdicts is not None and not verdicts} | more
        if verdicts:
            said["rejected"] = [number_of(one) for one, verdict in verdicts.items() if isinstance(verdict, Reject)]
            said["after_s"] = max(
                (each.after_s or 0.0 for each in verdicts.values() if isinstance(each, Retry)), default=0.0
            )
        self.day.history.note("returned", w=self.day.life, id=call, **said)

    async def _try_each(self, records: Sequence[Record], *, again: bool, **more: object) -> BatchOutcome:
        day, verdicts = self.day, None
        call = self._begin(records, again=again, **more)
        try:
            await day.go_by()
            verdicts = {record: verdict for record in records if (verdict := day.verdict())}
            self._finish(call, records, verdicts)
        finally:
            self._return(call, verdicts)
        return verdicts


class Whole(Noting):
    """Batches that are finished as a whole, of which a part may be checkpointed before."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> BatchOutcome:
        day = self.day
        verdicts: Mapping[Record, Verdict] | None = None
        call = self._begin(batch.records, again=batch.redelivery is not None)
        try:
            if len(batch.records) > 1 and day.happens(day.work.saves):
                await self._save_part(checkpointer, batch, call)
            await day.go_by()
            self._finish(call, batch.records, {})
            if day.happens(day.work.saves):
                await self._save(checkpointer, batch)
            verdicts = {}
        finally:
            self._return(call, verdicts)
        return None

    async def _save(self, checkpointer: Checkpointer, batch: RecordBatch) -> None:
        at = self.day.draw.choice((None, batch, batch.records[-1], batch.records[0]))
        last = at.records[-1] if isinstance(at, RecordBatch) else at
        await self._checkpoint(checkpointer, at, last)

    async def _save_part(self, checkpointer: Checkpointer, batch: RecordBatch, call: int) -> None:
        """Finish some of the records, and say so, before the others."""
        count = self.day.draw.randrange(1, len(batch.records))
        self.day.storm.finished.update(number_of(record) for record in batch.records[:count])
        self.day.history.note("part", w=self.day.life, id=call, count=count)
        await self._checkpoint(checkpointer, batch.records[count - 1], batch.records[count - 1])

    async def _checkpoint(
        self, checkpointer: Checkpointer, at: Record | RecordBatch | None, last: Record | None
    ) -> None:
        try:
            await checkpointer.checkpoint(at)
        except (LeaseLostError, CheckpointFailedError):
            if self.day.draw.random() < 0.5:
                raise
        else:
            if last is not None:
                self._say("saved", n=number_of(last))


class Tied(Whole):
    """Batches whose effects and checkpoint are one."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> BatchOutcome:
        day = self.day
        verdicts: Mapping[Record, Verdict] | None = None
        call = self._begin(batch.records, again=batch.redelivery is not None)
        try:
            await day.go_by()
            self._finish(call, batch.records, {})
            await checkpointer.once([*map(effect_of, batch.records)], at=batch)
            self._say("saved", n=number_of(batch.records[-1]))
            day.fail()
            verdicts = {}
        finally:
            self._return(call, verdicts)
        return None


class Mixed(Noting):
    """Batches with an outcome for each record."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> BatchOutcome:
        return await self._try_each(batch.records, again=batch.redelivery is not None)


class Single(Noting):
    """Record by record."""

    async def process(self, record: Record) -> RecordOutcome:
        day, verdicts, more = self.day, None, dict[str, object]()
        call = self._begin([record], again=isinstance(record.redelivery, Redelivery))
        try:
            await day.go_by()
            outcome = day.verdict() or day.away(record)
            if isinstance(outcome, ToBatch):
                more["away"] = outcome.key
                day.history.counts["away"] += 1
            else:
                left = {record: outcome} if outcome else {}
                self._finish(call, [record], left)
                if not left:
                    await self.apply(record)
                verdicts = left
        finally:
            self._return(call, verdicts, **more)
        assert not isinstance(outcome, Exception)
        return outcome

    async def apply(self, record: Record) -> None:
        """Do what is to be done outside."""


class Applying(Single):
    """Record by record, each with an effect."""

    async def initialize(self, shard: OwnedShard) -> None:
        await super().initialize(shard)
        self.once = Once(shard, table=MARKERS, ttl_s=MARKED_S)

    async def apply(self, record: Record) -> None:
        await self.once.apply(record, [effect_of(record)])
        if self.shard.checkpointer is not None:
            self._say("saved", n=number_of(record))
        self.day.fail()


class Gathered(Single):
    """Record by record, some of which come again in a batch."""

    async def handle_batch(self, batch: Batched) -> BatchOutcome:
        records = [record for record, value in batch if value == number_of(record)]
        assert len(records) == len(batch.items)
        again = any(isinstance(record.redelivery, Redelivery) for record in records)
        return await self._try_each(records, again=again, key=batch.key)


def effect_of(record: Record) -> Update:
    """Count how often it is applied."""
    return Update(EFFECTS, {"n": number_of(record)}, "ADD times :one", values={":one": 1})


def processor(day: Day) -> type[RecordProcessor]:
    """Make the processor class of one worker's life."""
    has_effects = day.form.has_effects
    forms: dict[str, type[Noting]] = {"batch": Tied if has_effects else Whole, "mixed": Mixed}
    form = forms.get(day.form.kind, Applying if has_effects else Single)
    facts: dict[str, object] = {"day": day}
    if (gathers := day.form.gathers) is not None:
        batcher = Batcher(max_records=gathers.records, max_age_s=GATHERED_S, concurrency=gathers.concurrency)
        form, facts = Gathered, facts | {"batchers": {BATCHER: batcher}}
    if day.work.swallows:
        hooks = ("process_records", "process", "handle_batch")
        facts |= {hook: _swallowing(getattr(form, hook)) for hook in hooks if is_own(form, hook)}
    return type("Noting", (form,), facts)


def _swallowing(hook: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
    """Have a hook that is cancelled return as though it were done."""

    async def call(*arguments: object) -> object:
        try:
            return await hook(*arguments)
        except asyncio.CancelledError:
            return None

    return call


class Letters:
    """Where dead letters go: a place that sometimes does not take them."""

    def __init__(self, day: Day) -> None:
        self._day = day

    async def store(self, letter: DeadLetter) -> None:
        day = self._day
        await asyncio.sleep(day.draw.uniform(0, WORK_S))
        if day.happens(day.form.loses_letters):
            raise DeadLetterError("the plan says so", retryable=day.draw.random() >= FINAL_CHANCE)
        record = number_of(letter.record)
        day.storm.finished.add(record)
        day.history.note("letter", w=day.life, n=record, **day.given_up[record])


def _mark(record: Record) -> int:
    """Return what a record says of itself: 0 nothing, -1 that it may have been in hand, else which attempt it is."""
    again = record.redelivery
    return again.attempt if isinstance(again, Redelivery) else -1 if again else 0
