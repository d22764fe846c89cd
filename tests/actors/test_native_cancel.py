"""``Task.cancel()`` from outside, which knows nothing of scopes: it is a failure of whom it hits, never a clean end."""

import asyncio

import anyio
import pytest

from actors import (
    Child,
    Ended,
    Intensity,
    KilledError,
    OwnedTask,
    Restart,
    Restarting,
    Started,
    StopHookFailed,
    TaskFailed,
    running,
)
from actors.testing import EventLog, settle
from tests.actors.players import (
    PATIENCE_S,
    Do,
    Echo,
    Fail,
    Hang,
    Note,
    Player,
    StartChild,
    StopChild,
    Story,
    Troupe,
    players,
    refs,
)

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


def task_of(path: str) -> asyncio.Task[object]:
    """Return the task that lives an actor, by the actor's path."""
    (task,) = [t for t in asyncio.all_tasks() if t.get_name() == path]
    return task


class SlowPlayer(Player):
    """Waits in its hooks until ``released``."""

    def __init__(self, name: str, story: Story, hook: str) -> None:
        super().__init__(name, story)
        self.hook, self.begun, self.released = hook, anyio.Event(), anyio.Event()

    async def on_start(self) -> None:
        await super().on_start()
        await self._wait("on_start")

    async def on_stop(self) -> None:
        await super().on_stop()
        await self._wait("on_stop")

    async def _wait(self, hook: str) -> None:
        if hook == self.hook:
            self.begun.set()
            await self.released.wait()


async def test_an_idle_actor_that_is_cancelled_has_failed_and_is_restarted_with_its_messages(log: EventLog) -> None:
    """Its stop hook runs, and its supervisor hears of it once."""
    story: Story = []
    async with running(lambda: Troupe(players("ab", story)), observer=log) as root:
        a = refs(root.ref)["a"]
        await settle()
        a.tell(Note("waits"))
        task_of("root/a").cancel()
        await log.wait_for(Started, "a", times=2)
        assert await a.ask(Echo("last"), timeout_s=PATIENCE_S) == "last"
        (ended,) = log.of(Ended)
        assert str(ended.error) == "'root/a' was cancelled: its task was cancelled from outside"
        assert len(log.of(Restarting, "a")) == 1
    assert story == [
        *["a starts", "b starts", "a stops", "a starts", "a notes waits", "a notes last"],
        *["b stops", "a stops"],
    ]


async def test_a_message_whose_handler_is_cancelled_is_delivered_again(log: EventLog) -> None:
    """It was accepted and not handled."""
    story: Story = []
    begun, released = anyio.Event(), anyio.Event()
    async with running(lambda: Troupe(players("a", story)), observer=log) as root:
        a = refs(root.ref)["a"]
        a.tell(Hang(begun, released))
        await begun.wait()
        task_of("root/a").cancel()
        released.set()
        await a.ask(Echo("last"), timeout_s=PATIENCE_S)
    assert story == ["a starts", "a stops", "a starts", "a has waited", "a notes last", "a stops"]


async def test_a_cancellation_raised_by_hand_is_a_failure_like_one_from_outside(log: EventLog) -> None:
    """It never passes for a clean end, and the same message again and again ends at the restart limit."""

    def raise_it(_: object) -> None:
        raise asyncio.CancelledError

    async with running(lambda: Troupe(players("a", []), intensity=Intensity(restarts=2)), observer=log) as root:
        refs(root.ref)["a"].tell(Do(raise_it))
        with pytest.raises(Exception, match="cannot restart 'a'"):
            await root.wait()
    assert [type(e.error) for e in log.of(Ended, "a")] == [KilledError] * 3


async def test_a_child_cancelled_in_on_start_has_failed_to_start(log: EventLog) -> None:
    """Who starts it is told, and it is restarted by rule."""
    story: Story = []
    slow = SlowPlayer("s", story, "on_start")
    makes: list[Player] = [slow, Player("s", story)]
    async with running(Troupe, observer=log) as root, anyio.create_task_group() as tasks:
        errors: list[Exception] = []

        async def start() -> None:
            try:
                await root.ref.ask(StartChild(Child("s", lambda: makes.pop(0))), timeout_s=PATIENCE_S)
            except KilledError as error:
                errors.append(error)

        tasks.start_soon(start)
        await slow.begun.wait()
        task_of("root/s").cancel()
        await log.wait_for(Started, "s")
        await settle()
        assert [e.error for e in log.of(Ended)] == errors
    assert story == ["s starts", "s stops", "s starts", "s stops"]


