"""Supervisors starting and stopping their children, also when the two meet."""

import anyio
import pytest

from actors import (
    Child,
    Ended,
    GraceExceeded,
    KilledError,
    MessagesDropped,
    Restart,
    Restarting,
    Started,
    StopHookFailed,
    running,
)
from actors.testing import EventLog, settle
from tests.actors.players import (
    PATIENCE_S,
    Do,
    Echo,
    Fail,
    Hang,
    Player,
    StartChild,
    StopChild,
    Story,
    Troupe,
    failing,
    players,
    refs,
)

pytestmark = pytest.mark.anyio


class SlowStart(Player):
    """Hangs in ``on_start``, as no actor should, until ``released``."""

    begun: anyio.Event
    released: anyio.Event

    async def on_start(self) -> None:
        await super().on_start()
        self.begun.set()
        await self.released.wait()


def a_slow_start(story: Story) -> SlowStart:
    player = SlowStart("slow", story)
    player.begun, player.released = anyio.Event(), anyio.Event()
    return player


async def test_children_start_in_order_and_stop_in_reverse(log: EventLog) -> None:
    """Each has started before the next begins to, and has ended before the next is told to."""
    story: Story = []
    inner = Child("inner", lambda: Troupe(players("xy", story)))
    a, b = players("ab", story)
    async with running(lambda: Troupe([a, inner, b]), observer=log):
        assert story == ["a starts", "x starts", "y starts", "b starts"]
        story.clear()
    assert story == ["b stops", "y stops", "x stops", "a stops"]
    assert [e.path for e in log.of(Started)] == [
        *["root/a", "root/inner/x", "root/inner/y", "root/inner", "root/b", "root"],
    ]
    assert [e.path for e in log.of(Ended)] == [
        *["root/b", "root/inner/y", "root/inner/x", "root/inner", "root/a", "root"],
    ]
    assert {e.error for e in log.of(Ended)} == {None}


async def test_each_child_has_its_own_grace_and_is_then_cancelled_while_the_others_stop_cleanly(log: EventLog) -> None:
    """One that hangs costs its grace, not the others' clean stop."""
    story: Story = []
    begun = [anyio.Event() for _ in "bd"]
    children = [
        *players("a", story),
        *players("b", story, grace_s=0.01),
        *players("c", story),
        *players("d", story, grace_s=0.02),
    ]
    async with running(lambda: Troupe(children), observer=log, grace_s=PATIENCE_S) as root:
        for name, event in zip("bd", begun, strict=True):
            refs(root.ref)[name].tell(Hang(event, anyio.Event()))
            await event.wait()
    assert story[4:] == ["d stops", "c stops", "b stops", "a stops"]
    assert log.of(GraceExceeded) == [GraceExceeded("root/d", 0.02), GraceExceeded("root/b", 0.01)]
    assert [type(e.error) for e in log.of(Ended)] == [KilledError, type(None), KilledError, *[type(None)] * 2]


async def test_a_failing_stop_hook_does_not_stop_the_others(log: EventLog) -> None:
    """Nor the supervisor from ending cleanly."""
    story: Story = []
    boom = OSError("boom")
    bad = Child("b", lambda: Player("b", story, on_stop_fails=boom))
    a, c = players("ac", story)
    async with running(lambda: Troupe([a, bad, c]), observer=log):
        pass
    assert story[3:] == ["c stops", "b stops", "a stops"]
    assert log.of(StopHookFailed) == [StopHookFailed("root/b", boom)]
    assert [e.error for e in log.of(Ended)] == [None] * 4


async def test_a_supervisor_over_its_grace_is_cancelled_with_all_below_at_once(log: EventLog) -> None:
    """Its children do not get their full grace one after the other."""
    story: Story = []
    begun = [anyio.Event() for _ in "abc"]
    inner = Child("inner", lambda: Troupe(players("abc", story, grace_s=PATIENCE_S)), grace_s=0.01)
    with anyio.fail_after(PATIENCE_S):
        async with running(lambda: Troupe([inner]), observer=log, grace_s=PATIENCE_S) as root:
            for child, event in zip(refs(refs(root.ref)["inner"]).values(), begun, strict=True):
                child.tell(Hang(event, anyio.Event()))
                await event.wait()
    assert sorted(story[3:]) == ["a stops", "b stops", "c stops"]
    assert log.of(GraceExceeded) == [GraceExceeded("root/inner", 0.01)]
    assert all(isinstance(e.error, KilledError) for e in log.of(Ended) if e.path != "root")


