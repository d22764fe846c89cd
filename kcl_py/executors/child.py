"""What runs in a child process: one instance of the user's processor, whose hooks the worker calls.

Hooks are called in the main thread, one at a time; calls of ``process`` and ``handle_batch`` each have a thread. A
further thread listens to the worker: when that is gone, so is this process, whatever a hook is at.
"""

import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from queue import SimpleQueue
from typing import Any, TypeVar

from kcl_py.effects import Effect
from kcl_py.errors import PositionError
from kcl_py.executors.checkpointer import SyncPrepared
from kcl_py.executors.frames import (
    Answer,
    Ask,
    Call,
    Checkpoint,
    Commit,
    Done,
    End,
    Failed,
    Frame,
    Once,
    Prepare,
    Unpacker,
    fault_of,
    pack,
    packed,
)
from kcl_py.executors.hosted import SIDE_BY_SIDE, WITH_CHECKPOINTER, is_synchronous
from kcl_py.executors.thread import settled
from kcl_py.processor import RecordProcessor
from kcl_py.records import Record, RecordBatch
from kcl_py.stderr import drop_unwritable

A = TypeVar("A", Record | RecordBatch, Record | RecordBatch | None)

_CHUNK_BYTES = 1 << 20


def main(handle: int, load: Callable[[], type[RecordProcessor]]) -> None:
    """Serve until the worker says that it is over.

    Args:
        handle: number of the socket to the worker.
        load: imports the user's class.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # sent to a group, they are for the worker, which ends its children
    drop_unwritable()
    Child(socket.socket(fileno=handle), load).serve()


class Child:
    """The whole process.

    Args:
        line: to the worker.
        load: imports the user's class.
    """

    def __init__(self, line: socket.socket, load: Callable[[], type[RecordProcessor]]) -> None:
        self._line, self._load = line, load
        self._sending = threading.Lock()
        self._calls: SimpleQueue[Call | End] = SimpleQueue()
        self._asked: dict[int, SimpleQueue[Answer]] = {}
        self._instance: RecordProcessor | None = None

    def serve(self) -> None:
        """Call hooks as they are asked for."""
        threading.Thread(target=or_end, args=(self._listen,), daemon=True, name="kcl_py-worker-line").start()
        while isinstance(call := self._calls.get(), Call):
            if call.hook in SIDE_BY_SIDE:
                threading.Thread(target=or_end, args=(self._serve_call, call), daemon=True).start()
            else:
                or_end(self._serve_call, call)

    def ask(self, number: int, what: Checkpoint | Prepare | Commit | Once) -> Any:
        """Have the worker do something with the checkpointer of a call; return and raise what that does."""
        request, answers = threading.get_ident(), SimpleQueue[Answer]()
        self._asked[request] = answers
        try:
            self._send(Ask(number, request, what))
            answer = answers.get()
        finally:
            del self._asked[request]
        if answer.error is not None:
            raise answer.error
        return answer.result

    def _listen(self) -> None:
        unpacker = Unpacker()
        while data := self._line.recv(_CHUNK_BYTES):
            for frame in unpacker.feed(data):
                if isinstance(frame, Answer):
                    self._asked[frame.request].put(frame)
                elif isinstance(frame, Call | End):
                    self._calls.put(frame)
        os._exit(0)

    def _serve_call(self, call: Call) -> None:
        try:
            reply: Frame = Done(call.number, packed(call.hook, self._called(call)))
        except BaseException as error:  # the worker says what follows from it
            reply = Failed(call.number, fault_of(error, traceback.format_exc()))
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # the user's to close, or to replace
                stream.flush()  # this process may be ended at any moment
        self._send(reply)

    def _called(self, call: Call) -> object:
        if self._instance is None:
            self._instance = self._load()()
        if not is_synchronous(type(self._instance), call.hook):
            return None  # RecordProcessor's own, which does nothing
        arguments = call.arguments
        if call.hook in WITH_CHECKPOINTER:
            arguments = (*arguments, ChildCheckpointer(self, call.number))
        method: Callable[..., Any] = getattr(self._instance, call.hook)
        return settled(call.hook, method(*arguments))

    def _send(self, frame: Frame) -> None:
        data = pack(frame)
        with self._sending:
            self._line.sendall(data)


def or_end(work: Callable[..., object], *arguments: object) -> None:
    """Do what a thread is for; where it cannot, end the process: the worker would wait for it without end."""
    try:
        work(*arguments)
    except BaseException as error:
        if not isinstance(error, ConnectionError):  # the worker has left, and has not read all
            with suppress(Exception):
                traceback.print_exc()
        os._exit(1)


class ChildCheckpointer:
    """The checkpointer of one call.

    Args:
        child: asks the worker.
        number: of the call.
    """

    def __init__(self, child: Child, number: int) -> None:
        self._child, self._number = child, number

    def checkpoint(self, at: Record | RecordBatch | None = None) -> None:
        self._child.ask(self._number, Checkpoint(_end_of(at)))

    def prepare(self, at: Record | RecordBatch | None = None, *, state: bytes | None = None) -> SyncPrepared:
        return ChildPrepared(self._child, self._number, self._child.ask(self._number, Prepare(_end_of(at), state)))

    def once(self, effects: Sequence[Effect], *, at: Record | RecordBatch) -> bool:
        is_applied: bool = self._child.ask(self._number, Once(effects, _end_of(at)))
        return is_applied


class ChildPrepared:
    """What ``ChildCheckpointer`` has prepared, by its place among what the call has."""

    def __init__(self, child: Child, number: int, place: int) -> None:
        self._child, self._number, self._place = child, number, place

    def commit(self) -> None:
        self._child.ask(self._number, Commit(self._place))


def _end_of(at: A) -> A:
    """Return what is to be sent of a place: a batch counts by its end."""
    if isinstance(at, RecordBatch):
        return replace(at, records=[Record(str(at.last), b"", "", sub_sequence_number=at.last.sub)])
    if isinstance(at, Record | None):
        return at
    raise PositionError(
        f"cannot checkpoint {type(at).__name__}: expected a record or batch that was handed over, or nothing"
    )
