"""Hands records to the user's code in tasks of the Pipeline, and settles what becomes of each.

When an ownership begins and ends is the Pipeline's to decide. What a task ends with comes back to it as a message.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from anyio.lowlevel import checkpoint

from actors import Actor, OwnedTask, Timer
from kcl_py.delivery import verdicts
from kcl_py.delivery.buffer import Cut
from kcl_py.delivery.hook import ABANDON_S
from kcl_py.delivery.lanes import Item, Lanes
from kcl_py.delivery.ledger import Ledger, Range
from kcl_py.delivery.slots import Seat
from kcl_py.delivery.verdicts import Trouble
from kcl_py.leases.fence import Fence
from kcl_py.leases.row import MOST_LATER, Later
from kcl_py.log import may_show_tracebacks
from kcl_py.outcomes import LONGEST_S, Reject, Verdict
from kcl_py.processor import Failure
from kcl_py.records import Record
from kcl_py.tree.giving_up import GivingUp, Stop, Wait
from kcl_py.tree.worker import Worker

TURNS = 16
"""Records that one task hands over until the event loop, and shards that wait for a slot, have their turn."""


@dataclass(slots=True)
class Hand:
    """What one task has in hand."""

    item: Item | None = None
    failed: Mapping[int, Verdict] | None = None
    """Set where a task before it was made to end without settling the item."""
    has_begun: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """Records are settled."""


@dataclass(frozen=True, slots=True)
class WorkEnded:
    """A task has ended."""

    hand: Hand
    error: Exception | None = None
    """Set where somebody has cancelled it from outside."""


@dataclass(frozen=True, slots=True)
class HandOn:
    """What was put off is due, or a slot is free."""


@dataclass(frozen=True, slots=True)
class Withheld:
    """The fence does not allow to hand over."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """A record can neither be finished nor passed over."""

    reason: str
    attempts: int
    sequence_number: str


class Form(Protocol):
    """How records reach the user's code; see ``tree/forms.py``."""

    name: str
    is_serial: bool

    def add(self, lanes: Lanes, entry: Range) -> None: ...
    async def attempt(self, item: Item, trouble: Trouble | None) -> Mapping[int, Verdict]: ...
    def failed(self, item: Item, error: Exception) -> Mapping[int, Verdict]: ...
    def finish(self, item: Item, failed: Mapping[int, Verdict]) -> Mapping[int, Verdict]: ...
    def left(self, item: Item) -> list[int]: ...
    def first(self, item: Item) -> Record: ...
    def due_ms(self, item: Item, due_ms: dict[str, int]) -> int | None: ...