async def test_dynamic_children_come_and_go() -> None:
    """Started in order of asking, stopped in reverse; a name is free again once its child is gone."""
    story: Story = []
    async with running(lambda: Troupe(players("a", story))) as root:
        for child in players("bc", story):
            ref = await root.ref.ask(StartChild(child), timeout_s=PATIENCE_S)
            assert await ref.ask(Echo("here"), timeout_s=PATIENCE_S) == "here"
        with pytest.raises(ValueError, match="cannot start 'b' under 'root': expected a new name, found it taken"):
            await root.ref.ask(StartChild(players("b", story)[0]), timeout_s=PATIENCE_S)
        await root.ref.ask(StopChild("b"), timeout_s=PATIENCE_S)
        await root.ref.ask(StopChild("no such child"), timeout_s=PATIENCE_S)
        await root.ref.ask(StartChild(players("b", story)[0]), timeout_s=PATIENCE_S)
        story.clear()
    assert story == ["b stops", "c stops", "a stops"]


async def test_start_child_raises_what_on_start_raised_and_a_temporary_child_is_gone() -> None:
    """Its name is free at once."""
    story: Story = []
    trouble = failing(OSError("no start"))
    child = Child("t", lambda: Player("t", story, on_start_fails=trouble), Restart.TEMPORARY)
    async with running(Troupe, observer=EventLog()) as root:
        with pytest.raises(OSError, match="no start"):
            await root.ref.ask(StartChild(child), timeout_s=PATIENCE_S)
        assert refs(root.ref) == {}
        await root.ref.ask(StartChild(child), timeout_s=PATIENCE_S)
        await settle()
        assert [n.state for n in root.tree().children] == ["running"]
    assert story == ["t starts", "t stops", "t starts", "t stops"]


async def test_the_name_of_a_temporary_child_that_could_not_start_is_free_at_once() -> None:
    """Its supervisor can try again in the same breath."""
    story: Story = []
    trouble = failing(OSError("no start"))
    child = Child("t", lambda: Player("t", story, on_start_fails=trouble), Restart.TEMPORARY)

    async def try_twice(troupe: Troupe) -> None:
        with pytest.raises(OSError, match="no start"):
            await troupe.start_child(child)
        await troupe.start_child(child)

    async with running(Troupe, observer=EventLog()) as root:
        await root.ref.ask(Do(try_twice), timeout_s=PATIENCE_S)
        assert await refs(root.ref)["t"].ask(Echo("here"), timeout_s=PATIENCE_S) == "here"


async def test_a_dynamic_child_that_cannot_start_is_restarted_by_rule_unless_temporary(log: EventLog) -> None:
    """The asker knows, and the supervisor goes on trying."""
    story: Story = []
    trouble = failing(OSError("no start"))
    child = Child("p", lambda: Player("p", story, on_start_fails=trouble))
    async with running(Troupe, observer=log) as root:
        with pytest.raises(OSError, match="no start"):
            await root.ref.ask(StartChild(child), timeout_s=PATIENCE_S)
        await settle()
        assert await refs(root.ref)["p"].ask(Echo("here"), timeout_s=PATIENCE_S) == "here"
        assert len(log.of(Restarting, "root/p")) == 1


async def test_a_fixed_child_that_cannot_start_fails_the_supervisor_which_stops_those_that_have(log: EventLog) -> None:
    """Nothing is left running, and what comes after it is never begun."""
    story: Story = []
    boom = OSError("no start")
    a, c = players("ac", story)
    with pytest.raises(OSError, match="no start") as caught:
        async with running(
            lambda: Troupe([a, Child("b", lambda: Player("b", story, on_start_fails=failing(boom))), c]), observer=log
        ):
            pytest.fail("the block must not run")
    assert caught.value is boom
    assert story == ["a starts", "b starts", "b stops", "a stops"]
    assert log.of(Restarting) == []


async def test_a_child_that_fails_right_after_its_start_has_started() -> None:
    """``start_child`` returns its ref; the failure takes the usual way."""

    class Brief(Player):
        async def on_start(self) -> None:
            await super().on_start()
            if self.story.count("brief starts") == 1:
                self.ref.tell(Fail(ValueError("boom")))

    story: Story = []
    async with running(Troupe, observer=EventLog()) as root:
        ref = await root.ref.ask(StartChild(Child("brief", lambda: Brief("brief", story))), timeout_s=PATIENCE_S)
        await settle()
        assert await ref.ask(Echo("back"), timeout_s=PATIENCE_S) == "back"
    assert story.count("brief starts") == 2


