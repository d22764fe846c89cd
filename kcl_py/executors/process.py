"""Hooks run in a child process: one for each ownership of a shard, where the user's instance lives.

A child that ends by itself is a failed attempt, and the next attempt has a new child, which is initialised first. A
hook that is cancelled takes its child with it, since there is no other way to stop it.
"""

from dataclasses import replace
from typing import Any, ClassVar
from weakref import finalize

import anyio

from kcl_py.executors.hosted import WITH_CHECKPOINTER, Hosted, hosting
from kcl_py.executors.running_child import RunningChild
from kcl_py.processor import OwnedShard, RecordProcessor

LAST = ("lease_lost", "shutdown_requested")
"""After these nothing is called any more, however they end."""
ALWAYS = ("initialize", "shard_ended", *LAST)
"""What the worker is told of although the user's class does not override it."""


def in_children(processor: type[RecordProcessor]) -> type[RecordProcessor]:
    """Return the class that runs all hooks of ``processor`` in a child process for each of its instances."""
    return hosting(Isolated, processor, also=ALWAYS, users=processor)


class Isolated(Hosted):
    """One ownership of a shard."""

    users: ClassVar[type[RecordProcessor]]

    def __init__(self) -> None:
        self._child: RunningChild | None = None
        self._shard: OwnedShard | None = None
        self._starting = anyio.Lock()

    async def call(self, hook: str, *arguments: Any) -> Any:
        if hook == "initialize":
            [shard] = arguments
            self._shard = replace(shard, tables=None, checkpointer=None)  # the way to DynamoDB is the worker's
            await self._started()
            return None
        if hook in LAST and self._child is None:
            return None  # the instance that would hear of it is gone
        child, is_over = await self._started(), hook in LAST
        checkpointer = None
        if hook in WITH_CHECKPOINTER:
            *others, checkpointer = arguments
            arguments = tuple(others)
        try:
            outcome = await child.call(hook, arguments, checkpointer)
            is_over = is_over or hook == "shard_ended"
        finally:
            if is_over or child.is_gone:
                self._forget(child)
            if is_over:
                await child.end()
        return outcome

    async def ready(self) -> None:
        await self._started()

    async def _started(self) -> RunningChild:
        """Return the child, whose instance has been initialised."""
        async with self._starting:
            if self._child is None:
                assert self._shard is not None
                child = await RunningChild.start(self.users, self._shard.shard_id)
                self._kill = finalize(self, child.kill)  # whatever becomes of the shard, its child ends
                self._kill.atexit = False  # then it ends because its line is cut
                try:
                    await child.call("initialize", (self._shard,), None)
                except BaseException:
                    self._kill.detach()
                    with anyio.CancelScope(shield=True):
                        await child.killed()
                    raise
                self._child = child
            return self._child

    def _forget(self, child: RunningChild) -> None:
        if self._child is child:
            self._kill.detach()
            self._child = None
