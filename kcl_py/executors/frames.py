"""What a worker and a child process say to each other: pickled objects, each behind its length.

A child says the last word on a call with ``Done`` or ``Failed``, and may ask for checkpoints before.
"""

import pickle
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kcl_py.delivery.retry import text_of
from kcl_py.effects import Effect
from kcl_py.errors import KclError
from kcl_py.records import Record, RecordBatch

_LENGTH = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class Call:
    """Worker to child: call this hook. The first call is ``initialize``."""

    number: int
    hook: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """Child to worker: the hook has returned."""

    number: int
    outcome: bytes
    """Packed by ``packed``: where it cannot be, that is a failure of this call alone."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Child to worker: the hook has raised, or could not be called."""

    number: int
    fault: "Fault"


@dataclass(frozen=True, slots=True)
class Fault:
    """An exception, as far as it can be told to another process: its own class may not pickle."""

    name: str
    text: str
    traceback: str = ""

    def error(self) -> BaseException:
        """Make an exception that reads as the original."""
        if self.name == "SystemExit":
            return SystemExit(self.text)
        error: Exception = type(self.name, (ChildError,), {})(self.text)
        if self.traceback:
            error.add_note(self.traceback)
        return error


class ChildError(Exception):
    """An exception of a hook in a child process; its class has the name of the original."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Store a checkpoint."""

    at: Record | RecordBatch | None


@dataclass(frozen=True, slots=True)
class Prepare:
    """Store one that does not count yet; the answer is its place, from 0, among those of the call."""

    at: Record | RecordBatch | None
    state: bytes | None


@dataclass(frozen=True, slots=True)
class Commit:
    """Make one count that was prepared."""

    place: int


@dataclass(frozen=True, slots=True)
class Once:
    """Apply effects and store a checkpoint; the answer is whether they were applied."""

    effects: Sequence[Effect]
    at: Record | RecordBatch


@dataclass(frozen=True, slots=True)
class Ask:
    """Child to worker: do this with the checkpointer of a call. ``request`` tells the answers apart."""

    number: int
    request: int
    what: Checkpoint | Prepare | Commit | Once


@dataclass(frozen=True, slots=True)
class Answer:
    """Worker to child: it is stored, or why it is not."""

    request: int
    error: Exception | None
    result: Any = None


@dataclass(frozen=True, slots=True)
class End:
    """Worker to child: there is nothing more to do."""


Frame = Call | Done | Failed | Ask | Answer | End


def pack(frame: Frame) -> bytes:
    """Raises whatever pickling raises."""
    body = pickle.dumps(frame, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


class Unpacker:
    """Puts together what arrives in pieces."""

    def __init__(self) -> None:
        self._left = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take in some bytes; yields the frames that are whole now."""
        self._left += data
        while len(self._left) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._left)
            end = _LENGTH.size + length
            if len(self._left) < end:
                return
            body = bytes(memoryview(self._left)[_LENGTH.size : end])
            del self._left[:end]
            yield pickle.loads(body)


def packed(hook: str, outcome: object) -> bytes:
    """Make what a hook has returned ready to be told; exceptions in it as far as they can be.

    Raises:
        KclError: it does not pickle.
    """
    if isinstance(outcome, Mapping):
        outcome = {key: fault_of(each) if isinstance(each, BaseException) else each for key, each in outcome.items()}
    try:
        return pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise _unpicklable(hook, error) from error


def unpacked(hook: str, outcome: bytes) -> object:
    """Undo ``packed``.

    Raises:
        KclError: this process cannot make of it what it was.
    """
    try:
        found = pickle.loads(outcome)
    except Exception as error:
        raise _unpicklable(hook, error) from error
    if isinstance(found, Mapping):
        return {key: each.error() if isinstance(each, Fault) else each for key, each in found.items()}
    return found


def portable(error: Exception) -> Exception:
    """Return an exception that another process can raise: the same, or one that reads as it."""
    try:
        pickle.loads(pickle.dumps(error, pickle.HIGHEST_PROTOCOL))
    except Exception:
        return KclError(f"{type(error).__name__}: {text_of(error)}")
    return error


def _unpicklable(hook: str, error: Exception) -> KclError:
    return KclError(
        f"cannot hand what {hook} returned to the worker: expected something that can be pickled, "
        f"found {type(error).__name__}: {error}"
    )


def fault_of(error: BaseException, traceback: str = "") -> Fault:
    """Note class and text of an exception."""
    return Fault(type(error).__name__, text_of(error), traceback)
