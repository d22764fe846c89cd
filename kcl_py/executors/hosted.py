"""A processor whose hooks run elsewhere: off the event loop, in a thread or in a process of its own.

For the worker it is a RecordProcessor like any other. It overrides just what the user's class overrides, since that
says which form of consuming it is, and has the same batchers. Middlewares go around it, on the event loop.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from kcl_py.processor import HOOKS, RecordProcessor

WITH_CHECKPOINTER = ("process_records", "shard_ended", "shutdown_requested")
"""Hooks whose last argument is the checkpointer."""
SIDE_BY_SIDE = ("process", "handle_batch")
"""Hooks that an instance may have several calls of at a time."""


class Hosted(RecordProcessor):
    """What the worker makes in the place of the user's class."""

    async def call(self, hook: str, *arguments: Any) -> Any:
        """Have a hook of the user's processor called with ``arguments``; return what it returns, raise what it raises.

        The first is ``initialize``, at each ownership; also where the user's class does not override it.
        """
        raise NotImplementedError

    async def ready(self) -> None:
        """Wait until the instance is initialised and a hook can be called at once: that is not in the time of one."""


def hosting(
    host: type[Hosted], processor: type[RecordProcessor], *, also: Sequence[str], **facts: object
) -> type[Hosted]:
    """Make the class that stands for ``processor``: a ``host`` with the same hooks, those of ``also`` and ``facts``."""
    body: dict[str, object] = {hook: _relay(hook) for hook in HOOKS if hook in also or is_own(processor, hook)}
    same = ("__module__", "__qualname__", "__doc__", "batchers", "middlewares")
    return type(processor.__name__, (host,), body | facts | {name: getattr(processor, name) for name in same})


def is_own(processor: type[RecordProcessor], hook: str) -> bool:
    """Tell whether the user's class overrides a hook."""
    return getattr(processor, hook) is not getattr(RecordProcessor, hook)


def is_synchronous(processor: type[RecordProcessor], hook: str) -> bool:
    """Tell whether a hook is the user's own and a ``def``."""
    return is_own(processor, hook) and not inspect.iscoroutinefunction(getattr(processor, hook))


def _relay(hook: str) -> Callable[..., Awaitable[Any]]:
    async def relay(self: Hosted, *arguments: Any) -> Any:
        return await self.call(hook, *arguments)

    return relay
