"""Monitors: who watches an actor learns of each end of it, with the reason."""

import traceback

import anyio
import pytest

from actors import Child, Down, Ref, Restart, Restarting, running
from actors.testing import EventLog, settle
from tests.actors.players import PATIENCE_S, Do, Fail, Hang, Player, StopChild, Story, Troupe, refs

pytestmark = pytest.mark.anyio


async def watched(root: Ref, watcher: Ref, *names: str) -> dict[str, Ref]:
    """Have ``watcher`` monitor the children ``names``."""
    children = refs(root)

    def monitor(player: Player) -> None:
        for name in names:
            player.monitor(children[name])

    await watcher.ask(Do(monitor), timeout_s=PATIENCE_S)
    return children


def a_pair(story: Story, *, restart: Restart = Restart.PERMANENT) -> Troupe:
    return Troupe([Child("a", lambda: Player("a", story), restart), Child("w", lambda: Player("w", story))])


async def test_a_monitor_sees_a_crash_with_its_reason_and_the_restart() -> None:
    """Each end is told, not only the last."""
    story: Story = []
    async with running(lambda: a_pair(story), observer=EventLog()) as root:
        children = await watched(root.ref, refs(root.ref)["w"], "a")
        for reason in ("first", "second"):
            children["a"].tell(Fail(ValueError(reason)))
            await settle()
    seen = [line for line in story if line.startswith("w sees")]
    assert seen == [
        "w sees a down: ValueError('first'), restarting",
        "w sees a down: ValueError('second'), restarting",
    ]


async def test_a_monitor_sees_the_end_for_good() -> None:
    """A temporary child's crash, and a clean stop by its supervisor."""
    story: Story = []
    async with running(lambda: a_pair(story, restart=Restart.TEMPORARY), observer=EventLog()) as root:
        children = await watched(root.ref, refs(root.ref)["w"], "a")
        children["a"].tell(Fail(ValueError("boom")))
        await settle()
        assert [line for line in story if line.startswith("w sees")] == ["w sees a down: ValueError('boom')"]
    story = []
    async with running(lambda: a_pair(story), observer=EventLog()) as root:
        await watched(root.ref, refs(root.ref)["w"], "a")
        await root.ref.ask(StopChild("a"), timeout_s=PATIENCE_S)
        await settle()
        assert [line for line in story if line.startswith("w sees")] == ["w sees a down: None"]


async def test_a_supervisor_that_monitors_its_child_gets_the_traceback_of_the_crash() -> None:
    """The reason is the exception itself, and says which line raised it."""
    seen: list[Down] = []

    class Watchful(Troupe):
        async def on_start(self) -> None:
            self.monitor(await self.start_child(Child("a", Player)))

        async def on_message(self, message: object) -> object:
            if isinstance(message, Down):
                seen.append(message)
                return None
            return await super().on_message(message)

    async with running(Watchful, observer=EventLog()) as root:
        refs(root.ref)["a"].tell(Fail(ValueError("boom")))
        await settle()
    assert seen[0].is_restarting
    assert seen[0].name == "a"
    assert seen[0].error is not None
    assert "raise error" in "".join(traceback.format_exception(seen[0].error))


async def test_a_monitor_of_one_that_has_ended_is_told_at_once_and_why() -> None:
    """Nobody waits for an end that has been."""
    story: Story = []
    async with running(lambda: a_pair(story, restart=Restart.TEMPORARY), observer=EventLog()) as root:
        children = refs(root.ref)
        children["a"].tell(Fail(ValueError("boom")))
        await children["a"].ended()
        await children["w"].ask(Do(lambda player: player.monitor(children["a"])), timeout_s=PATIENCE_S)
        await settle()
        assert story[-1] == "w sees a down: ValueError('boom')"


async def test_a_monitor_ends_with_the_incarnation_that_asked_for_it() -> None:
    """So monitors neither add up over restarts nor reach one that never asked."""
    story: Story = []
    log = EventLog()
    async with running(lambda: a_pair(story), observer=log) as root:
        children = await watched(root.ref, refs(root.ref)["w"], "a", "a")
        assert len(children["a"]._cell.watchers) == 1
        children["w"].tell(Fail(ValueError("watcher")))
        await log.wait_for(Restarting, "w")
        assert len(children["a"]._cell.watchers) == 0
        children["a"].tell(Fail(ValueError("watched")))
        await settle()
        assert not [line for line in story if line.startswith("w sees")]
        await watched(root.ref, children["w"], "a")
        await root.ref.ask(StopChild("a"), timeout_s=PATIENCE_S)
        assert len(children["w"]._cell._watched) == 0


async def test_a_killed_child_is_down_as_killed() -> None:
    """Its grace was over, so this was no clean stop."""
    story: Story = []
    begun = anyio.Event()
    troupe = Troupe([Child("a", lambda: Player("a", story), grace_s=0.01), Child("w", lambda: Player("w", story))])
    async with running(lambda: troupe, observer=EventLog()) as root:
        children = await watched(root.ref, refs(root.ref)["w"], "a")
        children["a"].tell(Hang(begun, anyio.Event()))
        await begun.wait()
        await root.ref.ask(StopChild("a"), timeout_s=PATIENCE_S)
        await settle()
        assert story[-1] == "w sees a down: KilledError('root/a', 'it did not stop within its grace of 0.01 s')"