async def test_the_end_of_a_former_child_is_not_taken_for_that_of_its_namesake(log: EventLog) -> None:
    """The new child of an old name is left alone."""
    story: Story = []
    first, second = players("aa", story)

    async def replace(troupe: Troupe) -> None:
        crashed = refs(troupe.ref)["a"]
        crashed.tell(Fail(ValueError("boom")))
        await settle()  # it has ended, and that waits in this supervisor's mailbox
        await troupe.stop_child("a")
        await troupe.start_child(second)

    async with running(lambda: Troupe([first]), observer=log) as root:
        await root.ref.ask(Do(replace), timeout_s=PATIENCE_S)
        await settle()
        assert log.of(Restarting) == []
        assert await refs(root.ref)["a"].ask(Echo("here"), timeout_s=PATIENCE_S) == "here"
    assert story == ["a starts", "a stops", "a starts", "a notes here", "a stops"]


async def test_stop_child_of_one_that_has_crashed_meanwhile_ends_it_for_good(log: EventLog) -> None:
    """It is not restarted behind the back of who stopped it."""
    story: Story = []

    async def stop(troupe: Troupe) -> None:
        ref = refs(troupe.ref)["a"]
        ref.tell(Fail(ValueError("boom")))
        await settle()
        await troupe.stop_child("a")

    async with running(lambda: Troupe(players("a", story)), observer=log) as root:
        await root.ref.ask(Do(stop), timeout_s=PATIENCE_S)
        await settle()
        assert refs(root.ref) == {}
    assert log.of(Restarting) == []


async def test_a_supervisor_is_stopped_while_a_child_is_starting(log: EventLog) -> None:
    """Within its grace and the child's, and the child's stop hook runs."""
    story: Story = []
    slow = a_slow_start(story)
    inner = Child("inner", lambda: Troupe(players("a", story)), grace_s=0.01)
    async with running(lambda: Troupe([inner]), observer=log, grace_s=PATIENCE_S) as root:
        refs(root.ref)["inner"].tell(StartChild(Child("slow", lambda: slow, grace_s=PATIENCE_S)))
        await slow.begun.wait()
        with anyio.fail_after(PATIENCE_S):
            await root.ref.ask(StopChild("inner"), timeout_s=PATIENCE_S)
    assert sorted(story[2:]) == ["a stops", "slow stops"]
    assert [type(e.error) for e in log.of(Ended, "slow")] == [KilledError]
    assert log.of(Started, "slow") == []


async def test_a_stop_that_arrives_while_the_supervisor_restarts_a_child_is_done_after_it(log: EventLog) -> None:
    """The restart is finished, then undone in order."""
    story: Story = []
    slow = a_slow_start(story)
    slow.released.set()
    again = a_slow_start(story)
    makes = [slow, again]
    async with running(lambda: Troupe([Child("slow", lambda: makes.pop(0))]), observer=log) as root:
        refs(root.ref)["slow"].tell(Fail(ValueError("boom")))
        await again.begun.wait()
        root.ref.stop()
        await settle()
        assert log.of(Ended, "root") == []
        again.released.set()
        await root.wait()
    assert story == ["slow starts", "slow stops"] * 2
    assert [e.error for e in log.of(Ended, "root")] == [None]


async def test_a_stop_told_to_a_child_that_is_being_restarted_reaches_its_next_incarnation() -> None:
    """Which then ends as its policy says: this one for good."""
    story: Story = []
    slow = a_slow_start(story)
    slow.released.set()
    again = a_slow_start(story)
    makes = [slow, again]
    child = Child("slow", lambda: makes.pop(0), Restart.TRANSIENT)
    async with running(lambda: Troupe([child]), observer=EventLog()) as root:
        ref = refs(root.ref)["slow"]
        ref.tell(Fail(ValueError("boom")))
        await again.begun.wait()
        ref.stop()
        again.released.set()
        with anyio.fail_after(PATIENCE_S):
            await ref.ended()


async def test_messages_of_a_stopped_child_are_counted_as_dropped(log: EventLog) -> None:
    """What was accepted and never handled is said."""
    begun = anyio.Event()
    async with running(lambda: Troupe(players("a", [], grace_s=0.01)), observer=log) as root:
        child = refs(root.ref)["a"]
        child.tell(Hang(begun, anyio.Event()))
        await begun.wait()
        child.tell(Echo("never"))
    assert log.of(MessagesDropped) == [MessagesDropped("root/a", 2)]
