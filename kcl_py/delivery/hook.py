"""A call of the user's code, over all its attempts, and what it is called for."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from actors import OwnedTask
from kcl_py.config import Delivery as Options
from kcl_py.delivery.buffer import Cut, after
from kcl_py.delivery.ledger import Ledger, Range
from kcl_py.delivery.retry import backoff_s, brief
from kcl_py.errors import ProcessorError
from kcl_py.processor import RecordProcessor
from kcl_py.records import Record, Redelivery

LAST_HOOKS = ("shutdown_requested", "lease_lost")
"""The hooks that end an ownership before its shard has ended: the one while the lease is held, the other whenever."""


@dataclass(slots=True)
class Delivery:
    """Records that the processor has in hand, or is to have next."""

    cut: Cut
    entry: Range | None = None
    """None until they are handed over."""

    def hand_over(self, ledger: Ledger) -> list[Record]:
        """Note that the processor gets them now, for the first time or again; return what is not finished."""
        if self.entry is None:
            records = self.cut.records
            self.entry = ledger.open(records[0].position, records[-1].position, len(records))
        return self.left(ledger)

    def left(self, ledger: Ledger) -> list[Record]:
        """What is not finished: all of it, unless the processor has checkpointed a part."""
        return after(self.cut.records, ledger.prefix)

    def place(self, ledger: Ledger) -> str:
        """The sequence number of the first record that is not finished; of the last record if all are."""
        return (self.left(ledger) or self.cut.records[-1:])[0].sequence_number


@dataclass(slots=True)
class Hook:
    """One hook of the processor."""

    name: str
    call: Callable[[], Awaitable[None]]
    on_return: Callable[[], None]
    attempt: int = 1
    last_failure: str = ""
    has_begun: bool = False
    """Whether the attempt in hand has reached the user's code."""

    @property
    def redelivery(self) -> Redelivery | None:
        return Redelivery(self.attempt, self.last_failure) if self.attempt > 1 else None

    @property
    def is_last(self) -> bool:
        """Whether it ends an ownership before its shard has ended."""
        return self.name in LAST_HOOKS

    def fail(
        self, error: Exception, options: Options, jitter: Callable[[float, float], float], *, is_last: bool
    ) -> float | None:
        """Note that the attempt has raised; return the pause before the next one, None if there is none."""
        self.last_failure = brief(error)
        if is_last or self.attempt > options.retries:
            return None
        longest_s = backoff_s(self.attempt, options.backoff_s, options.backoff_max_s)
        return round(jitter(longest_s / 2, longest_s), 3)

    def work(
        self, processor: type[RecordProcessor], may_begin: Callable[[], bool], before: OwnedTask | None
    ) -> "Callable[[], Awaitable[Returned | HeldBack]]":
        """Make one attempt's coroutine function, named as users know it, for whoever reports on its task.

        ``may_begin`` is asked right before the user's code, for the process may have stood still since the task was
        started. ``before`` was cancelled and may still clean up: two never run at a time.
        """
        self.has_begun = False

        async def attempt() -> Returned | HeldBack:
            if before is not None:
                await before.ended()
            if not may_begin():
                return HeldBack()
            self.has_begun = True
            try:
                await self.call()
            except SystemExit as error:  # of the user's code: no hook ends the process, with its leases left behind
                raise ProcessorError(
                    f"cannot exit from {attempt.__qualname__}: expected it to return or to raise an Exception, "
                    f"found {error!r}; to stop the worker, send it SIGTERM or call Stream.stop"
                ) from error
            return Returned()

        attempt.__qualname__ = f"{processor.__qualname__}.{self.name}"
        return attempt


@dataclass(frozen=True, slots=True)
class Returned:
    """The hook in hand has returned."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """The hook in hand was not called: the fence no longer allowed it."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The hook in hand has raised."""

    error: Exception


@dataclass(frozen=True, slots=True)
class TryAgain:
    """The pause before the next attempt is over."""


@dataclass(frozen=True, slots=True)
class OutOfTime:
    """The drain has reached its limit."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """The hook that was cancelled last runs no more."""


def contained(call: Callable[[], Awaitable[None]], name: str, log: Any) -> Callable[[], Awaitable[None]]:
    """Make a last hook's call one that never raises: nothing can change what happens next."""

    async def attempt() -> None:
        try:
            await call()
        except (Exception, SystemExit) as error:
            log.error("kcl_py.processor.failed", hook=name, error=brief(error))

    return attempt
