"""Errors of the actor runtime. Each says which actor it is about."""


class ActorError(Exception):
    """The root of the tree."""


class MailboxFullError(ActorError):
    """The receiver's mailbox is at its capacity; the message was not accepted."""

    def __init__(self, name: str, capacity: int, message_type: str) -> None:
        super().__init__(name, capacity, message_type)
        self.name, self.capacity, self.message_type = name, capacity, message_type

    def __str__(self) -> str:
        return (
            f"cannot tell {self.name!r} a {self.message_type}: expected room in its mailbox, "
            f"found {self.capacity} messages waiting; slow down or give it a larger capacity"
        )


class ActorStoppedError(ActorError):
    """The actor has ended, or ended before it answered."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"cannot get an answer from {self.name!r}: expected a live actor, found it stopped"


class AskTimeoutError(ActorError):
    """No answer came in time; the question may still be handled."""

    def __init__(self, name: str, timeout_s: float, message_type: str) -> None:
        super().__init__(name, timeout_s, message_type)
        self.name, self.timeout_s, self.message_type = name, timeout_s, message_type

    def __str__(self) -> str:
        return f"cannot get an answer from {self.name!r} to {self.message_type}: none came within {self.timeout_s:g} s"


class UnhandledMessageError(ActorError):
    """An actor was sent a message that it has no case for: always a programming error."""

    def __init__(self, name: str, message_type: str) -> None:
        super().__init__(name, message_type)
        self.name, self.message_type = name, message_type

    def __str__(self) -> str:
        return f"cannot handle {self.message_type} in {self.name!r}: expected a message that it has a case for"


class KilledError(ActorError):
    """The actor was cancelled from outside, or did not stop within its grace."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)
        self.name, self.why = name, why

    def __str__(self) -> str:
        return f"{self.name!r} was cancelled: {self.why}"


class RestartLimitError(ActorError):
    """A supervisor gave up: its children failed more often than its intensity allows. The cause is chained."""

    def __init__(self, name: str, child: str, restarts: int, within_s: float) -> None:
        super().__init__(name, child, restarts, within_s)
        self.name, self.child, self.restarts, self.within_s = name, child, restarts, within_s

    def __str__(self) -> str:
        return (
            f"cannot restart {self.child!r} under {self.name!r}: expected at most {self.restarts} restarts "
            f"in {self.within_s:g} s, found more; giving up"
        )
