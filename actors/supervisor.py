"""The supervisor: starts its children in order, restarts them by rule, stops them in reverse.

A supervisor is an actor whose tasks are its children. It fails when its children fail more often than its intensity
allows, and so hands the decision up. Rules: ``actors/restart.py``. Mirrors: Supervisor of Erlang/OTP.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from actors.actor import Actor
from actors.cell import Cell
from actors.errors import RestartLimitError
from actors.events import Restarting
from actors.mailbox import Envelope
from actors.ref import Ref
from actors.restart import Intensity, Restart, Strategy, affected, wants_restart


@dataclass(frozen=True, slots=True)
class Child:
    """What a supervisor needs to know to start, restart and stop one child."""

    name: str
    """Unique among its siblings."""
    make: Callable[[], Actor]
    """Makes the actor anew for each incarnation."""
    restart: Restart = Restart.PERMANENT
    grace_s: float = 5.0
    """How long it may take to stop, in seconds, before it is cancelled; then only ``on_stop`` still runs, to its limit.

    For a supervisor, allow for all of its children, one after the other. Source: 5 s, as in Erlang/OTP.
    """


@dataclass(frozen=True, slots=True)
class ChildEnded:
    """Control: an incarnation of a child has ended by itself."""

    name: str
    launch: int


@dataclass(slots=True)
class _Slot:
    child: Child
    cell: Cell
    launch: int = 0
    """Which launch of this supervisor's is running; 0 while its end is not news."""


class Supervisor(Actor):
    """Keeps its children alive.

    Give the fixed children to the constructor; add and remove others with ``start_child`` and ``stop_child`` from
    ``on_start`` or ``on_message``, never from a task. Override the class attributes to choose the rules. A child keeps
    its ref and its waiting messages when it is restarted; a supervisor that is restarted begins with new children.
    """

    strategy = Strategy.ONE_FOR_ONE
    intensity = Intensity()

    def __init__(self, children: Sequence[Child] = ()) -> None:
        self._first_children = tuple(children)
        self._slots: dict[str, _Slot] = {}
        self._restarted_at: list[float] = []
        self._launches = 0

    async def on_start(self) -> None:
        """Start the fixed children in order; if one cannot start, the supervisor has failed."""
        for child in self._first_children:
            await self.start_child(child)

    async def start_child(self, child: Child) -> Ref:
        """Start a child and return when its ``on_start`` has.

        Raises:
            ValueError: a child of that name is there.
            Exception: whatever ``on_start`` raised, or ``KilledError``; a temporary child is then gone, any other is
                restarted by rule.
        """
        if child.name in self._slots:
            raise ValueError(
                f"cannot start {child.name!r} under {self.ref.path!r}: expected a new name, found it taken"
            )
        slot = self._slots[child.name] = _Slot(child, self._cell.new(child.make, child.name))
        await self._launch(slot)
        if slot.cell.error is not None and not slot.cell.has_started:
            if not wants_restart(child.restart, failed=True):
                self._forget(slot)
            raise slot.cell.error
        return slot.cell.ref

    async def stop_child(self, name: str) -> None:
        """Stop a child within its grace and forget it; no error if there is none of that name."""
        slot = self._slots.get(name)
        if slot is not None:
            await self._stop(slot)
            self._forget(slot)

    def child(self, name: str) -> Ref | None:
        """The ref of the child of that name, if there is one."""
        slot = self._slots.get(name)
        return slot.cell.ref if slot is not None else None

    def children(self) -> list[Cell]:
        return [slot.cell for slot in self._slots.values()]

    async def receive(self, message: Any) -> Any:
        if isinstance(message, ChildEnded):
            return await self._child_ended(message)
        return await super().receive(message)

    async def wind_down(self) -> None:
        try:
            for slot in reversed(list(self._slots.values())):
                await self._stop(slot)
                self._forget(slot)
        finally:
            await super().wind_down()

    async def _launch(self, slot: _Slot) -> None:
        self._launches += 1
        slot.launch = self._launches
        slot.cell.prepare()
        ended = ChildEnded(slot.child.name, slot.launch)
        self._cell.start_soon(self._watch, slot.cell, ended, name=slot.cell.path)
        await slot.cell.started.wait()

    async def _watch(self, cell: Cell, ended: ChildEnded) -> None:
        await cell.run()
        self._cell.mailbox.put_control(Envelope(ended, is_own=True))

    async def _stop(self, slot: _Slot) -> None:
        slot.launch = 0
        await slot.cell.stop(slot.child.grace_s)

    def _forget(self, slot: _Slot) -> None:
        self._slots.pop(slot.child.name, None)
        slot.cell.close()

    async def _child_ended(self, ended: ChildEnded) -> None:
        slot = self._slots.get(ended.name)
        if slot is None or slot.launch != ended.launch:
            return
        error = slot.cell.error
        if not wants_restart(slot.child.restart, failed=error is not None):
            self._forget(slot)
            return
        self._count_restart(ended.name, error)
        slots = [self._slots[name] for name in affected(self.strategy, list(self._slots), ended.name)]
        for other in reversed(slots):
            await self._stop(other)
            if not wants_restart(other.child.restart, failed=True):
                self._forget(other)
                slots.remove(other)
        await self._restart(slots, error)

    def _count_restart(self, name: str, error: Exception | None) -> None:
        now = self.clock.monotonic()
        if not self.intensity.allows(self._restarted_at, now):
            limit = self.intensity
            raise RestartLimitError(self.ref.path, name, limit.restarts, limit.within_s) from error
        recent = [at for at in self._restarted_at if now - at <= self.intensity.within_s]
        self._restarted_at = [*recent, now]

    async def _restart(self, slots: Sequence[_Slot], error: Exception | None) -> None:
        for slot in slots:
            slot.cell.restarts += 1
            slot.cell.report(Restarting, error)
            slot.cell.tell_watchers(is_restarting=True)
            await self._launch(slot)
            if not slot.cell.has_started:
                return  # the rest waits for it: its end is the next message
