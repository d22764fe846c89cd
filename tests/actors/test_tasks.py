"""Owned tasks and timers: every outcome comes back, none after its time."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from actors import Child, Ended, MailboxFullError, OwnedTask, Restarting, TaskFailed, running
from actors.testing import EventLog, ManualClock, settle
from tests.actors.players import PATIENCE_S, Do, Echo, Hang, Note, Player, Story, Troupe, refs

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, slots=True)
class Failed:
    """The work has raised."""

    error: Exception


def gives(value: Any) -> Callable[[], Awaitable[Any]]:
    async def work() -> Any:
        return value

    return work


def raises(error: Exception) -> Callable[[], Awaitable[Any]]:
    async def work() -> Any:
        raise error

    return work


class Worker(Player):
    """Also writes down what has failed."""

    async def on_message(self, message: object) -> object:
        if isinstance(message, Failed):
            self.story.append(f"failed: {message.error}")
            return None
        return await super().on_message(message)


async def test_what_a_task_returns_comes_back_as_a_message() -> None:
    """Made by ``done``."""
    story: Story = []
    async with running(lambda: Worker(story=story)) as root:
        root.ref.tell(Do(lambda worker: worker.run_task(gives("a"), done=Note)))
        await settle()
    assert story == ["player starts", "player notes a", "player stops"]


async def test_what_a_task_raises_comes_back_as_a_message_and_the_actor_goes_on() -> None:
    """Made by ``failed``."""
    story: Story = []
    async with running(lambda: Worker(story=story)) as root:
        root.ref.tell(Do(lambda worker: worker.run_task(raises(OSError("no route")), failed=Failed)))
        await settle()
        root.ref.tell(Note("goes on"))
        await settle()
    assert story[1:-1] == ["failed: no route", "player notes goes on"]


async def test_what_a_task_raises_ends_the_actor_when_no_message_is_made_of_it() -> None:
    """With the task's own exception and traceback."""
    async with running(Worker) as root:
        root.ref.tell(Do(lambda worker: worker.run_task(raises(OSError("no route")))))
        with pytest.raises(OSError, match="no route") as caught:
            await root.wait()
        assert caught.traceback[-1].name == "work"


@pytest.mark.parametrize("work", [gives("a"), raises(OSError("no route"))], ids=["done", "failed"])
async def test_a_mistake_in_making_the_message_ends_the_actor(work: Callable[[], Awaitable[Any]]) -> None:
    """It is the actor's own code, and nobody else would ever know."""

    def mistake(_: object) -> object:
        raise LookupError("made wrong")

    async with running(Worker) as root:
        root.ref.tell(Do(lambda worker: worker.run_task(work, done=mistake, failed=mistake)))
        with pytest.raises(LookupError, match="made wrong"):
            await root.wait()


async def test_outcomes_get_through_to_a_full_mailbox() -> None:
    """As many as the actor has tasks; others' messages cannot keep them out."""
    story: Story = []
    begun, released = anyio.Event(), anyio.Event()

    class Small(Worker):
        capacity = 1

    async with running(lambda: Small(story=story)) as root:
        root.ref.tell(Do(lambda worker: [worker.run_task(gives(text), done=Note) for text in "ab"]))
        await root.ref.status(timeout_s=PATIENCE_S)
        root.ref.tell(Hang(begun, released))
        with pytest.raises(MailboxFullError):
            root.ref.tell(Note("c"))
        await settle()
        released.set()
        await settle()
    assert sorted(story[1:-1]) == ["player has waited", "player notes a", "player notes b"]


async def test_timers_and_tasks_of_an_incarnation_end_with_it(clock: ManualClock, log: EventLog) -> None:
    """The next one is not haunted, neither by what runs nor by what waits."""
    story: Story = []
    begun, released = anyio.Event(), anyio.Event()

    fails = anyio.Event()

    async def fail() -> None:
        await fails.wait()
        raise ValueError("boom")

    def set_out(worker: Worker) -> None:
        worker.run_task(anyio.sleep_forever)
        worker.run_task(fail)
        worker.send_after(5.0, Note("runs"))
        worker.send_after(1.0, Note("waits"))

    async with running(lambda: Troupe([Child("a", lambda: Worker("a", story))]), clock=clock, observer=log) as root:
        a = refs(root.ref)["a"]
        a.tell(Do(set_out))
        a.tell(Hang(begun, released))
        await begun.wait()
        await clock.advance(1.0)
        fails.set()
        await settle()
        assert a.tree().mailbox == 3  # the message in hand, what waits, and the failure
        released.set()
        await log.wait_for(Restarting, "a")
        await clock.advance(10.0)
    assert story == ["a starts", "a has waited", "a stops", "a starts", "a stops"]


