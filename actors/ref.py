"""How one actor reaches another: a ref, never the actor itself. A ref stays valid over restarts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import anyio

from actors.errors import ActorStoppedError, AskTimeoutError
from actors.mailbox import Envelope, Reply

if TYPE_CHECKING:
    from actors.cell import Cell


T = TypeVar("T")


class Question(Generic[T]):
    """Optional base of a message that is asked: names the type of its answer, which ``ask`` then returns."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Down:
    """Sent to whoever monitors an actor, when an incarnation of it has ended."""

    ref: "Ref"
    error: Exception | None
    """Why, with its traceback; None after a clean stop."""
    is_restarting: bool
    """Whether its supervisor starts it again."""

    @property
    def name(self) -> str:
        return self.ref.name


@dataclass(frozen=True, slots=True)
class Stop:
    """Control: finish the message in hand, then stop."""


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """Control: say how you are."""


@dataclass(frozen=True, slots=True)
class Node:
    """A snapshot of an actor and all below it."""

    name: str
    state: str
    mailbox: int
    """Messages waiting, with the one in hand."""
    restarts: int
    children: tuple["Node", ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines("", ""))

    def _lines(self, first: str, rest: str) -> list[str]:
        extra = f", {self.restarts} restarts" if self.restarts else ""
        lines = [f"{first}{self.name} [{self.state}] mailbox {self.mailbox}{extra}"]
        for child in self.children:
            is_last = child is self.children[-1]
            lines += child._lines(rest + ("└── " if is_last else "├── "), rest + ("    " if is_last else "│   "))
        return lines


class Ref:
    """The address of an actor."""

    __slots__ = ("_cell",)

    def __init__(self, cell: "Cell") -> None:
        self._cell = cell

    @property
    def name(self) -> str:
        return self._cell.name

    @property
    def path(self) -> str:
        """Names from the root, joined by ``/``."""
        return self._cell.path

    @property
    def is_alive(self) -> bool:
        """False once the actor has ended for good."""
        return not self._cell.mailbox.closed

    def tell(self, message: object) -> bool:
        """Send ``message`` without waiting.

        Returns:
            True if it was accepted; False if the actor has ended for good.

        Raises:
            MailboxFullError: the mailbox is at its capacity; nothing was sent.
        """
        return self._cell.mailbox.put(Envelope(message))

    @overload
    async def ask(self, message: Question[T], *, timeout_s: float) -> T: ...

    @overload
    async def ask(self, message: object, *, timeout_s: float) -> Any: ...

    async def ask(self, message: object, *, timeout_s: float) -> Any:
        """Send ``message`` and wait for what the actor's ``on_message`` returns.

        Raises:
            AskTimeoutError: no answer within ``timeout_s`` seconds.
            ActorStoppedError: the actor has ended.
            MailboxFullError: the mailbox is at its capacity.
            Exception: whatever the actor raised while handling it; the actor itself goes on.
        """
        reply = Reply(self.path)
        if not self._cell.mailbox.put(Envelope(message, reply)):
            raise ActorStoppedError(self.path)
        return await self._answer(reply, timeout_s, type(message).__name__)

    async def status(self, *, timeout_s: float) -> Mapping[str, object]:
        """Ask, on the control lane, for ``Actor.status()``: answered even when the mailbox is full.

        Raises:
            AskTimeoutError: the actor is busy in one message for longer than ``timeout_s``.
            ActorStoppedError: the actor has ended.
        """
        reply = Reply(self.path)
        if not self._cell.mailbox.put_control(Envelope(StatusRequest(), reply)):
            raise ActorStoppedError(self.path)
        status: Mapping[str, object] = await self._answer(reply, timeout_s, "StatusRequest")
        return status

    def stop(self) -> None:
        """Ask the actor to stop after the message in hand; its supervisor then applies its restart policy.

        Asked of the running incarnation, or of the next one if none runs. An incarnation that fails first takes the
        request with it.
        """
        self._cell.stop_nowait()

    def tree(self) -> Node:
        """Take a snapshot of this actor and all below it."""
        return self._cell.snapshot()

    async def ended(self) -> None:
        """Wait until the actor has ended for good."""
        await self._cell.gone.wait()

    async def _answer(self, reply: Reply, timeout_s: float, what: str) -> Any:
        with anyio.move_on_after(timeout_s):
            return await reply.wait()
        raise AskTimeoutError(self.path, timeout_s, what)

    def __repr__(self) -> str:
        return f"<Ref {self.path} {self._cell.state}>"