class Dispatcher:
    """The records in work of one ownership.

    Args:
        worker: gives options, clock, slots and chance.
        form: how the user's code is called.
        ledger: what is finished.
        fence: asked before each hand-over.
        giving_up: what happens with records that are not tried again.
        owner: the actor that tasks and timers are of.
        later: what owners before have put off.
        log: bound to the shard.
    """

    def __init__(
        self,
        worker: Worker,
        form: Form,
        ledger: Ledger,
        fence: Fence,
        giving_up: GivingUp,
        owner: Actor,
        later: Iterable[Later],
        log: Any,
    ) -> None:
        self._worker, self._form, self._ledger, self._fence = worker, form, ledger, fence
        self._giving_up, self._owner, self._log = giving_up, owner, log
        self._options, self._clock, self._slots = worker.config.delivery, worker.clock, worker.slots
        self._lanes = Lanes("shard" if form.is_serial else self._options.ordering)
        self._seat = Seat(lambda: owner.ref.tell(HandOn()))
        self._due_ms = {each.sequence_number: each.due_ms for each in later}
        self._put_off: tuple[Later, ...] = ()
        self._troubles: dict[Item, Trouble] = {}
        self._owed: dict[Item, Mapping[int, Verdict]] = {}
        """Records that are given up, and not settled yet."""
        self._tasks: dict[int, tuple[Hand, OwnedTask]] = {}
        self._starting = 0
        self._timer: tuple[float, Timer] | None = None
        self._is_held_back = self._is_stopped = self._has_moved = False

    @property
    def wants_more(self) -> bool:
        """Whether records can be taken in."""
        return not self._is_stopped and not (self._form.is_serial and self._lanes)

    @property
    def is_busy(self) -> bool:
        """Whether a task runs."""
        return bool(self._tasks)

    @property
    def is_idle(self) -> bool:
        """Whether all that was taken in is settled."""
        return not self._lanes and not self._tasks

    @property
    def unfinished(self) -> int:
        """Records in the user's hands."""
        return sum(len(self._form.left(item)) for item in self._lanes.in_hand)

    def put_off(self) -> tuple[Later, ...]:
        """The records that the processor has put off, and those before it; at the end, those that were."""
        if self._is_stopped:
            return self._put_off
        now_ms, now = self._clock.time() * 1000, self._clock.monotonic()
        found = []
        for item, due_at in self._lanes.delayed():
            trouble = self._troubles.get(item)
            if trouble is None or trouble.is_put_off:
                record = self._form.first(item)
                found.append(Later(record.sequence_number, int(now_ms + (due_at - now) * 1000)))
        return tuple(found[:MOST_LATER])

    def take_in(self, cut: Cut) -> None:
        """Take in records behind all others."""
        self._form.add(self._lanes, self._ledger.open(cut))

    def go_on(self) -> None:
        """Hand over what may be handed over now."""
        if self._is_stopped or self._is_held_back:
            return
        self._lanes.wake(self._clock.monotonic())
        while self._lanes.ready > self._starting and (self._form.is_serial or self._slots.take(self._seat)):
            self._starting += 1
            self._start(Hand())
        self._set_timer()

    def note_ended(self, ended: WorkEnded) -> None:
        """Note that a task has ended; one that somebody has cancelled has failed with what it had in hand."""
        hand, _ = self._tasks.pop(id(ended.hand))
        if not hand.has_begun:
            self._release(hand)
        if hand.item is not None and ended.error is not None:
            self._start(Hand(hand.item, self._form.failed(hand.item, ended.error)))

    def note_moved(self) -> None:
        """Tell again when more records are settled."""
        self._has_moved = False

    def confirmed(self) -> None:
        """Try again what the fence has held back."""
        self._is_held_back = False
        self.go_on()

    def drop_ahead(self) -> int:
        """Forget what was taken in and never handed over: it can be read again. Return how many bytes that is."""
        if self._form.is_serial:
            return 0  # that is one batch, and the next to be handed over
        dropped = self._ledger.drop_ahead()
        self._lanes.drop(dropped)
        return sum(entry.cut.size_bytes for entry in dropped)

    def stop(self) -> None:
        """Hand over nothing more: what waits is dropped as it is, what runs goes on."""
        self._put_off, self._is_stopped = self.put_off(), True
        self._lanes.clear()
        self._slots.leave(self._seat)
        if self._timer is not None:
            self._timer[1].cancel()

    def cancel(self) -> list[OwnedTask]:
        """Cancel what runs, and return it."""
        self.stop()
        running, self._tasks = list(self._tasks.values()), {}
        for hand, task in running:
            task.cancel()
            if not hand.has_begun:
                self._release(hand)
        return [task for _, task in running]

    def _start(self, hand: Hand) -> None:
        async def work() -> None:
            hand.has_begun = True
            try:
                await self._work(hand)
            finally:
                self._release(hand)

        work.__qualname__ = f"{self._worker.processor.__qualname__}.{self._form.name}"
        task = self._owner.run_task(
            work, done=lambda _: WorkEnded(hand), failed=lambda error: WorkEnded(hand, error), abandon_s=ABANDON_S
        )
        self._tasks[id(hand)] = hand, task

    def _release(self, hand: Hand) -> None:
        """Give back the slot of a task; one that goes on where another was cancelled has none."""
        if hand.failed is not None:
            return
        if not hand.has_begun:
            self._starting -= 1
        if not self._form.is_serial:
            self._slots.free()

    async def _work(self, hand: Hand) -> None:
        if hand.item is not None and hand.failed is not None:
            await self._settle(hand.item, hand.failed)
            return
        self._starting -= 1
        for turn in count(1):
            item = self._next()
            if item is None:
                return
            if not self._fence.allows(self._clock.monotonic()):
                self._hold_back(item)
                return
            hand.item = item
            await self._handle(item)
            hand.item = None
            if turn % TURNS == 0:
                await checkpoint()
                if self._slots.is_contended:
                    return

    def _next(self) -> Item | None:
        """Take the next item in hand that no owner before has put off."""
        while (item := self._lanes.next()) is not None:
            due_ms = self._form.due_ms(item, self._due_ms) if self._due_ms else None
            if due_ms is None or (pause_s := due_ms / 1000 - self._clock.time()) <= 0:
                return item
            self._lanes.delay(item, self._clock.monotonic() + min(pause_s, LONGEST_S))
            self._set_timer()
        return None

    async def _handle(self, item: Item) -> None:
        """Make an attempt; where records of an earlier one are to be given up first, see to that."""
        if owed := self._owed.pop(item, None):
            if not await self._is_given_up(item, owed):
                return
            if self._is_stopped or not self._form.left(item):
                self._let_go(item)
                return
        await self._settle(item, await self._form.attempt(item, self._troubles.get(item)))

    def _hold_back(self, item: Item) -> None:
        self._lanes.put_back(item)
        if not self._is_held_back:
            self._is_held_back = True
            self._owner.ref.tell(Withheld())

    async def _settle(self, item: Item, failed: Mapping[int, Verdict]) -> None:
        left = self._form.finish(item, failed)
        if failed and not left:
            self._note(failed, self._trouble(item, failed), None)
        if not left or not await self._comes_again(item, left):
            self._let_go(item)

    def _let_go(self, item: Item) -> None:
        """Note that nothing more is to be done for an item."""
        self._troubles.pop(item, None)
        self._lanes.settle(item)
        if not self._has_moved and not self._form.is_serial:
            self._has_moved = True
            self._owner.ref.tell(Moved())

    async def _comes_again(self, item: Item, failed: Mapping[int, Verdict]) -> bool:
        """Decide what comes after a failed attempt; tell whether something of the item is put off."""
        trouble = self._trouble(item, failed)
        pauses = {
            index: verdicts.pause_s(verdict, trouble.attempts, self._options, self._worker.ids.jitter)
            for index, verdict in sorted(failed.items())
        }
        again = [] if self._is_stopped else [pause_s for pause_s in pauses.values() if pause_s is not None]
        self._note(failed, trouble, max(again, default=None))
        given_up = {index: failed[index] for index, pause_s in pauses.items() if pause_s is None}
        if given_up and not await self._is_given_up(item, given_up):
            return True
        if again and not self._is_stopped:
            self._put_off_by(item, max(again))
            return True
        return False

    def _put_off_by(self, item: Item, pause_s: float) -> None:
        self._lanes.delay(item, self._clock.monotonic() + pause_s)
        self._set_timer()

    def _trouble(self, item: Item, failed: Mapping[int, Verdict]) -> Trouble:
        trouble = self._troubles.setdefault(item, Trouble(self._clock.time()))
        trouble.note(failed)
        return trouble

    async def _is_given_up(self, item: Item, failed: Mapping[int, Verdict]) -> bool:
        """Settle records that are not tried again; False if the item is put off for that, or the shard stops."""
        entry, trouble = item[0], self._troubles[item]
        for index, verdict in failed.items():
            record, is_rejected = entry.records[index], isinstance(verdict, Reject)
            failure = Failure(record, trouble.reasons[index], trouble.attempts, trouble.first_failed_s, is_rejected)
            outcome = Wait(0) if self._is_stopped else await self._giving_up.settle(failure)
            if outcome is None:
                self._ledger.finish_record(entry, index)
                continue
            if isinstance(outcome, Stop) and not self._is_stopped:
                self.stop()
                self._owner.ref.tell(Stuck(outcome.reason, trouble.attempts, record.sequence_number))
            if isinstance(outcome, Stop) or self._is_stopped:
                self._let_go(item)
            else:
                self._owed[item] = {each: verdict for each, verdict in failed.items() if each >= index}
                self._put_off_by(item, outcome.pause_s)
            return False
        return True

    def _note(self, failed: Mapping[int, Verdict], trouble: Trouble, pause_s: float | None) -> None:
        first = min(failed)
        self._log.warning(
            "kcl_py.batch.failed",
            attempt=trouble.attempts,
            retry_in_s=pause_s,
            error=trouble.reasons[first],
            hook=self._form.name,
            records=len(failed),
        )
        error = failed[first]
        if isinstance(error, Exception) and may_show_tracebacks():
            self._log.debug("kcl_py.batch.traceback", exc_info=error)

    def _set_timer(self) -> None:
        due_at = self._lanes.next_due_at
        if due_at is None or (self._timer is not None and self._timer[0] == due_at):
            return
        if self._timer is not None:
            self._timer[1].cancel()
        self._timer = due_at, self._owner.send_after(max(due_at - self._clock.monotonic(), 0), HandOn())