async def test_a_task_that_is_cancelled_at_once_does_nothing() -> None:
    """Not even up to its first await."""
    story: Story = []

    async def work() -> None:
        story.append("begun")

    def begin_and_cancel(worker: Worker) -> OwnedTask:
        task = worker.run_task(work)
        task.cancel()
        return task

    async with running(lambda: Worker(story=story)) as root:
        task: OwnedTask = await root.ref.ask(Do(begin_and_cancel), timeout_s=PATIENCE_S)
        await task.ended()
    assert story == ["player starts", "player stops"]


async def test_a_task_has_ended_once_it_has_cleaned_up() -> None:
    """Whoever cancels a task can wait for it."""
    story: Story = []
    released = anyio.Event()

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await released.wait()
            story.append("cleaned up")

    async def wait_for(task: OwnedTask) -> None:
        await task.ended()
        story.append("ended")

    async with running(lambda: Worker(story=story)) as root, anyio.create_task_group() as others:
        task: OwnedTask = await root.ref.ask(Do(lambda w: w.run_task(work)), timeout_s=PATIENCE_S)
        others.start_soon(wait_for, task)
        await settle()
        task.cancel()
        await settle()
        assert story == ["player starts"]
        released.set()
    assert story[:3] == ["player starts", "cleaned up", "ended"]


async def test_a_cancelled_task_that_finishes_all_the_same_sends_nothing() -> None:
    """Whoever cancels a task need not expect it any more."""
    story: Story = []
    released = anyio.Event()

    async def work() -> str:
        with anyio.CancelScope(shield=True):
            await released.wait()
        return "void"

    async with running(lambda: Worker(story=story)) as root:
        task: OwnedTask = await root.ref.ask(Do(lambda w: w.run_task(work, done=Note)), timeout_s=PATIENCE_S)
        await settle()
        task.cancel()
        released.set()
        await settle()
    assert story == ["player starts", "player stops"]


async def test_a_cancelled_task_that_fails_to_clean_up_is_reported_and_ends_nothing(log: EventLog) -> None:
    """Its outcome does not count any more, but no failure goes unseen."""

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise OSError("cannot clean up")

    async with running(Worker, observer=log) as root:
        task: OwnedTask = await root.ref.ask(Do(lambda w: w.run_task(work, failed=Failed)), timeout_s=PATIENCE_S)
        await settle()
        task.cancel()
        await log.wait_for(TaskFailed)
        assert await root.ref.ask(Echo("goes on"), timeout_s=PATIENCE_S) == "goes on"
    assert [str(e.error) for e in log.of(TaskFailed)] == ["cannot clean up"]
    assert log.of(Ended) == [Ended("root", None)]


async def test_every_one_of_several_failing_tasks_is_reported_once(log: EventLog) -> None:
    """The first ends the actor, the others come too late for that."""
    errors = [OSError(str(n)) for n in range(3)]
    async with running(Worker, observer=log) as root:
        root.ref.tell(Do(lambda worker: [worker.run_task(raises(e)) for e in errors]))
        with pytest.raises(OSError, match=r"[012]"):
            await root.wait()
    (ended,) = log.of(Ended)
    assert sorted(map(str, [ended.error, *(e.error for e in log.of(TaskFailed))])) == ["0", "1", "2"]


async def test_a_task_that_fails_while_its_actor_stops_is_reported(log: EventLog) -> None:
    """The stop stays a clean one."""
    error = OSError("too late to matter")

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise error

    async with running(Worker, observer=log) as root:
        root.ref.tell(Do(lambda worker: worker.run_task(work)))
        await settle()
    assert log.of(TaskFailed) == [TaskFailed("root", error)]
    assert log.of(Ended) == [Ended("root", None)]
