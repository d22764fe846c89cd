"""Where an actor lives: its mailbox, its tasks, and what happens when an incarnation ends.

A cell outlives the incarnations of its actor. It turns every end, be it a return, an exception, a scope cancel or a
native task cancel, into one ``Exit``, runs the stop hook shielded and bounded, and loses no accepted message.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio.abc import TaskGroup

from actors.actor import Actor
from actors.clock import Clock
from actors.errors import ActorError, KilledError
from actors.events import Ended, Event, MessagesDropped, Observer, Started, StopHookFailed
from actors.mailbox import Envelope, Mailbox
from actors.ref import Down, Node, Ref, StatusRequest, Stop

_CANCELLED_FOR_GOOD = float("-inf")


class TaskFailedError(ActorError):
    """Control: an owned task without a ``failed`` message raised; carries the exception as its cause."""


class OwnedTask:
    """A task or timer of an actor."""

    __slots__ = ("_envelope", "_scope", "is_cancelled")

    def __init__(self) -> None:
        self._scope = anyio.CancelScope()
        self._envelope: Envelope | None = None
        self.is_cancelled = False

    def cancel(self) -> None:
        """Stop the task, and void its message if that is already waiting; idempotent."""
        self.is_cancelled = True
        self._scope.cancel()
        if self._envelope is not None:
            self._envelope.is_void = True

    async def run(self, work: Callable[[], Awaitable[Any]], post: Callable[[Any], Envelope], fail: Any) -> None:
        with self._scope:
            try:
                value = await work()
            except Exception as error:  # every outcome of a task goes to its owner
                self._envelope = fail(error)
            except anyio.get_cancelled_exc_class():
                if self.is_cancelled or is_scope_cancelled():
                    raise
                self._envelope = fail(KilledError("an owned task", "its task was cancelled from outside"))
            else:
                if not self.is_cancelled:
                    self._envelope = post(value)


def is_scope_cancelled() -> bool:
    """Whether a cancel scope around the caller is cancelled: tells a scope cancel from a native ``Task.cancel()``."""
    return anyio.current_effective_deadline() == _CANCELLED_FOR_GOOD


class Cell:
    """The place of one actor in the tree."""

    def __init__(
        self, make: Callable[[], Actor], *, name: str, parent: "Cell | None", clock: Clock, observer: Observer
    ) -> None:
        self._make = make
        self.name, self._parent, self.clock, self._observer = name, parent, clock, observer
        self.path: str = f"{parent.path}/{name}" if parent else name
        self.mailbox = Mailbox(self.path, Actor.capacity)
        self.ref = Ref(self)
        self.watchers: list[Ref] = []
        self.state = "starting"
        self.restarts = 0
        self.error: Exception | None = None
        self.gone = anyio.Event()
        self.started = anyio.Event()
        self.ended = anyio.Event()
        self._actor: Actor | None = None
        self._tasks: TaskGroup | None = None
        self._scope = anyio.CancelScope()
        self._kill_reason: str | None = None
        self._has_returned = False

    def new(self, make: Callable[[], Actor], name: str) -> "Cell":
        """Make a cell below this one."""
        return Cell(make, name=name, parent=self, clock=self.clock, observer=self._observer)

    def report(self, make: Callable[..., Event], *args: Any) -> None:
        self._observer(make(self.path, *args))

    def notify(self, message: Any) -> None:
        self.mailbox.put_control(Envelope(message))

    def stop_nowait(self) -> None:
        self.mailbox.put_control(Envelope(Stop(), is_own=True))

    def kill(self, why: str) -> None:
        """Cancel the running incarnation."""
        self._kill_reason = why
        self._scope.cancel()

    def snapshot(self) -> Node:
        actor = self._actor
        state = actor.state if actor is not None and self.state == "running" else self.state
        below = tuple(cell.snapshot() for cell in actor.children()) if actor is not None else ()
        return Node(self.name, state, len(self.mailbox), self.restarts, below)

    async def run(self) -> None:
        """Live one incarnation, then set ``error`` and ``ended``. Raises only a scope cancel that comes from above."""
        self.error, self._scope = None, anyio.CancelScope()
        self._kill_reason, self._has_returned = None, False
        try:
            with self._scope:
                await self._incarnation()
            if not self._has_returned and self.error is None:
                self.error = KilledError(self.path, self._kill_reason or "its tasks were cancelled from outside")
        finally:
            self._actor = None
            self.mailbox.drop_own()
            self.report(Ended, self.error)
            self.ended.set()
            self.started.set()

    async def _incarnation(self) -> None:
        self.state = "starting"
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                try:
                    await self._live()
                finally:
                    tasks.cancel_scope.cancel()
        except anyio.get_cancelled_exc_class():
            if is_scope_cancelled():
                raise
            self.error = KilledError(self.path, "its task was cancelled from outside")

    async def _live(self) -> None:
        actor: Actor | None = None
        try:
            actor = self._make()
            actor._cell = self
            self.mailbox.capacity = actor.capacity
            self._actor = actor
            await actor.on_start()
            self.state = "running"
            self.report(Started)
            self.started.set()
            await self._serve(actor)
            self._has_returned = True
        except TaskFailedError as error:
            self.error = error.__cause__ if isinstance(error.__cause__, Exception) else error
        except Exception as error:  # the supervisor decides what it means
            self.error = error
        except anyio.get_cancelled_exc_class():
            if not is_scope_cancelled():
                self.error = KilledError(self.path, "its task was cancelled from outside")
            raise
        finally:
            self.state = "stopping"
            if actor is not None:
                await self._wind_down(actor)

    async def _serve(self, actor: Actor) -> None:
        while True:
            envelope = await self.mailbox.head()
            match envelope.message:
                case Stop():
                    self.mailbox.remove(envelope)
                    return
                case StatusRequest() if envelope.reply is not None:
                    envelope.reply.resolve(actor.status())
                    self.mailbox.remove(envelope)
                case TaskFailedError() as failure:
                    self.mailbox.remove(envelope)
                    raise failure
                case _:
                    await self._handle(actor, envelope)

    async def _handle(self, actor: Actor, envelope: Envelope) -> None:
        if envelope.is_void:
            self.mailbox.remove(envelope)
            return
        try:
            value = await actor.receive(envelope.message)
        except Exception as error:  # an asker's question, or the end of this incarnation
            self.mailbox.remove(envelope)
            if envelope.reply is None:
                raise
            envelope.reply.fail(error)
        else:
            self.mailbox.remove(envelope)
            if envelope.reply is not None:
                envelope.reply.resolve(value)

    async def _wind_down(self, actor: Actor) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await actor.wind_down()
            except Exception as error:  # reported; stopping goes on
                self.report(StopHookFailed, error)

    def run_task(
        self,
        work: Callable[[], Awaitable[Any]],
        done: Callable[[Any], Any] | None,
        failed: Callable[[Exception], Any] | None,
    ) -> OwnedTask:
        task = OwnedTask()

        def post(value: Any) -> Envelope | None:
            if done is None:
                return None
            envelope = Envelope(done(value), is_own=True)
            self.mailbox.put(envelope)
            return envelope

        def fail(error: Exception) -> Envelope:
            if failed is not None:
                envelope = Envelope(failed(error), is_own=True)
                self.mailbox.put(envelope)
                return envelope
            failure = TaskFailedError(self.path)
            failure.__cause__ = error
            envelope = Envelope(failure, is_own=True)
            self.mailbox.put_control(envelope)
            return envelope

        assert self._tasks is not None, "tasks can be started from on_start on, not in the constructor"
        self._tasks.start_soon(task.run, work, post, fail, name=f"{self.path} task")
        return task

    def start_soon(self, work: Callable[..., Awaitable[Any]], *args: Any) -> None:
        """Run a child in this incarnation's task group."""
        assert self._tasks is not None
        self._tasks.start_soon(work, *args)

    def tell_watchers(self, *, is_restarting: bool) -> None:
        down = Down(self.ref, self.error, is_restarting)
        for ref in self.watchers:
            ref._cell.notify(down)

    def close(self) -> None:
        """The actor will not live again: refuse messages, tell the watchers."""
        self.state = "stopped" if self.error is None else "failed"
        dropped = self.mailbox.close()
        if dropped:
            self.report(MessagesDropped, dropped)
        self.gone.set()
        self.tell_watchers(is_restarting=False)
        self.watchers.clear()
