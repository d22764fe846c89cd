"""Carries out one conditional write of a Lease, and finds out what became of it.

A refusal or a missing reply is never believed: one consistent read decides, and so it does for a transaction, whose
reply has no row. No write is sent after its deadline. Instants are monotonic seconds.
"""

from dataclasses import dataclass
from typing import Literal

from actors import Clock
from kcl_py.errors import (
    ConditionFailedError,
    EffectsRefusedError,
    MissingError,
    RejectedError,
    RequestError,
    ThrottledError,
)
from kcl_py.leases.gate import Gate, Priority
from kcl_py.leases.row import LeaseRow
from kcl_py.leases.settling import decide
from kcl_py.leases.store import LeaseStore, Write

READ_PAUSE_S = 0.2
"""Between two tries of the deciding read."""

PRIORITIES = {
    "heartbeat": Priority.HEARTBEAT,
    "cancel handoff by holder": Priority.HEARTBEAT,
    "refuse": Priority.HEARTBEAT,
    "transfer": Priority.TRANSFER,
    "release": Priority.TRANSFER,
    "seek": Priority.TRANSFER,
    "resume": Priority.TRANSFER,
    "complete": Priority.COMPLETE,
    "checkpoint": Priority.CHECKPOINT,
    "prepare": Priority.CHECKPOINT,
    "transact": Priority.CHECKPOINT,
    "take": Priority.TAKE,
    "cancel handoff by receiver": Priority.TAKE,
    "start handoff": Priority.START_HANDOFF,
}


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a write."""

    write: Write
    outcome: Literal["succeeded", "lost", "again", "no_effect", "refused", "unknown"]
    """``no_effect``: it was throttled, rejected or never sent. ``refused``: so it was for the effects that go with it.
    ``unknown``: nothing could be read before the deadline. For the others see ``settling.decide``."""
    row: LeaseRow | None
    """The row after the write, or as the deciding read found it."""
    sent_at: float
    by_read: bool = False
    """Whether only the deciding read shows the success."""
    error: Exception | None = None


class Writer:
    """Writes lease rows for one worker."""

    def __init__(self, store: LeaseStore, gate: Gate, clock: Clock) -> None:
        self._store, self._gate, self._clock = store, gate, clock

    async def carry_out(self, write: Write, *, not_after: float) -> Settled:
        """Send ``write``, at once or not at all, and settle it.

        Raises:
            MissingError: the lease table is gone.
        """
        async with self._gate.slot(PRIORITIES[write.operation]):
            sent_at = self._clock.monotonic()
            if sent_at >= not_after:
                return Settled(write, "no_effect", None, sent_at)
            failure: RequestError | None = None
            try:
                if not write.request_token:
                    return Settled(write, "succeeded", await self._store.write(write), sent_at)
                await self._store.transact(write.effects, request_token=write.request_token, write=write)
            except EffectsRefusedError as error:
                return Settled(write, "refused", None, sent_at, error=error)
            except ThrottledError as error:
                return Settled(write, "no_effect", None, sent_at, error=error)
            except MissingError:
                raise
            except RejectedError as error:
                return Settled(write, "no_effect", None, sent_at, error=error)
            except RequestError as error:
                failure = error
        return await self._find_out(write, sent_at, not_after, failure)

    async def _find_out(self, write: Write, sent_at: float, not_after: float, failure: RequestError | None) -> Settled:
        while self._clock.monotonic() < not_after:
            try:
                found = await self._store.read(write.key)
            except MissingError:
                raise
            except RequestError as again:
                failure = again
                await self._clock.sleep(READ_PAUSE_S)
            else:
                outcome = decide(write, found)
                told = None if isinstance(failure, ConditionFailedError) else failure
                return Settled(write, outcome, found, sent_at, by_read=True, error=told)
        return Settled(write, "unknown", None, sent_at, error=failure)
