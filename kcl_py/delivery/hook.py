"""A call of the user's code, over all its attempts, and what it is called for."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from kcl_py.delivery.buffer import Cut, after
from kcl_py.delivery.ledger import Ledger, Range
from kcl_py.delivery.retry import brief
from kcl_py.errors import ProcessorError
from kcl_py.processor import RecordProcessor
from kcl_py.records import Record, Redelivery

LAST_HOOKS = ("shutdown_requested", "lease_lost")
"""The hooks that end an ownership before its shard has ended: called once, whatever the fence says."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Records that the processor has in hand."""

    cut: Cut
    entry: Range

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

    @property
    def redelivery(self) -> Redelivery | None:
        return Redelivery(self.attempt, self.last_failure) if self.attempt > 1 else None

    def work(
        self, processor: type[RecordProcessor], may_begin: Callable[[], bool]
    ) -> "Callable[[], Awaitable[Returned | HeldBack]]":
        """Make one attempt's coroutine function, named as users know it, for whoever reports on its task.

        ``may_begin`` is asked right before the user's code, for the process may have stood still since the task was
        started.
        """

        async def attempt() -> Returned | HeldBack:
            if self.name not in LAST_HOOKS and not may_begin():
                return HeldBack()
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


def contained(call: Callable[[], Awaitable[None]], name: str, log: Any) -> Callable[[], Awaitable[None]]:
    """Make a last hook's call one that never raises: nothing can change what happens next."""

    async def attempt() -> None:
        try:
            await call()
        except (Exception, SystemExit) as error:
            log.error("kcl_py.processor.failed", hook=name, error=brief(error))

    return attempt
