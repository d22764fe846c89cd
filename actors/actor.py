"""The actor: one mailbox, one message at a time, no waiting for the outside world.

A subclass handles typed messages in ``on_message``. Whatever takes time (a request, a user's coroutine) runs in a
task that the actor owns, started with ``run_task``; its outcome comes back as a message. So every actor answers
``stop`` and ``status`` at once. Times are seconds of the injected clock. Mirrors: GenServer of Erlang/OTP.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from actors.clock import Clock
from actors.errors import UnhandledMessageError
from actors.ref import Ref

if TYPE_CHECKING:
    from actors.cell import Cell
    from actors.task import OwnedTask
    from actors.timer import Timer

T = TypeVar("T")


class Actor:
    """Handles the messages of one mailbox, one after the other.

    The constructor takes what the actor needs to know; it runs outside the tree and must not start anything. A
    restart makes a new instance with the same mailbox and ref.
    """

    capacity = 1000
    """How many told messages may wait; one more is refused with ``MailboxFullError``."""
    stop_hook_s = 5.0
    """How long ``on_stop`` may take, in seconds, before it is cut off."""
    state = "running"
    """One word for people, shown in ``tree()``; set it on the instance as it changes."""

    _cell: "Cell"

    async def on_start(self) -> None:
        """Prepare: called once for each incarnation, before any message, in the actor's own task.

        Must not wait for the outside world: the supervisor waits for it. If it raises, the incarnation has failed.
        """

    async def on_message(self, message: Any) -> Any:
        """Handle one message; what is returned answers an ``ask``.

        Called in the actor's own task, one message at a time, and never while ``on_start`` or ``on_stop`` runs. If it
        raises while handling an ``ask``, the asker gets the exception; otherwise the incarnation has failed.
        """
        self.unhandled(message)

    async def on_stop(self) -> None:
        """Clean up: called once for each incarnation, whatever ended it, while owned tasks still run.

        Shielded from cancellation and bounded by ``stop_hook_s``. If it raises, that is reported and stopping goes on.
        """

    def status(self) -> Mapping[str, object]:
        """Describe yourself, for ``Ref.status``; must return at once."""
        return {"state": self.state}

    @property
    def ref(self) -> Ref:
        """The address of this actor."""
        return self._cell.ref

    @property
    def clock(self) -> Clock:
        return self._cell.clock

    def run_task(
        self,
        work: Callable[[], Awaitable[T]],
        *,
        done: Callable[[T], Any] | None = None,
        failed: Callable[[Exception], Any] | None = None,
        abandon_s: float | None = None,
    ) -> "OwnedTask":
        """Run ``work`` in a task that ends with this incarnation at the latest.

        Args:
            work: a coroutine function.
            done: makes the message that this actor receives when ``work`` has returned; None sends nothing.
            failed: makes the message for an exception; with None the exception ends the incarnation.
            abandon_s: for code that is not ours and may ignore its cancellation: how many seconds after that it is
                left behind, with the event ``TaskAbandoned``; None waits for it. On asyncio only.

        Returns:
            A handle; after its ``cancel()`` no message of it is handled any more.
        """
        return self._cell.run_task(work, done, failed, abandon_s)

    def send_after(self, delay_s: float, message: Any) -> "Timer":
        """Send ``message`` to this actor after ``delay_s`` seconds, unless cancelled before it is handled.

        Less than no seconds are none. Raises ValueError for what is no number.
        """
        return self._cell.send_after(delay_s, message)

    def monitor(self, ref: Ref) -> None:
        """Receive a ``Down`` message, on the control lane, each time an incarnation of ``ref`` ends.

        A monitor belongs to this incarnation: after a restart, monitor again.
        """
        self._cell.watch(ref._cell)

    def stop(self) -> None:
        """Stop after the message in hand."""
        self._cell.stop_nowait()

    def unhandled(self, message: Any) -> None:
        """Raise ``UnhandledMessageError``; for the last ``case _`` of ``on_message``."""
        raise UnhandledMessageError(self._cell.path, type(message).__name__)

    async def receive(self, message: Any) -> Any:
        """Take one message from the mailbox; a supervisor handles what concerns its children first."""
        return await self.on_message(message)

    async def wind_down(self) -> None:
        """Run ``on_stop``; a supervisor stops its children first."""
        with anyio.move_on_after(self.stop_hook_s) as limit:
            await self.on_stop()
        if limit.cancelled_caught:
            raise TimeoutError(f"on_stop of {self._cell.path!r} took longer than {self.stop_hook_s:g} s")

    def children(self) -> "list[Cell]":
        """The cells below this actor, in start order."""
        return []
