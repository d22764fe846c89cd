"""Where an actor lives: its mailbox, its tasks, and what happens when an incarnation ends.

A cell outlives the incarnations of its actor. It turns every end, be it a return, an exception, a scope cancel or a
native task cancel, into one ``Ended``, runs the stop hook shielded and bounded, and loses no accepted message. Limits
(grace, stop hook) are seconds of the event loop.
"""

from collections.abc import Awaitable, Callable, Coroutine
from math import isnan
from typing import Any

import anyio
from anyio.abc import TaskGroup

from actors.actor import Actor
from actors.clock import Clock
from actors.errors import KilledError
from actors.events import (
    Ended,
    Event,
    GraceExceeded,
    MessagesDropped,
    Observer,
    Started,
    StopHookFailed,
    TaskAbandoned,
    TaskFailed,
    observe,
)
from actors.flag import Flag
from actors.mailbox import Envelope, Mailbox
from actors.ref import Down, Node, Ref, StatusRequest, Stop
from actors.task import OwnedTask, TaskCrashed
from actors.timer import Timer
from actors.unruly import run_unruly


class Cell:
    """The place of one actor in the tree."""

    def __init__(
        self, make: Callable[[], Actor], *, name: str, parent: "Cell | None", clock: Clock, observer: Observer
    ) -> None:
        self._make = make
        self.name, self.clock, self._observer = name, clock, observer
        self.path: str = f"{parent.path}/{name}" if parent else name
        self.mailbox = Mailbox(self.path, Actor.capacity)
        self.ref = Ref(self)
        self.watchers: dict[Cell, None] = {}
        self._watched: dict[Cell, None] = {}
        self.restarts = 0
        self.gone = Flag()
        self.prepare()

    def new(self, make: Callable[[], Actor], name: str) -> "Cell":
        """Make a cell below this one."""
        return Cell(make, name=name, parent=self, clock=self.clock, observer=self._observer)

    def prepare(self) -> None:
        """Make ready for an incarnation, which lives when ``run`` is called."""
        self.state = "starting"
        self.error: Exception | None = None
        self.started, self.ended = Flag(), Flag()
        self.has_started = False
        self._has_begun = False
        self._actor: Actor | None = None
        self._tasks: TaskGroup | None = None
        self.timers: dict[Timer, None] = {}
        self._scope = anyio.CancelScope()
        self._kill_reason: str | None = None

    async def run(self) -> None:
        """Live one incarnation, then set ``error`` and ``ended``. Raises no ``Exception`` and no cancellation.

        The task that calls it must end with it: a cancellation from above is not passed on.
        """
        if self.ended.is_set():
            return
        self._has_begun = True
        try:
            with self._scope:
                await self._incarnation()
        except anyio.get_cancelled_exc_class():
            self._fail(self._killed())
        finally:
            self._end()

    async def stop(self, grace_s: float) -> None:
        """End the running incarnation, if there is one: by request, and after its grace by force."""
        if not self._has_begun:  # and never will: its task was cancelled before the first step, or finds this
            self._fail(self._killed())
            self._end()
        if self.ended.is_set():
            return
        self.stop_nowait()
        with anyio.move_on_after(grace_s):
            await self.ended.wait()
        if not self.ended.is_set():
            self.report(GraceExceeded, grace_s)
            self.kill(f"it did not stop within its grace of {grace_s:g} s")
            await self.ended.wait()

    def stop_nowait(self) -> None:
        """Ask the running incarnation, or the one being started, to stop."""
        self.mailbox.put_control(Envelope(Stop(), is_own=True))

    def kill(self, why: str) -> None:
        """Cancel the running incarnation, and with it all below."""
        self._kill_reason = why
        self._scope.cancel()

    def close(self) -> None:
        """The actor will not live again: refuse messages, tell the watchers. Idempotent."""
        if self.mailbox.closed:
            return
        dropped = self.mailbox.close()
        if dropped:
            self.report(MessagesDropped, dropped)
        self.gone.set()
        self.tell_watchers(is_restarting=False)
        for watcher in self.watchers:
            del watcher._watched[self]
        self.watchers.clear()

    def snapshot(self) -> Node:
        """Describe this actor and all below it, as they are now."""
        state = self._actor.state if self._actor is not None and self.state == "running" else self.state
        return Node(self.name, state, len(self.mailbox), self.restarts, tuple(c.snapshot() for c in self._below()))

    def report(self, make: Callable[..., Event], *args: Any) -> None:
        """Tell the observer."""
        observe(self._observer, make(self.path, *args))

    def report_task_failure(self, error: Exception) -> None:
        """Report the failure of a task that can no longer end the incarnation."""
        self.report(TaskFailed, error)

    def watch(self, other: "Cell") -> None:
        """Have this incarnation told about every end of ``other``."""
        if other.mailbox.closed:
            self._notify(Down(other.ref, other.error, is_restarting=False))
        else:
            other.watchers[self] = self._watched[other] = None

    def tell_watchers(self, *, is_restarting: bool) -> None:
        """Tell whoever monitors this actor how its last incarnation ended."""
        down = Down(self.ref, self.error, is_restarting)
        for watcher in self.watchers:
            watcher._notify(down)

    def run_task(
        self,
        work: Callable[[], Awaitable[Any]],
        done: Callable[[Any], Any] | None,
        failed: Callable[[Exception], Any] | None,
        abandon_s: float | None = None,
    ) -> OwnedTask:
        """Start a task that ends with this incarnation at the latest."""
        task = OwnedTask(self, work, done, failed)
        if abandon_s is not None:
            task.work = self._unruly(work, abandon_s, lambda: task.is_cancelled)
        self.start_soon(task.run, name=f"{self.path} task")
        return task

    def send_after(self, delay_s: float, message: Any) -> Timer:
        """Start a timer that ends with this incarnation at the latest."""
        self._expect_running("start a timer")
        if isnan(delay_s):  # an event loop would put its other timers in disorder
            raise ValueError(f"cannot start a timer in {self.path!r}: expected seconds, found {delay_s!r}")
        return Timer(self, max(delay_s, 0.0), message)

    def _unruly(
        self, work: Callable[[], Awaitable[Any]], abandon_s: float, is_cancelled: Callable[[], bool]
    ) -> Callable[[], Awaitable[Any]]:
        name = getattr(work, "__qualname__", type(work).__name__)
        return lambda: run_unruly(
            work,
            abandon_s=abandon_s,
            on_abandon=lambda: self.report(TaskAbandoned, name, abandon_s),
            is_cancelled=is_cancelled,
        )

    def start_soon(self, work: Callable[..., Coroutine[Any, Any, None]], *args: Any, name: str) -> None:
        """Run ``work``, which handles its own failures, in this incarnation's task group."""
        self._expect_running("start a task").start_soon(work, *args, name=name)

    def _expect_running(self, to_do: str) -> TaskGroup:
        if self._tasks is None:
            raise RuntimeError(f"cannot {to_do} in {self.path!r}: expected a running actor, found it {self.state}")
        return self._tasks

    # --- one incarnation ---------------------------------------------------------------------------------------

    async def _incarnation(self) -> None:
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                await self._live()
            finally:
                if tasks.cancel_scope.cancel_called:  # a task was cancelled natively before its first step
                    self._fail(self._killed())
                tasks.cancel_scope.cancel()

    async def _live(self) -> None:
        try:
            self._actor = actor = self._make()
            actor._cell = self
            self.mailbox.capacity = actor.capacity
            await actor.on_start()
            self.state, self.has_started = "running", True
            self.report(Started)
            self.started.set()
            await self._serve(actor)
        except Exception as error:  # the supervisor decides what it means
            self._fail(error)
        except BaseException as error:  # a cancellation of any kind, or the end of the program
            self._fail(self._killed(error))
            raise
        finally:
            self.state = "stopping"
            if self._actor is not None:
                await self._wind_down(self._actor)

    async def _serve(self, actor: Actor) -> None:
        while True:
            envelope = await self.mailbox.head()
            match envelope.message:
                case Stop():
                    self.mailbox.remove(envelope)
                    return
                case TaskCrashed(error):
                    self.mailbox.remove(envelope)
                    raise error
                case _ if envelope.is_void:
                    self.mailbox.remove(envelope)
                case _:
                    await self._handle(actor, envelope)
            del envelope  # whoever waits, or has ended, keeps no message in memory

    async def _handle(self, actor: Actor, envelope: Envelope) -> None:
        message = envelope.message
        try:
            value = actor.status() if isinstance(message, StatusRequest) else await actor.receive(message)
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
            except anyio.get_cancelled_exc_class() as cancelled:  # natively, since no scope reaches in here
                killed = self._killed(cancelled)
                self._fail(killed)
                self.report(StopHookFailed, killed)

    def _end(self) -> None:
        if self._scope.cancel_called:
            self._fail(self._killed())
        for cell in self._below():  # none, unless the supervisor's stopping was itself cut off
            cell.close()
        self._actor = self._tasks = None
        for timer in tuple(self.timers):
            timer.cancel()
        for other in self._watched:
            del other.watchers[self]
        self._watched.clear()
        for message in self.mailbox.drop_own():
            if isinstance(message, TaskCrashed):
                self.report_task_failure(message.error)
        self.state = "stopped" if self.error is None else "failed"
        self.report(Ended, self.error)
        self.ended.set()
        self.started.set()

    def _fail(self, error: Exception) -> None:
        """Record why the incarnation ends; what comes after the first reason is its consequence."""
        if self.error is None:
            self.error = error

    def _killed(self, by: BaseException | None = None) -> KilledError:
        why = self._kill_reason or "its task was cancelled from outside"
        if by is None:
            return KilledError(self.path, why)
        if not isinstance(by, anyio.get_cancelled_exc_class()):
            why = f"{type(by).__name__} ends the program"
        return KilledError(self.path, why).with_traceback(by.__traceback__)

    def _below(self) -> "list[Cell]":
        return self._actor.children() if self._actor is not None else []

    def _notify(self, message: Any) -> None:
        self.mailbox.put_control(Envelope(message, is_own=True))