@pytest.mark.parametrize("crash", [False, True])
async def test_on_stop_that_is_cancelled_is_reported_and_the_others_stop(crash: bool, log: EventLog) -> None:
    """A crash that came first stays the reason."""
    story: Story = []
    slow = SlowPlayer("s", story, "on_stop")
    a, b = players("ab", story)
    troupe = Troupe([a, Child("s", lambda: slow), b], intensity=Intensity(restarts=0))
    boom = ValueError("boom")

    async def cancel() -> None:
        await slow.begun.wait()
        task_of("root/s").cancel()

    async with anyio.create_task_group() as tasks, running(lambda: troupe, observer=log) as root:
        tasks.start_soon(cancel)
        refs(root.ref)["s"].tell(Fail(boom) if crash else Note("no crash"))
        await settle()
        if crash:
            with pytest.raises(Exception, match="cannot restart 's'"):
                await root.wait()
    assert isinstance(log.of(StopHookFailed)[0].error, KilledError)
    (ended,) = log.of(Ended, "s")
    assert ended.error is boom if crash else isinstance(ended.error, KilledError)
    assert {"a stops", "b stops"} < set(story)


async def test_a_hanging_stop_hook_is_cut_off_also_after_its_actor_was_cancelled(log: EventLog) -> None:
    """The cancellation that has been turned into a failure does not confuse the limit."""

    class Slow(Player):
        stop_hook_s = 0.01

        async def on_stop(self) -> None:
            await anyio.sleep_forever()

    async with running(lambda: Troupe([Child("s", Slow, Restart.TEMPORARY)]), observer=log) as root:
        ref = refs(root.ref)["s"]
        task_of("root/s").cancel()
        with anyio.fail_after(PATIENCE_S):
            await ref.ended()
    assert [type(e.error) for e in log.of(StopHookFailed)] == [TimeoutError]
    assert [type(e.error) for e in log.of(Ended, "s")] == [KilledError]


async def test_a_supervisor_that_is_cancelled_stops_its_children_in_order_and_is_restarted(log: EventLog) -> None:
    """It has failed, they have not."""
    story: Story = []
    async with running(lambda: Troupe([Child("inner", lambda: Troupe(players("ab", story)))]), observer=log) as root:
        before = refs(refs(root.ref)["inner"])["a"]
        task_of("root/inner").cancel()
        await log.wait_for(Started, "inner", times=2)
        assert story == ["a starts", "b starts", "b stops", "a stops", "a starts", "b starts"]
        assert not before.is_alive
        assert [(e.path, type(e.error)) for e in log.of(Ended)] == [
            *[("root/inner/b", type(None)), ("root/inner/a", type(None)), ("root/inner", KilledError)]
        ]


async def test_a_supervisor_cancelled_again_while_it_stops_leaves_no_child_behind(log: EventLog) -> None:
    """Those that it can no longer stop in order are cancelled, and closed; its own stop hook runs."""
    story: Story = []
    begun = anyio.Event()

    class Last(Troupe):
        async def on_stop(self) -> None:
            story.append("inner stops")

    async with running(lambda: Troupe([Child("inner", lambda: Last(players("ab", story)))]), observer=log) as root:
        children = refs(refs(root.ref)["inner"])
        children["b"].tell(Hang(begun, anyio.Event()))
        await begun.wait()
        task_of("root/inner").cancel()
        await settle()
        task_of("root/inner").cancel()
        with anyio.fail_after(PATIENCE_S):
            await children["a"].ended()
            await children["b"].ended()
            await log.wait_for(Started, "inner", times=2)
    assert sorted(story[2:5]) == ["a stops", "b stops", "inner stops"]
    assert len(log.of(Ended, "inner/a")) == 2
    assert [type(e.error) for e in log.of(StopHookFailed)] == [KilledError]


async def test_a_supervisor_cancelled_while_it_restarts_a_child_fails_once(log: EventLog) -> None:
    """The half-started child is stopped with the others."""
    story: Story = []
    slow = SlowPlayer("s", story, "on_start")
    makes: list[Player] = [Player("s", story), slow, Player("s", story)]
    inner = Child("inner", lambda: Troupe([*players("a", story), Child("s", lambda: makes.pop(0), grace_s=0.01)]))
    async with running(lambda: Troupe([inner]), observer=log) as root:
        refs(refs(root.ref)["inner"])["s"].tell(Fail(ValueError("boom")))
        await slow.begun.wait()
        task_of("root/inner").cancel()
        await log.wait_for(Started, "inner", times=2)
        await settle()
        assert [n.state for n in root.tree().children[0].children] == ["running", "running"]
    assert len(log.of(Restarting, "inner")) == 1
    assert not makes


async def test_a_task_that_is_cancelled_from_outside_has_failed() -> None:
    """Its actor is told as of any failure."""
    story: Story = []

    def start(player: Player) -> None:
        player.run_task(anyio.sleep_forever, failed=lambda error: Note(type(error).__name__))

    async with running(lambda: Troupe(players("a", story))) as root:
        refs(root.ref)["a"].tell(Do(start))
        await settle()
        task_of("root/a task").cancel()
        await settle()
    assert story == ["a starts", "a notes KilledError", "a stops"]


async def test_a_task_that_is_cancelled_from_outside_ends_its_actor_when_no_message_is_made_of_it(
    log: EventLog,
) -> None:
    """With an error that names the actor."""
    async with running(lambda: Troupe(players("a", [])), observer=log) as root:
        refs(root.ref)["a"].tell(Do(lambda player: player.run_task(anyio.sleep_forever)))
        await settle()
        task_of("root/a task").cancel()
        await log.wait_for(Started, "a", times=2)
    assert str(log.of(Ended)[0].error) == "'root/a' was cancelled: one of its tasks was cancelled from outside"


