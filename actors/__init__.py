"""Supervised actors on anyio: typed messages, bounded mailboxes, restarts by rule. Knows no AWS and no Spark."""

from actors.actor import Actor
from actors.cell import OwnedTask
from actors.clock import Clock, SystemClock
from actors.errors import (
    ActorError,
    ActorStoppedError,
    AskTimeoutError,
    KilledError,
    MailboxFullError,
    RestartLimitError,
    UnhandledMessageError,
)
from actors.events import (
    Ended,
    Event,
    GraceExceeded,
    MessagesDropped,
    Observer,
    Restarting,
    Started,
    StopHookFailed,
    log_event,
)
from actors.ref import Down, Node, Ref
from actors.restart import Intensity, Restart, Strategy
from actors.root import Root, running
from actors.supervisor import Child, Supervisor

__all__ = [
    "Actor",
    "ActorError",
    "ActorStoppedError",
    "AskTimeoutError",
    "Child",
    "Clock",
    "Down",
    "Ended",
    "Event",
    "GraceExceeded",
    "Intensity",
    "KilledError",
    "MailboxFullError",
    "MessagesDropped",
    "Node",
    "Observer",
    "OwnedTask",
    "Ref",
    "Restart",
    "RestartLimitError",
    "Restarting",
    "Root",
    "Started",
    "StopHookFailed",
    "Strategy",
    "Supervisor",
    "SystemClock",
    "UnhandledMessageError",
    "log_event",
    "running",
]
