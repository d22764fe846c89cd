"""Records that wait for a loop of the user's own program: each stays in ``process`` until the loop is done with it."""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Self
from weakref import finalize

import anyio

from kcl_py.outcomes import RecordOutcome, Retry, Verdict
from kcl_py.processor import RecordProcessor, Records
from kcl_py.records import Record

LEFT = Retry(reason="the loop over the records was left at it")


class Offer:
    """One record, until it is settled or withdrawn."""

    __slots__ = ("outcome", "record", "settled")

    def __init__(self, record: Record) -> None:
        self.record = record
        self.outcome: Verdict | None = None
        self.settled = anyio.Event()


class Offers:
    """What the shards of one worker offer; bounded by what may be in ``process`` at a time."""

    def __init__(self) -> None:
        self._waiting: deque[Offer] = deque()
        self._held: dict[int, Offer] = {}
        self._left: list[Record] = []
        """Those at which a loop has ended that says by asking what is done, and so never will."""
        self._arrived = anyio.Event()
        self.is_left = False
        """Whether no loop asks any more: nothing that is held will be settled."""

    def processor(self) -> type[RecordProcessor]:
        """Make the class that goes to the worker."""
        offers = self

        class Offering(Records):
            async def process(self, record: Record) -> RecordOutcome:
                return await offers.offer(record)

        Offering.__qualname__ = Records.__qualname__
        return Offering

    async def offer(self, record: Record) -> RecordOutcome:
        """Wait until the loop has settled ``record``; return or raise what it says."""
        offer = Offer(record)
        self._waiting.append(offer)
        self._arrived.set()
        try:
            await offer.settled.wait()
        finally:
            self._withdraw(offer)
        if isinstance(offer.outcome, Exception):
            raise offer.outcome
        return offer.outcome

    def take(self) -> Record | None:
        """Return the next record for the loop to hold; None if none waits.

        Those that another loop has left, and that were not acknowledged since, come again.
        """
        while self._left:
            self.settle(self._left.pop(), LEFT)
        if not self._waiting:
            return None
        offer = self._waiting.popleft()
        self._held[id(offer.record)] = offer
        return offer.record

    async def arrived(self) -> None:
        """Wait until a record waits."""
        if not self._waiting:
            self._arrived = anyio.Event() if self._arrived.is_set() else self._arrived
            await self._arrived.wait()

    def leave(self, hand: list[Record]) -> None:
        """Note that a loop has ended with this in hand."""
        self._left += hand

    def settle(self, record: Record, outcome: Verdict | None) -> bool:
        """Say what has become of a record; False if it is not held, or not any more."""
        offer = self._held.pop(id(record), None)
        if offer is None:
            return False
        offer.outcome = outcome
        offer.settled.set()
        return True

    def _withdraw(self, offer: Offer) -> None:
        if not offer.settled.is_set() and self._held.pop(id(offer.record), None) is None:
            self._waiting.remove(offer)


class Loop:
    """What ``Stream.records`` returns: yields each record once, in the order in which they are offered.

    Args:
        offers: those of the worker.
        until_offered: waits until a record is offered, which may be gone again; returns False if the worker has
            stopped, and raises what it failed with.
        is_implicit: whether to ask for the next record says that the one before is done.
    """

    def __init__(self, offers: Offers, until_offered: Callable[[], Awaitable[bool]], *, is_implicit: bool) -> None:
        self._offers, self._until_offered, self._is_implicit = offers, until_offered, is_implicit
        self._hand: list[Record] = []
        """What is done once the next record is asked for; empty or one record."""
        finalize(self, offers.leave, self._hand).atexit = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        while self._hand:
            self._offers.settle(self._hand.pop(), None)
        while (record := self._offers.take()) is None:
            if not await self._until_offered():
                raise StopAsyncIteration
        if self._is_implicit:
            self._hand.append(record)
        return record