async def test_a_task_cancelled_from_both_sides_at_once_is_cancelled(log: EventLog) -> None:
    """Its owner asked for it, so there is nothing to report."""
    story: Story = []
    async with running(lambda: Troupe(players("a", story)), observer=log) as root:
        task: OwnedTask = await refs(root.ref)["a"].ask(
            Do(lambda player: player.run_task(anyio.sleep_forever, failed=lambda _: Note("must not be seen"))),
            timeout_s=PATIENCE_S,
        )
        await settle()
        task_of("root/a task").cancel()
        task.cancel()
        await settle()
    assert story == ["a starts", "a stops"]
    assert {e.error for e in log.of(Ended)} == {None}
    assert log.of(TaskFailed) == []


async def test_a_child_killed_and_cancelled_at_once_ends_once_and_its_supervisor_lives(log: EventLog) -> None:
    """Two cancellations of different kinds in one turn do not leak into the level above."""
    story: Story = []
    begun, released = anyio.Event(), anyio.Event()
    async with running(lambda: Troupe(players("ab", story)), observer=log) as root:
        b = refs(root.ref)["b"]
        b.tell(Hang(begun, released))
        await begun.wait()
        b._cell.kill("a test wants it so")
        task_of("root/b").cancel()
        released.set()
        await log.wait_for(Restarting, "b")
        await root.ref.ask(StopChild("b"), timeout_s=PATIENCE_S)
        assert await refs(root.ref)["a"].ask(Echo("fine"), timeout_s=PATIENCE_S) == "fine"
    assert isinstance(log.of(Ended, "root/b")[0].error, KilledError)
    assert [e.error for e in log.of(Ended, "root")] == [None]


async def test_an_asker_that_is_cancelled_leaves_its_question_to_be_handled() -> None:
    """The actor neither knows nor suffers."""
    story: Story = []
    begun, released = anyio.Event(), anyio.Event()
    async with running(lambda: Player(story=story)) as root:
        root.ref.tell(Hang(begun, released))
        await begun.wait()
        asker = asyncio.get_running_loop().create_task(root.ref.ask(Echo("a"), timeout_s=PATIENCE_S))
        await settle()
        asker.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asker
        released.set()
        assert await root.ref.ask(Echo("b"), timeout_s=PATIENCE_S) == "b"
    assert story[1:-1] == ["player has waited", "player notes a", "player notes b"]


async def test_a_cancelled_block_stops_its_tree_in_order_and_stays_cancelled(log: EventLog) -> None:
    """As Ctrl-C does it: the tree stops, then the cancellation goes on."""
    story: Story = []
    is_running = anyio.Event()

    async def main() -> None:
        async with running(lambda: Troupe(players("ab", story)), observer=log):
            is_running.set()
            await anyio.sleep_forever()

    task = asyncio.get_running_loop().create_task(main())
    await is_running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert story == ["a starts", "b starts", "b stops", "a stops"]
    assert {e.error for e in log.of(Ended)} == {None}


async def test_a_block_cancelled_again_while_its_tree_stops_cuts_the_grace_short(log: EventLog) -> None:
    """A second Ctrl-C hurries, and still leaves nothing running."""
    story: Story = []
    begun = anyio.Event()

    async def main() -> None:
        async with running(lambda: Troupe(players("ab", story)), observer=log, grace_s=PATIENCE_S * 10) as root:
            refs(root.ref)["b"].tell(Hang(begun, anyio.Event()))
            await anyio.sleep_forever()

    task = asyncio.get_running_loop().create_task(main())
    await begun.wait()
    task.cancel()
    await settle()
    assert not task.done()
    task.cancel()
    with anyio.fail_after(PATIENCE_S), pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(story[2:]) == ["a stops", "b stops"]
    assert [type(e.error) for e in log.of(Ended, "root")] == [KilledError]


@pytest.mark.parametrize("when", ["before", "during", "after"])
async def test_a_child_that_fails_around_the_cancellation_of_the_block_is_reported_once(
    when: str, log: EventLog
) -> None:
    """A failure is not lost in a cancellation, nor told twice."""
    boom = ValueError("boom")
    begun, released, is_running = anyio.Event(), anyio.Event(), anyio.Event()
    children = [Child("a", Player), Child("b", lambda: Player(on_stop_fails=boom if when == "after" else None))]

    async def main() -> None:
        async with running(lambda: Troupe(children), observer=log, grace_s=PATIENCE_S) as root:
            b = refs(root.ref)["b"]
            b.tell(Hang(begun, released))
            if when != "after":
                b.tell(Fail(boom))
            await begun.wait()
            is_running.set()
            await anyio.sleep_forever()

    task = asyncio.get_running_loop().create_task(main())
    await is_running.wait()
    if when == "before":
        released.set()
        await settle()
    task.cancel()
    released.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    told = [e.error for e in log.of(Ended, "b") if e.error] + [e.error for e in log.of(StopHookFailed, "b")]
    assert told == [boom]
