"""Hands records to the user's code in tasks of the Pipeline, and settles what becomes of each.

When an ownership begins and ends is the Pipeline's to decide. What a task ends with comes back to it as a message.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import Protocol

from anyio.lowlevel import checkpoint

from actors import Actor, OwnedTask, Timer
from kcl_py.delivery.buffer import Cut
from kcl_py.delivery.hook import ABANDON_S
from kcl_py.delivery.lanes import Item, Lanes
from kcl_py.delivery.ledger import Ledger, Range
from kcl_py.delivery.rate import FREE, Turn, Weight
from kcl_py.delivery.slots import Seat
from kcl_py.delivery.verdicts import Trouble
from kcl_py.events import Events
from kcl_py.leases.fence import Fence
from kcl_py.leases.row import MOST_LATER, Later
from kcl_py.outcomes import LONGEST_S, Verdict
from kcl_py.records import Record
from kcl_py.tree.batches import Batches
from kcl_py.tree.giving_up import GivingUp
from kcl_py.tree.sequel import Again, Sequel
from kcl_py.tree.work import BatchHand, Hand, HandOn, Moved, Stuck, Withheld, WorkEnded
from kcl_py.tree.worker import Worker

TURNS = 16
"""Records that one task hands over until the event loop, and shards that wait for a slot, have their turn."""
LEAST_S = 1e-6
"""The shortest timer: one that rings a rounding too early, as event loops do, is set again, and time must pass."""


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
    def weight(self, item: Item) -> Weight: ...
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
        batches: where the user's code can give records to.
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
        batches: Batches,
        later: Iterable[Later],
        log: Events,
    ) -> None:
        self._worker, self._form, self._ledger, self._fence = worker, form, ledger, fence
        self._owner, self._batches, self._log = owner, batches, log
        self._sequel = Sequel(worker, form.name, giving_up, fence, lambda: self._is_stopped, log)
        self._clock, self._slots = worker.clock, worker.slots
        self._lanes = Lanes("shard" if form.is_serial else worker.config.delivery.ordering)
        self._seat = Seat(lambda: owner.ref.tell(HandOn()))
        self._turn = Turn(worker.rate, lambda: owner.ref.tell(HandOn()))
        self._due_ms = {each.sequence_number: each.due_ms for each in later}
        self._put_off: tuple[Later, ...] = ()
        self._troubles: dict[Item, Trouble] = {}
        self._owed: dict[Item, tuple[Mapping[int, Verdict], float]] = {}
        """Records that are given up, and not settled yet; and when the others of their item are due."""
        self._tasks: dict[int, tuple[Hand, OwnedTask]] = {}
        self._starting = 0
        self._timer: tuple[float, Timer] | None = None
        self._is_held_back = self._is_stopped = self._has_moved = False
        self.has_put_off = False
        """Whether the processor has put something off since the Pipeline told of it."""

    @property
    def wants_more(self) -> bool:
        """Whether records can be taken in."""
        return not self._is_stopped and not (self._form.is_serial and self._lanes)

    @property
    def is_busy(self) -> bool:
        """Whether a task runs."""
        return bool(self._tasks) or self._batches.is_busy

    @property
    def is_idle(self) -> bool:
        """Whether all that was taken in is settled."""
        return not self._lanes and not self._tasks and self._batches.is_idle

    @property
    def unfinished(self) -> int:
        """Records in the user's hands."""
        return sum(len(self._form.left(item)) for item in self._lanes.in_hand) + self._batches.unfinished

    def cut_off(self) -> int:
        """Say what is still in the user's hands although the time for it is over; return how many records that are."""
        unfinished, head = self.unfinished, self._ledger.head
        if unfinished and head is not None:
            position = head.records[head.next].sequence_number
            self._log.warning("kcl_py.shard.cut_off", records=unfinished, position=position)
        return unfinished

    def put_off(self) -> tuple[Later, ...]:
        """The records that the processor has put off, and those before it; at the end, those that were."""
        if self._is_stopped:
            return self._put_off
        now_ms = self._clock.time() * 1000
        found = [Later(number, due_ms) for number, due_ms in self._due_ms.items() if due_ms > now_ms]  # not read yet
        for item, due_at in self._lanes.delayed():
            trouble = self._troubles.get(item)
            if (trouble is None or trouble.is_put_off) and self._form.left(item):  # else it was checkpointed meanwhile
                found.append(self._later(item, due_at))
                if len(found) >= 2 * MOST_LATER:
                    break
        return tuple(sorted(found, key=lambda later: later.due_ms)[:MOST_LATER])

    def take_in(self, cut: Cut) -> None:
        """Take in records behind all others."""
        self._form.add(self._lanes, self._ledger.open(cut))

    def go_on(self) -> None:
        """Hand over what may be handed over now."""
        self._batches.go_on()
        if self._is_stopped:
            return
        self._lanes.wake(self._clock.monotonic())
        while self._may_start():
            paid = self._pay(self._starting)
            if paid is None:
                self._slots.leave(self._seat)
                break
            if not self._form.is_serial and not self._slots.take(self._seat):
                self._turn.give_back(paid, self._clock.monotonic())
                break
            self._starting += 1
            self._start(Hand(paid=paid))
        self._set_timer()

    def pause(self, *, is_paused: bool) -> None:
        """Hand over nothing more until this is called again; what runs goes on."""
        self._batches.is_paused = is_paused
        if is_paused:
            self._slots.leave(self._seat)
            self._turn.leave(self._clock.monotonic())

    def finish_up(self) -> None:
        """Have batches wait for nothing once no more records can come to them."""
        if not self._lanes:
            self._batches.end()

    def note(self, message: WorkEnded | Moved) -> None:
        """Note that a task has ended, or has settled records."""
        if isinstance(message, WorkEnded):
            self._note_ended(message)
        else:
            self._has_moved = False
            self._batches.note_put()

    def _note_ended(self, ended: WorkEnded) -> None:
        """One that somebody has cancelled has failed with what it had in hand."""
        if isinstance(ended.hand, BatchHand):
            self._batches.note_ended(ended.hand, ended.error)
            return
        self._batches.note_put()
        hand, _ = self._tasks.pop(id(ended.hand))
        if not hand.has_begun:
            self._release(hand)
        if hand.item is not None and ended.error is not None:
            self._start(Hand(hand.item, self._form.failed(hand.item, ended.error)))

    def confirmed(self) -> None:
        """Try again what the fence has held back."""
        self._is_held_back = False
        self._batches.confirmed()
        self.go_on()

    def drop_ahead(self) -> int:
        """Forget what was taken in and never handed over: it can be read again. Return how many bytes that is."""
        if self._form.is_serial:
            return 0  # that is one batch, and the next to be handed over
        dropped = self._ledger.drop_ahead()
        put_off = [self._later(item, due_at) for item, due_at in self._lanes.delayed() if item[0] in dropped]
        self._due_ms |= {each.sequence_number: each.due_ms for each in put_off}  # by an owner before, and so again
        self._lanes.drop(dropped)
        return sum(entry.cut.size_bytes for entry in dropped)

    def stop(self, *, flushes: bool = False) -> None:
        """Hand over nothing more, or but what batchers have: what waits is dropped as it is, what runs goes on."""
        self._put_off, self._is_stopped = self.put_off(), True
        self._lanes.clear()
        self._slots.leave(self._seat)
        self._turn.leave(self._clock.monotonic())
        if self._timer is not None:
            self._timer[1].cancel()
        self._batches.stop(flushes=flushes)

    def cancel(self) -> list[OwnedTask]:
        """Cancel what runs, and return it."""
        self.stop()
        running, self._tasks = list(self._tasks.values()), {}
        for hand, task in running:
            task.cancel()
            if not hand.has_begun:
                self._release(hand)
        return [task for _, task in running] + self._batches.cancel()

    def _may_start(self) -> bool:
        """Whether a record is ready for which no task has been started."""
        if self._is_held_back or self._batches.is_paused or self._lanes.ready <= self._starting:
            self._turn.leave(self._clock.monotonic())
            self._slots.leave(self._seat)  # a slot that comes too late is for others
            return False
        return True

    def _pays_on(self, hand: Hand) -> bool:
        """Pay for the next record of a task, if there is one."""
        paid = self._pay(0) if self._lanes.ready else None
        hand.paid = paid or FREE
        return paid is not None

    def _pay(self, place: int) -> Weight | None:
        return self._turn.pay(lambda: self._form.weight(self._lanes.peek(place)), self._clock.monotonic())

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
        """Give back the slot of a task, and what it paid; one that goes on where another was cancelled has none."""
        if hand.failed is not None:
            return
        self._turn.give_back(hand.paid, self._clock.monotonic())
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
            if turn > 1 and not self._pays_on(hand):
                return
            item = self._next()
            if item is None:
                return
            if not self._fence.allows(self._clock.monotonic()):
                self._hold_back(item)
                return
            hand.item, hand.paid = item, FREE
            await self._handle(item)
            hand.item = None
            if turn % TURNS == 0:
                await checkpoint()
                if self._slots.is_contended:
                    return

    def _next(self) -> Item | None:
        """Take the next item in hand that no owner before has put off; for longer than one can be, only a clock has."""
        while not self._batches.is_paused and (item := self._lanes.next()) is not None:
            due_ms = self._form.due_ms(item, self._due_ms) if self._due_ms else None
            if due_ms is None or not 0 < (pause_s := due_ms / 1000 - self._clock.time()) <= LONGEST_S:
                return item
            self._lanes.delay(item, self._clock.monotonic() + pause_s)
            self._set_timer()
        return None

    async def _handle(self, item: Item) -> None:
        """Make an attempt; where records of an earlier one are to be given up first, see to that."""
        owed, due_at = self._owed.pop(item, ({}, 0.0))
        if owed:
            sequel = await self._sequel.give_up(self._troubles[item], owed, *self._of(item))
            is_over = self._is_stopped or not self._form.left(item)
            if sequel is None and not is_over and (pause_s := due_at - self._clock.monotonic()) > 0:
                sequel = Again(pause_s)
            if self._comes_again(item, replace(sequel, due_at=due_at) if isinstance(sequel, Again) else sequel):
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
        sequel = None
        if left:
            sequel = await self._sequel.of(self._trouble(item, left), left, *self._of(item))
        elif failed:
            self._sequel.note(self._trouble(item, failed), failed, None)
        if not self._comes_again(item, sequel):
            self._let_go(item)

    def _let_go(self, item: Item) -> None:
        """Note that nothing more is to be done for an item."""
        self._troubles.pop(item, None)
        self._lanes.settle(item)
        if not self._has_moved and not self._form.is_serial:
            self._has_moved = True
            self._owner.ref.tell(Moved())

    def _comes_again(self, item: Item, sequel: Again | Stuck | None) -> bool:
        """Put an item off, if that is what comes next."""
        if isinstance(sequel, Again):
            if sequel.owed:
                self._owed[item] = sequel.owed, sequel.due_at
            self._lanes.delay(item, self._clock.monotonic() + sequel.pause_s)
            self.has_put_off |= self._troubles[item].is_put_off
            self._set_timer()
            return True
        if sequel is not None:
            was_stopped = self._is_stopped
            self.stop()  # batchers too, while they are flushed
            if not was_stopped:
                self._owner.ref.tell(sequel)
        return False

    def _of(self, item: Item) -> tuple[Callable[[int], Record], Callable[[int], object]]:
        """How a record of an item is found, and finished."""
        entry = item[0]
        return lambda index: entry.records[index], lambda index: self._ledger.finish_record(entry, index)

    def _later(self, item: Item, due_at: float) -> Later:
        due_in_s = due_at - self._clock.monotonic()
        return Later(self._form.first(item).sequence_number, int((self._clock.time() + due_in_s) * 1000))

    def _trouble(self, item: Item, failed: Mapping[int, Verdict]) -> Trouble:
        trouble = self._troubles.setdefault(item, Trouble(self._clock.time()))
        trouble.note(failed)
        return trouble

    def _set_timer(self) -> None:
        """Go on when the first of what waits is due."""
        now = self._clock.monotonic()
        due_ats = (self._lanes.next_due_at, self._batches.next_due_at, self._turn.due_at)
        due_at = min((at for at in due_ats if at is not None), default=None)
        if self._timer is not None:
            if self._timer[0] == due_at and not self._timer[1].has_rung:
                return
            self._timer[1].cancel()
            self._timer = None
        if due_at is not None:
            self._timer = due_at, self._owner.send_after(max(due_at - now, LEAST_S), HandOn())
