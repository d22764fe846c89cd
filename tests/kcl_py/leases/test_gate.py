"""The gate of lease writes: order, bounds, and what cancelling does to them."""

import asyncio
import random

import anyio
import pytest

from actors.testing import settle
from kcl_py.leases.gate import Gate, Priority

pytestmark = pytest.mark.asyncio


class Writes:
    """Writes that hold their slot until the test ends them, and the order in which they got it."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.begun: list[str] = []
        self._done: dict[str, anyio.Event] = {}

    async def run(self, name: str, priority: Priority) -> None:
        self._done[name] = anyio.Event()
        async with self._gate.slot(priority):
            self.begun.append(name)
            await self._done[name].wait()

    async def end(self, *names: str) -> None:
        for name in names:
            self._done[name].set()
        await settle()


async def test_gate_admits_by_priority_and_then_in_order_of_coming() -> None:
    """What would be lost by waiting goes first."""
    writes = Writes(Gate(2))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writes.run, "first", Priority.START_HANDOFF)
        await settle()
        for name in ("handoff", "take 1", "checkpoint", "complete", "transfer", "take 2"):
            tasks.start_soon(writes.run, name, Priority[name.split()[0].upper().replace("HANDOFF", "START_HANDOFF")])
            await settle()
        order = ["first", "transfer", "complete", "checkpoint", "take 1", "take 2", "handoff"]
        for name in order:
            assert writes.begun[-1] == name
            await writes.end(name)
    assert writes.begun == order


async def test_gate_keeps_half_of_its_slots_for_heartbeats() -> None:
    """With all other writes hanging, renewals pass; a third heartbeat waits for a slot, not for them."""
    writes = Writes(Gate(4))
    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(writes.run, f"take {number}", Priority.TAKE)
        await settle()
        assert writes.begun == ["take 0", "take 1"]
        for number in range(3):
            tasks.start_soon(writes.run, f"beat {number}", Priority.HEARTBEAT)
        await settle()
        assert writes.begun[2:] == ["beat 0", "beat 1"]
        await writes.end("beat 0")
        assert writes.begun[4:] == ["beat 2"]
        tasks.cancel_scope.cancel()


async def test_heartbeats_use_every_slot_when_they_are_many() -> None:
    """A worker with many shards and nothing else to write is not held back."""
    writes = Writes(Gate(5))
    async with anyio.create_task_group() as tasks:
        for number in range(9):
            tasks.start_soon(writes.run, f"beat {number}", Priority.HEARTBEAT)
        await settle()
        assert len(writes.begun) == 5
        tasks.cancel_scope.cancel()


async def test_slot_is_free_again_when_its_write_fails() -> None:
    """An error passes through the gate and keeps nothing."""
    gate = Gate(2)
    for _ in range(5):
        with pytest.raises(KeyError):
            async with gate.slot(Priority.TAKE):
                raise KeyError
    with anyio.fail_after(1):
        async with gate.slot(Priority.TAKE):
            pass


@pytest.mark.parametrize("native", [False, True], ids=["scope", "task"])
async def test_gate_loses_no_slot_when_waiters_are_cancelled(native: bool) -> None:
    """Over many seeded races of waiting, being admitted and being cancelled, all slots are there at the end."""
    rng = random.Random(17)
    gate = Gate(4)
    finished: list[int] = []

    async def write(number: int, scope: anyio.CancelScope) -> None:
        with scope:
            async with gate.slot(rng.choice(list(Priority))):
                for _ in range(rng.randrange(3)):
                    await anyio.lowlevel.checkpoint()
                finished.append(number)

    scopes = [anyio.CancelScope() for _ in range(400)]
    tasks = [asyncio.create_task(write(number, scope)) for number, scope in enumerate(scopes)]
    while not all(task.done() for task in tasks):
        victim = rng.randrange(400)
        if rng.random() < 0.5:
            cancel = tasks[victim].cancel if native else scopes[victim].cancel
            cancel()
        await anyio.lowlevel.checkpoint()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert 50 < len(finished) < 350

    writes = Writes(gate)
    async with anyio.create_task_group() as group:
        for number in range(9):
            group.start_soon(writes.run, f"beat {number}", Priority.HEARTBEAT)
        await settle()
        assert len(writes.begun) == 4
        group.cancel_scope.cancel()


async def test_gate_needs_a_slot_for_each_half() -> None:
    """One slot cannot be both kept and given."""
    with pytest.raises(ValueError, match="cannot make a gate of 1 slots"):
        Gate(1)
