"""The line of an event: its fields in a fixed order, and how it reads as text.

As text what differs comes first: event, shard, the event's own fields. App, stream and worker are the same on every
line of a worker, so they come last, and on a terminal only when they are not those of the line before.
"""

from structlog.typing import EventDict

SAME = ("app", "stream", "worker")
"""What every event of a worker says."""
_HEAD = ("timestamp", "level", "event")
_SHARD = ("shard_id", "epoch")
_TRACEBACKS = ("stack", "exception")
_BOLD, _RESET = "\x1b[1m", "\x1b[0m"
_COLOURS = {"error": "\x1b[31m", "critical": "\x1b[31m", "warning": "\x1b[33m", "info": "\x1b[32m"}
_LEVEL_WIDTH = len("warning")


def in_order(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Return the event with its fields in order, the same for all events; a structlog processor."""
    first = {name: event[name] for name in (*_HEAD, *SAME, *_SHARD) if name in event}
    return first | dict(event)  # the keys of the first keep their places


class TextLine:
    """Renders events as text; the last structlog processor.

    Args:
        is_terminal: whether colours can be shown, and somebody reads along: the time of day is enough then.
    """

    def __init__(self, *, is_terminal: bool) -> None:
        self._is_terminal = is_terminal
        self._said: dict[str, object] = {}

    def __call__(self, _logger: object, _method: str, event: EventDict) -> str:
        own = {name: value for name, value in event.items() if name not in (*_HEAD, *SAME, *_SHARD, *_TRACEBACKS)}
        shard = {name: event[name] for name in _SHARD if name in event}
        fields = [f"{name}={value}" for name, value in (shard | own | self._same(event)).items()]
        tracebacks = [str(event[name]) for name in _TRACEBACKS if event.get(name)]
        return "\n".join([" ".join([*self._head(event), *fields]), *tracebacks])

    def _head(self, event: EventDict) -> list[str]:
        at, level, name = (str(event.get(key, "")) for key in _HEAD)
        at, padded = f"{at[:23]}Z", f"{level:{_LEVEL_WIDTH}}"  # to the millisecond
        if not self._is_terminal:
            return [at, padded, name]
        return [at.partition("T")[2], f"{_COLOURS.get(level, '')}{padded}{_RESET}", f"{_BOLD}{name}{_RESET}"]

    def _same(self, event: EventDict) -> dict[str, object]:
        """What is to be said of app, stream and worker."""
        same = {name: event[name] for name in SAME if name in event}
        if not self._is_terminal:
            return same
        news = {name: value for name, value in same.items() if self._said.get(name) != value}
        self._said |= news
        return news
