"""Supervised actors on anyio: typed messages, bounded mailboxes, restarts by rule. Knows no AWS and no Spark."""

from actors.actor import Actor
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
    TaskAbandoned,
    TaskFailed,
    log_event,
)
from actors.ref import Down, Node, Question, Ref
from actors.restart import Intensity, Restart, Strategy
from actors.root import Root, running
from actors.supervisor import Child, Supervisor
from actors.task import OwnedTask
from actors.timer import Timer

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
    "Question",
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
    "TaskAbandoned",
    "TaskFailed",
    "Timer",
    "UnhandledMessageError",
    "log_event",
    "running",
]
