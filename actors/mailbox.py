"""What waits to be handled by one actor. Bounded, cancel-safe, with a lane of its own for control messages.

An envelope stays in the mailbox until it has been handled, so no cancellation, however it is delivered, can lose it.
Three kinds go in: control (few and bounded by the tree itself), an actor's own outcomes and timers (as many as it has
tasks), and what others tell it. Only the last counts against the capacity.
"""

from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel

from actors.errors import ActorStoppedError, MailboxFullError

IN_A_ROW = 100
"""Messages handled before others get a turn, should the actor never wait: under 1 ms of cheap messages."""


class Reply:
    """The place where the answer to one ``ask`` arrives."""

    def __init__(self, name: str) -> None:
        self._event = anyio.Event()
        self._value: Any = None
        self._error: Exception | None = ActorStoppedError(name)

    def resolve(self, value: Any) -> None:
        self._value, self._error = value, None
        self._event.set()

    def fail(self, error: Exception) -> None:
        self._error = error
        self._event.set()

    async def wait(self) -> Any:
        await self._event.wait()
        if self._error is not None:
            raise self._error
        return self._value


@dataclass(eq=False, slots=True)
class Envelope:
    """A message on its way to be handled."""

    message: Any
    reply: Reply | None = None
    is_own: bool = False
    is_void: bool = False
    """Set when the task or timer that sent it has been cancelled meanwhile."""


@dataclass(eq=False)
class Mailbox:
    """The envelopes of one actor; it outlives the actor's restarts."""

    name: str
    capacity: int
    closed: bool = False
    _control: list[Envelope] = field(default_factory=list)  # an empty deque is fourteen times as large
    _messages: list[Envelope] = field(default_factory=list)
    _told: int = 0
    _in_a_row: int = 0
    _arrival: anyio.Event | None = None

    def __len__(self) -> int:
        return len(self._control) + len(self._messages)

    def put(self, envelope: Envelope) -> bool:
        """Accept a message; False if the actor has ended. Raises ``MailboxFullError`` at capacity."""
        if self.closed:
            return False
        if not envelope.is_own:
            if self._told >= self.capacity:
                raise MailboxFullError(self.name, self.capacity, type(envelope.message).__name__)
            self._told += 1
        self._messages.append(envelope)
        self._wake()
        return True

    def put_control(self, envelope: Envelope) -> bool:
        """Accept a control message, ahead of all others and whatever the capacity; False if the actor has ended."""
        if self.closed:
            return False
        self._control.append(envelope)
        self._wake()
        return True

    async def head(self) -> Envelope:
        """Wait for the next envelope and return it without taking it out."""
        self._in_a_row += 1
        if self._in_a_row >= IN_A_ROW:
            self._in_a_row = 0
            await anyio.lowlevel.checkpoint()
        while not (self._control or self._messages):
            self._arrival = anyio.Event()
            await self._arrival.wait()
        return self._control[0] if self._control else self._messages[0]

    def remove(self, envelope: Envelope) -> None:
        """Take out an envelope that ``head`` returned, once it has been handled."""
        lane = self._control if self._control and envelope is self._control[0] else self._messages
        lane.remove(envelope)
        if lane is self._messages and not envelope.is_own:
            self._told -= 1

    def drop_own(self) -> list[Any]:
        """Take out and return what belongs to an incarnation that has ended: outcomes, timers, requests to stop it."""
        own = [e.message for e in (*self._control, *self._messages) if e.is_own]
        self._control = [e for e in self._control if not e.is_own]
        self._messages = [e for e in self._messages if not e.is_own]
        return own

    def close(self) -> int:
        """Accept nothing more, fail what waits for an answer, and return how many messages are dropped."""
        self.closed = True
        waiting = [*self._control, *self._messages]
        self._control.clear()
        self._messages.clear()
        for envelope in waiting:
            if envelope.reply is not None:
                envelope.reply.fail(ActorStoppedError(self.name))
        return sum(1 for e in waiting if not e.is_own and e.reply is None)

    def _wake(self) -> None:
        if self._arrival is not None:
            self._arrival.set()
            self._arrival = None
