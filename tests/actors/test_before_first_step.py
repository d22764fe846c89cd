"""``Task.cancel()`` that hits a task which has not begun: no line of ours runs in it, and still it is a failure."""

import asyncio
import gc
import inspect
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from actors import Child, Ended, KilledError, Started, running
from actors.testing import EventLog
from tests.actors.players import PATIENCE_S, Do, Echo, Fail, Player, Troupe, refs

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),  # which is what happens here
]


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Have the coroutines that never ran collected, and warned of, within their own test."""
    yield
    gc.collect()


def players(names: str) -> list[Child]:
    return [Child(n, Player) for n in names]


def prey_on(path: str) -> Callable[[], Coroutine[Any, Any, None]]:
    """Make a task that cancels the next task of that name before its first step."""

    async def prowl() -> None:
        while True:
            for task in asyncio.all_tasks():
                if task.get_name() == path and _has_not_begun(task):
                    task.cancel()
                    return
            await asyncio.sleep(0)

    return prowl


def _has_not_begun(task: asyncio.Task[object]) -> bool:
    coroutine = task.get_coro()
    return inspect.iscoroutine(coroutine) and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED


async def test_a_child_cancelled_before_its_first_step_fails_its_supervisor(log: EventLog) -> None:
    """Nobody waits for a child that will never begin."""
    inner = Child("inner", lambda: Troupe(players("ab")))
    async with running(lambda: Troupe([inner]), observer=log) as root, anyio.create_task_group() as tasks:
        tasks.start_soon(prey_on("root/inner/a"))
        with anyio.fail_after(PATIENCE_S):
            refs(refs(root.ref)["inner"])["a"].tell(Fail(ValueError("boom")))
            await log.wait_for(Started, "inner", times=2)
        assert [type(e.error) for e in log.of(Ended, "root/inner/a")] == [ValueError, KilledError]
        assert [type(e.error) for e in log.of(Ended, "root/inner")] == [KilledError]
        assert [n.state for n in root.tree().children[0].children] == ["running", "running"]


async def test_a_root_cancelled_before_its_first_step_has_failed_to_start(log: EventLog) -> None:
    """The block raises that, and no cancellation that nobody asked for."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(prey_on("root"))
        await anyio.lowlevel.checkpoint()
        with anyio.fail_after(PATIENCE_S), pytest.raises(KilledError):
            async with running(Player, observer=log):
                pytest.fail("the block must not run")
    assert [type(e.error) for e in log.of(Ended)] == [KilledError]


async def test_a_task_cancelled_before_its_first_step_fails_its_actor(log: EventLog) -> None:
    """There is no one left who could make a message of it."""
    async with running(lambda: Troupe(players("a")), observer=log) as root, anyio.create_task_group() as tasks:
        tasks.start_soon(prey_on("root/a task"))
        a = refs(root.ref)["a"]
        a.tell(Do(lambda player: player.run_task(anyio.sleep_forever)))
        await log.wait_for(Started, "a", times=2)
        assert await a.ask(Echo("back"), timeout_s=PATIENCE_S) == "back"
        assert [type(e.error) for e in log.of(Ended)] == [KilledError]


async def test_a_task_cancelled_before_its_first_step_while_its_actor_stops_is_no_clean_stop(log: EventLog) -> None:
    """Also that late, a cancellation from outside does not pass for an end that all is well with."""

    class Late(Player):
        async def on_stop(self) -> None:
            self.run_task(anyio.sleep_forever)
            with anyio.CancelScope(shield=True):
                for _ in range(5):
                    await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks, running(Late, observer=log):
        tasks.start_soon(prey_on("root task"))
    assert [type(e.error) for e in log.of(Ended)] == [KilledError]
