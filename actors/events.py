"""What a tree of actors reports about its own life. Observations only: nothing correct depends on them."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

_log = logging.getLogger("actors")


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened to the actor ``path`` (names from the root, joined by ``/``)."""

    path: str


@dataclass(frozen=True, slots=True)
class Started(Event):
    """An incarnation has started."""


@dataclass(frozen=True, slots=True)
class Ended(Event):
    """An incarnation has ended; ``error`` keeps its traceback, and is None after a clean stop."""

    error: Exception | None


@dataclass(frozen=True, slots=True)
class Restarting(Event):
    """The supervisor starts the child again because of ``error``, its own or that of the sibling that took it along.

    None after a clean end.
    """

    error: Exception | None


@dataclass(frozen=True, slots=True)
class StopHookFailed(Event):
    """``on_stop`` raised, or was cut off at its limit; stopping went on."""

    error: Exception


@dataclass(frozen=True, slots=True)
class TaskFailed(Event):
    """An owned task raised when it could no longer end its actor: after its ``cancel()``, or while the actor ended."""

    error: Exception


@dataclass(frozen=True, slots=True)
class TaskAbandoned(Event):
    """An owned task ignored its cancellation for ``after_s`` seconds and was left behind; it may still run."""

    task: str
    """The qualified name of its coroutine function."""
    after_s: float


@dataclass(frozen=True, slots=True)
class GraceExceeded(Event):
    """The child did not stop within its grace and was cancelled."""

    grace_s: float


@dataclass(frozen=True, slots=True)
class MessagesDropped(Event):
    """The actor ended for good with messages waiting."""

    count: int


Observer = Callable[[Event], None]
"""Called at once, in the task of the actor concerned; must not block. What it raises is logged, and changes nothing."""


def observe(observer: Observer, event: Event) -> None:
    """Show ``event`` to ``observer``, whose own failure must not end what it observes."""
    try:
        observer(event)
    except Exception as error:
        _log.error("%s observer failed at %s", event.path, type(event).__name__, exc_info=error)


def log_event(event: Event) -> None:
    """Observe through the standard library's logger ``actors``: failures with their traceback, the rest at debug."""
    match event:
        case Ended(error=Exception() as error) | StopHookFailed(error=error) | TaskFailed(error=error):
            _log.error("%s %s", event.path, type(event).__name__, exc_info=error)
        case GraceExceeded() | MessagesDropped() | TaskAbandoned():
            _log.warning("%s", event)
        case _:
            _log.debug("%s", event)
