"""Code that ignores its cancellation does not keep the tree from stopping."""

import time

import anyio
import pytest

from actors import Ended, OwnedTask, TaskAbandoned, TaskFailed, running
from actors.testing import EventLog, settle
from tests.actors.players import PATIENCE_S, Do, Note, Player, Story, Troupe, players, refs

pytestmark = pytest.mark.anyio


class Stubborn:
    """Catches everything and goes on, until it is released at last."""

    def __init__(self) -> None:
        self.begun, self.released = anyio.Event(), anyio.Event()
        self.times_cancelled = 0

    async def process(self) -> str:
        self.begun.set()
        while not self.released.is_set():
            try:
                await self.released.wait()
            except BaseException:  # what users write
                self.times_cancelled += 1
        return "done at last"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_tree_stops_in_time_around_a_handler_that_swallows_its_cancellation(log: EventLog) -> None:
    """The handler is named, it is cancelled once, and the event loop does not spin."""
    story: Story = []
    stubborn = Stubborn()
    with anyio.fail_after(PATIENCE_S):
        async with running(lambda: Troupe(players("ab", story)), observer=log, grace_s=PATIENCE_S) as root:
            b = refs(root.ref)["b"]
            b.tell(Do(lambda player: player.run_task(stubborn.process, done=Note, abandon_s=1.0)))
            await stubborn.begun.wait()
            cpu = time.process_time()
    assert time.process_time() - cpu < 0.5  # a spin would take it whole
    assert stubborn.times_cancelled == 1
    assert log.of(TaskAbandoned) == [TaskAbandoned("root/b", "Stubborn.process", 1.0)]
    assert {e.error for e in log.of(Ended)} == {None}
    assert story == ["a starts", "b starts", "b stops", "a stops"]
    stubborn.released.set()
    await settle()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_siblings_go_on_while_a_stubborn_handler_is_being_given_up(log: EventLog) -> None:
    """A message takes no longer than before."""
    story: Story = []
    stubborn = Stubborn()
    async with running(lambda: Troupe(players("ab", story)), observer=log) as root:
        a, b = refs(root.ref).values()
        b.tell(Do(lambda player: player.run_task(stubborn.process, abandon_s=PATIENCE_S)))
        await stubborn.begun.wait()
        b.stop()
        await settle()
        a.tell(Note("still here"))
        await settle()
        assert story[-1] == "a notes still here"
        assert log.of(Ended) == []
        stubborn.released.set()
        await log.wait_for(Ended, "b")
    assert log.of(TaskAbandoned) == []


async def test_unruly_work_that_behaves_is_like_any_other(log: EventLog) -> None:
    """Its value, its failure and its cancellation take the usual ways."""
    story: Story = []

    async def fine() -> str:
        return "fine"

    async def bad() -> str:
        raise OSError("no route")

    def start(player: Player) -> None:
        player.run_task(fine, done=Note, abandon_s=1.0)
        player.run_task(bad, failed=lambda error: Note(str(error)), abandon_s=1.0)

    async with running(lambda: Player(story=story), observer=log) as root:
        root.ref.tell(Do(start))
        task: OwnedTask = await root.ref.ask(
            Do(lambda player: player.run_task(anyio.sleep_forever, done=Note, abandon_s=PATIENCE_S)),
            timeout_s=PATIENCE_S,
        )
        await settle()
        task.cancel()
        await settle()
    assert sorted(story[1:-1]) == ["player notes fine", "player notes no route"]
    assert log.of(TaskAbandoned) == []


async def test_unruly_work_that_fails_to_clean_up_is_reported(log: EventLog) -> None:
    """Ended in time, it is no longer abandoned, but its failure is seen."""

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise OSError("cannot clean up")

    async with running(Player, observer=log) as root:
        root.ref.tell(Do(lambda player: player.run_task(work, abandon_s=PATIENCE_S)))
        await settle()
    assert [str(e.error) for e in log.of(TaskFailed)] == ["cannot clean up"]
    assert log.of(TaskAbandoned) == []


@pytest.mark.anyio
@pytest.mark.parametrize("turns", range(5))
async def test_unruly_work_does_not_begin_once_it_is_cancelled(turns: int) -> None:
    """Whoever cancels it, and sees that it has not begun, can rely on that."""
    story: list[str] = []
    has_begun = False

    async def work() -> None:
        nonlocal has_begun
        has_begun = True
        story.append("begun")
        await anyio.sleep_forever()

    async with running(lambda: Troupe(players("a", []))) as root:
        tasks: list[OwnedTask] = []
        refs(root.ref)["a"].tell(Do(lambda player: tasks.append(player.run_task(work, abandon_s=1.0))))
        while not tasks:
            await anyio.lowlevel.checkpoint()
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        tasks[0].cancel()
        story.append("cancelled, had begun" if has_begun else "cancelled before")
        await tasks[0].ended()
    assert story in (["cancelled before"], ["begun", "cancelled, had begun"])
