"""Hands batches to ``handle_batch`` in tasks of the Pipeline, and settles what becomes of their records.

A record that a batcher has is not finished, and in nobody's hands until its batch is.
"""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from actors import Actor, OwnedTask
from kcl_py.batchers import Batched, unknown_batcher
from kcl_py.delivery import verdicts
from kcl_py.delivery.batching import Batch, Batching
from kcl_py.delivery.hook import ABANDON_S
from kcl_py.delivery.lanes import Item
from kcl_py.delivery.verdicts import Trouble
from kcl_py.errors import ProcessorError
from kcl_py.events import Events
from kcl_py.leases.fence import Fence
from kcl_py.outcomes import ToBatch, Verdict
from kcl_py.records import Record
from kcl_py.tree.forms import Attempt
from kcl_py.tree.giving_up import GivingUp
from kcl_py.tree.sequel import Again, Sequel
from kcl_py.tree.work import BatchHand, Stuck, Withheld, WorkEnded
from kcl_py.tree.worker import Worker

HOOK = "handle_batch"


class Batches:
    """The batchers of one ownership.

    Args:
        worker: gives options, clock and chance.
        attempt: how the user's code is called.
        fence: asked before each hand-over.
        giving_up: what happens with records that are not tried again.
        owner: the actor that tasks are of; hears ``WorkEnded``, ``Withheld`` and ``Stuck``.
        log: bound to the shard.
    """

    def __init__(
        self, worker: Worker, attempt: Attempt, fence: Fence, giving_up: GivingUp, owner: Actor, log: Events
    ) -> None:
        fetch, ahead = worker.config.fetch, worker.config.delivery.max_ahead
        self._batching = Batching(
            attempt.processor.batchers,
            most_records=min(fetch.prefetch_records, ahead.records),
            most_bytes=min(fetch.prefetch_bytes, ahead.bytes),
        )
        self._attempt, self._fence, self._owner, self._clock = attempt, fence, owner, worker.clock
        self._sequel = Sequel(worker, HOOK, giving_up, fence, lambda: self._is_ending, log)
        self._name = f"{worker.processor.__qualname__}.{HOOK}"
        self._tasks: dict[BatchHand, OwnedTask] = {}
        self._is_held_back = self._is_ending = self._is_stopped = False
        self.is_paused = False
        """While this is set nothing is handed over."""

    @property
    def is_busy(self) -> bool:
        """Whether a task runs, or has still to run before all ends."""
        return bool(self._tasks) or (self._is_ending and bool(self._batching))

    @property
    def is_idle(self) -> bool:
        """Whether all that was put in is settled."""
        return not self._batching and not self._tasks

    @property
    def unfinished(self) -> int:
        """Records in the user's hands."""
        return sum(len(batch.left) for batch in {id(hand.batch): hand.batch for hand in self._tasks}.values())

    @property
    def next_due_at(self) -> float | None:
        """When ``go_on`` has to be called at the latest."""
        return None if self._is_ending else self._batching.next_due_at

    def fault(self, to: ToBatch) -> ProcessorError | None:
        """Say what is wrong with the name of a batcher."""
        return unknown_batcher(to, self._batching.names)

    def put(self, item: Item, record: Record, to: ToBatch) -> None:
        """Take a record that ``process`` has given away."""
        if not self._is_stopped:
            self._batching.put(to, item, record, self._clock.monotonic())

    def go_on(self) -> None:
        """Hand over what may be handed over now."""
        if self._is_ending:
            self._batching.close("drain")
        else:
            self._batching.wake(self._clock.monotonic())
        while (
            not (self._is_held_back or self.is_paused or self._is_stopped)
            and (batch := self._batching.next()) is not None
        ):
            self._start(batch, None)

    def end(self) -> None:
        """Hand over what there is, since nothing more can come."""
        self._batching.close("end")
        self.go_on()

    def note_ended(self, hand: BatchHand, error: Exception | None) -> None:
        """Note that a task has ended; one that somebody has cancelled has failed with what it had in hand."""
        del self._tasks[hand]
        if error is not None:
            self._start(hand.batch, dict.fromkeys(hand.batch.left, error))
        if self._is_ending:
            self.go_on()

    def note_put(self) -> None:
        """Note that records may have come while all ends."""
        if self._is_ending:
            self.go_on()

    def confirmed(self) -> None:
        """Try again what the fence has held back."""
        self._is_held_back = False
        self.go_on()

    def stop(self, *, flushes: bool = False) -> None:
        """Hand over nothing more, or but what there is, and nothing a second time; what runs goes on."""
        self._is_ending = True
        if flushes and not self._is_stopped:
            self._batching.drop_delayed()
            self.go_on()
        else:
            self._is_stopped = True
            self._batching.clear()

    def cancel(self) -> list[OwnedTask]:
        """Cancel what runs, and return it."""
        self.stop()
        running, self._tasks = list(self._tasks.values()), {}
        for task in running:
            task.cancel()
        return running

    def _start(self, batch: Batch, failed: Mapping[int, Verdict] | None) -> None:
        async def work() -> None:
            if failed is not None:
                await self._settle(batch, failed)
            elif not self.is_paused and self._fence.allows(self._clock.monotonic()):
                await self._handle(batch)
            else:
                self._hold_back(batch)

        work.__qualname__, hand = self._name, BatchHand(batch)
        self._tasks[hand] = self._owner.run_task(
            work, done=lambda _: WorkEnded(hand), failed=lambda error: WorkEnded(hand, error), abandon_s=ABANDON_S
        )

    def _hold_back(self, batch: Batch) -> None:
        self._batching.put_back(batch)
        if not (self._is_held_back or self.is_paused):
            self._is_held_back = True
            self._owner.ref.tell(Withheld())

    async def _handle(self, batch: Batch) -> None:
        """Make an attempt; where records of an earlier one are to be given up first, see to that."""
        if batch.owed and batch.trouble is not None:
            sequel = await self._sequel.give_up(batch.trouble, batch.owed, *self._of(batch))
            if sequel is not None or self._is_ending or not batch.left:
                self._go_by(batch, sequel)
                return
            batch.owed = {}
            if batch.due_at > self._clock.monotonic():
                self._batching.delay(batch, batch.due_at)
                return
        await self._settle(batch, await self._hand_over(batch))

    async def _hand_over(self, batch: Batch) -> Mapping[int, Verdict]:
        trouble, items = batch.trouble, []
        for index in batch.left:
            _, record, value = batch.items[index]
            told = record if trouble is None else replace(record, redelivery=trouble.redelivery(index))
            items.append((told, value))
        batched = Batched(batch.batcher, batch.key, list(items), batch.trigger)
        answer = await self._attempt.call(HOOK, lambda: self._attempt.processor.handle_batch(batched))
        return verdicts.of_batch(answer, batch.left, [record for record, _ in items], HOOK)

    async def _settle(self, batch: Batch, failed: Mapping[int, Verdict]) -> None:
        for index in batch.left:
            if index not in failed:
                self._finish(batch, index)
        batch.left = sorted(failed)
        if not failed:
            self._batching.settle(batch)
            return
        trouble = batch.trouble = batch.trouble or Trouble(self._clock.time())
        trouble.note(failed)
        sequel = await self._sequel.of(trouble, failed, *self._of(batch))
        batch.due_at = sequel.due_at if isinstance(sequel, Again) else 0.0
        self._go_by(batch, sequel)

    def _go_by(self, batch: Batch, sequel: Again | Stuck | None) -> None:
        """Do what comes after an attempt of which something has failed."""
        if not batch.left:
            self._batching.settle(batch)
        elif isinstance(sequel, Again):
            batch.owed = sequel.owed
            self._batching.delay(batch, self._clock.monotonic() + sequel.pause_s)
        else:
            self._batching.drop(batch)
            if sequel is not None:
                self.stop()
                self._owner.ref.tell(sequel)

    def _of(self, batch: Batch) -> tuple[Callable[[int], Record], Callable[[int], object]]:
        """How a record of a batch is found, and finished."""

        def record_of(index: int) -> Record:
            (entry, place), _, _ = batch.items[index]
            return entry.records[place]

        def finish(index: int) -> None:
            self._finish(batch, index)
            batch.left.remove(index)

        return record_of, finish

    def _finish(self, batch: Batch, index: int) -> None:
        self._attempt.ledger.finish_record(*batch.items[index][0])
