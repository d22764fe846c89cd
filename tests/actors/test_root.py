"""The block around a tree: whatever leaves it stops the tree in order first, and comes out as it was."""

import anyio
import pytest

from actors import ActorStoppedError, Child, Ended, GraceExceeded, running
from actors.testing import EventLog, settle
from tests.actors.players import PATIENCE_S, Do, Fail, Hang, Player, Story, Troupe, players, refs

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt("mine"), SystemExit(3), StopAsyncIteration()])
async def test_what_the_block_raises_comes_out_unwrapped_after_the_tree_has_stopped(
    error: BaseException, log: EventLog
) -> None:
    """Not in a group, so ``except`` finds it by its type."""
    story: Story = []
    with pytest.raises(type(error)) as caught:
        async with running(lambda: Troupe(players("ab", story)), observer=log):
            raise error
    assert caught.value is error
    assert story == ["a starts", "b starts", "b stops", "a stops"]
    assert {e.error for e in log.of(Ended)} == {None}


async def test_a_cancelled_block_stops_its_tree_in_order_with_its_grace(log: EventLog) -> None:
    """The tree is not torn down by the scope around it: last writes still happen."""
    story: Story = []

    class Careful(Player):
        async def on_stop(self) -> None:
            await settle()
            await super().on_stop()

    begun, released = anyio.Event(), anyio.Event()

    async def release() -> None:
        await log.wait_for(Ended, "b")
        released.set()

    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:
            children = [Child("a", lambda: Careful("a", story)), Child("b", lambda: Careful("b", story))]
            async with running(lambda: Troupe(children), observer=log, grace_s=PATIENCE_S) as root:
                refs(root.ref)["a"].tell(Hang(begun, released))
                await begun.wait()
                tasks.start_soon(release)
                scope.cancel()
                await anyio.sleep_forever()
        assert scope.cancelled_caught
    assert story == ["a starts", "b starts", "b stops", "a has waited", "a stops"]
    assert {e.error for e in log.of(Ended)} == {None}


async def test_a_scope_cancelled_while_the_root_is_starting_stops_what_has_started(log: EventLog) -> None:
    """A start that is given up leaves nothing behind."""
    story: Story = []
    begun = anyio.Event()

    class Slow(Player):
        async def on_start(self) -> None:
            begun.set()
            await anyio.sleep_forever()

    async def cancel() -> None:
        await begun.wait()
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel)
        with anyio.fail_after(PATIENCE_S), anyio.CancelScope() as scope:
            children = [*players("a", story), Child("slow", lambda: Slow("slow", story))]
            async with running(lambda: Troupe(children), observer=log, grace_s=0.01):
                pytest.fail("the block must not run")
    assert scope.cancelled_caught
    assert sorted(story) == ["a starts", "a stops", "slow stops"]


async def test_what_the_block_raises_is_not_lost_to_a_cancellation_that_comes_while_the_tree_stops() -> None:
    """The first reason is the one to know."""
    begun, released = anyio.Event(), anyio.Event()

    async def cancel_then_release() -> None:
        await settle()
        scope.cancel()
        await settle()
        released.set()

    async def block() -> None:
        async with running(Player, grace_s=PATIENCE_S) as root:
            root.ref.tell(Hang(begun, released))
            await begun.wait()
            tasks.start_soon(cancel_then_release)
            raise ValueError("mine")

    async with anyio.create_task_group() as tasks:
        with pytest.raises(ValueError, match="mine"), anyio.CancelScope() as scope:
            await block()


async def test_a_root_that_failed_is_raised_at_the_end_of_a_block_that_never_asked() -> None:
    """A tree cannot die unseen."""

    async def block() -> None:
        async with running(Player, observer=EventLog()) as root:
            root.ref.tell(Fail(ZeroDivisionError("boom")))
            await settle()

    with pytest.raises(ZeroDivisionError, match="boom"):
        await block()


async def test_a_root_failure_that_wait_has_raised_is_not_raised_again() -> None:
    """Who has handled it is done with it."""
    async with running(Player, observer=EventLog()) as root:
        root.ref.tell(Fail(ZeroDivisionError("boom")))
        with pytest.raises(ZeroDivisionError):
            await root.wait()


async def test_wait_returns_when_the_root_has_stopped_cleanly() -> None:
    """And the block may go on after it."""
    async with running(Player) as root:
        root.ref.tell(Do(lambda player: player.stop()))
        await root.wait()
        assert root.tree().state == "stopped"


async def test_a_root_that_has_ended_refuses_messages_while_the_block_goes_on() -> None:
    """Nobody will start it again, so nobody must wait for it."""
    async with running(Player) as root:
        root.ref.stop()
        await root.ref.ended()
        assert not root.ref.is_alive
        assert root.ref.tell(Do(print)) is False
        with pytest.raises(ActorStoppedError):
            await root.ref.ask(Do(print), timeout_s=PATIENCE_S)


async def test_a_root_that_stops_itself_while_starting_has_been_started_all_the_same() -> None:
    """The block runs, with a tree that has ended."""

    class Brief(Player):
        async def on_start(self) -> None:
            self.stop()

    async with running(Brief) as root:
        await root.wait()


async def test_leaving_the_block_cancels_a_root_that_exceeds_its_grace(log: EventLog) -> None:
    """The block is left, in bounded time."""
    begun = anyio.Event()
    with anyio.fail_after(PATIENCE_S):
        async with running(Player, observer=log, grace_s=0.01) as root:
            root.ref.tell(Hang(begun, anyio.Event()))
            await begun.wait()
    assert log.of(GraceExceeded) == [GraceExceeded("root", 0.01)]


async def test_two_trees_live_side_by_side_and_one_inside_the_other() -> None:
    """A tree is a value, not a global."""
    story: Story = []
    async with running(lambda: Player("a", story), name="a") as a, running(lambda: Player("b", story), name="b") as b:
        assert (a.ref.path, b.ref.path) == ("a", "b")
    assert story == ["a starts", "b starts", "b stops", "a stops"]
