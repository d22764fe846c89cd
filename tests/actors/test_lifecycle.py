"""The hooks of one actor: their order, and what becomes of it when they fail or hang."""

import traceback

import anyio
import pytest

from actors import Actor, Ended, GraceExceeded, KilledError, Started, StopHookFailed, running
from actors.testing import EventLog, settle
from tests.actors.players import PATIENCE_S, Do, Fail, Hang, Note, Player, Story, failing

pytestmark = pytest.mark.anyio


async def test_hooks_run_in_order_around_the_messages(log: EventLog) -> None:
    """Start, messages, stop: each hook once."""
    story: Story = []
    async with running(lambda: Player(story=story), observer=log) as root:
        root.ref.tell(Note("a"))
        await settle()
    assert story == ["player starts", "player notes a", "player stops"]
    assert log.events == [Started("root"), Ended("root", None)]


async def test_no_message_is_handled_before_on_start_has_returned() -> None:
    """What the actor tells itself while starting waits its turn."""
    story: Story = []

    class Early(Player):
        async def on_start(self) -> None:
            self.ref.tell(Note("told while starting"))
            await settle()
            self.story.append("started")

    async with running(lambda: Early(story=story)):
        await settle()
    assert story == ["started", "player notes told while starting", "player stops"]


async def test_stop_takes_effect_after_the_message_in_hand_and_before_those_that_wait() -> None:
    """The message in hand is never torn by a stop within the grace."""
    story: Story = []
    begun, released = anyio.Event(), anyio.Event()
    async with running(lambda: Player(story=story), grace_s=PATIENCE_S) as root:
        root.ref.tell(Hang(begun, released))
        await begun.wait()
        root.ref.tell(Note("too late"))
        root.ref.stop()
        released.set()
        await root.wait()
    assert story == ["player starts", "player has waited", "player stops"]


async def test_an_actor_can_stop_itself() -> None:
    """After the message in hand, like anyone else's stop."""
    story: Story = []
    async with running(lambda: Player(story=story)) as root:
        root.ref.tell(Do(lambda player: (player.stop(), player.story.append("goes on"))))
        await root.wait()
    assert story == ["player starts", "goes on", "player stops"]


async def test_on_stop_runs_after_a_crash_and_the_crash_stays_the_reason(log: EventLog) -> None:
    """Crashing while stopping adds a report, it does not hide what came first."""
    story: Story = []
    first, second = ValueError("first"), OSError("second")
    async with running(lambda: Player(story=story, on_stop_fails=second), observer=log) as root:
        root.ref.tell(Fail(first))
        with pytest.raises(ValueError, match="first"):
            await root.wait()
    assert story == ["player starts", "player stops"]
    assert log.events == [Started("root"), StopHookFailed("root", second), Ended("root", first)]


async def test_on_stop_runs_when_on_start_has_failed_and_not_when_the_constructor_has(log: EventLog) -> None:
    """There is something to clean up as soon as there is an actor."""
    story: Story = []
    with pytest.raises(ValueError, match="no start"):
        async with running(lambda: Player(story=story, on_start_fails=failing(ValueError("no start"))), observer=log):
            pytest.fail("the block must not run")
    assert story == ["player starts", "player stops"]

    def make() -> Actor:
        raise LookupError("no actor")

    with pytest.raises(LookupError, match="no actor"):
        async with running(make, observer=log):
            pytest.fail("the block must not run")
    assert log.of(Started) == []


async def test_a_hanging_stop_hook_is_cut_off_at_its_limit(log: EventLog) -> None:
    """And said to be, by name."""

    class Slow(Player):
        stop_hook_s = 0.01

        async def on_stop(self) -> None:
            await anyio.sleep_forever()

    with anyio.fail_after(PATIENCE_S):
        async with running(Slow, observer=log, grace_s=PATIENCE_S):
            pass
    (failure,) = log.of(StopHookFailed)
    assert str(failure.error) == "on_stop of 'root' took longer than 0.01 s"
    assert log.of(Ended) == [Ended("root", None)]


async def test_on_stop_is_shielded_from_the_cancellation_that_ends_the_actor(log: EventLog) -> None:
    """A last write must not be torn because the grace was over."""
    story: Story = []

    class Careful(Player):
        async def on_stop(self) -> None:
            await settle()
            self.story.append("cleaned up")

    begun = anyio.Event()
    async with running(lambda: Careful(story=story), observer=log, grace_s=0.01) as root:
        root.ref.tell(Hang(begun, anyio.Event()))
        await begun.wait()
    assert story[-1] == "cleaned up"
    assert log.of(GraceExceeded) == [GraceExceeded("root", 0.01)]


async def test_an_actor_cancelled_after_its_grace_has_failed_and_its_error_shows_where_it_hung(log: EventLog) -> None:
    """A stop that had to be forced is no clean stop."""
    begun = anyio.Event()
    async with running(Player, observer=log, grace_s=0.01) as root:
        root.ref.tell(Hang(begun, anyio.Event()))
        await begun.wait()
    (ended,) = log.of(Ended)
    assert isinstance(ended.error, KilledError)
    assert str(ended.error) == "'root' was cancelled: it did not stop within its grace of 0.01 s"
    assert "await released.wait()" in "".join(traceback.format_exception(ended.error))


async def test_tasks_still_run_while_on_stop_does_and_have_ended_after_it() -> None:
    """So the hook can wait for work that is nearly done."""
    story: Story = []

    class Finisher(Player):
        async def on_start(self) -> None:
            self.finished = anyio.Event()
            self.run_task(self.work)

        async def work(self) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                self.story.append("work ends")

        async def on_stop(self) -> None:
            await settle()
            self.story.append("stop hook ends")

    async with running(lambda: Finisher(story=story)):
        await settle()
    assert story == ["stop hook ends", "work ends"]


async def test_an_observer_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """It is told of in the log, and the tree lives on."""

    def observer(event: object) -> None:
        raise RuntimeError("bad observer")

    story: Story = []
    async with running(lambda: Player(story=story), observer=observer) as root:
        root.ref.tell(Note("a"))
        await settle()
    assert story == ["player starts", "player notes a", "player stops"]
    assert [r.message for r in caplog.records] == ["root observer failed at Started", "root observer failed at Ended"]


async def test_a_task_cannot_be_started_outside_the_life_of_the_actor() -> None:
    """It would have no owner."""
    player = Player()
    async with running(lambda: player):
        pass
    with pytest.raises(RuntimeError, match="cannot start a task in 'root': expected a running actor, found it stopped"):
        player.run_task(anyio.sleep_forever)
