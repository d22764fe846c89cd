"""The worker's end of a child process."""

import asyncio
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress
from itertools import count
from typing import Any

import anyio

from kcl_py.errors import KclError
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
    pack,
    portable,
    unpacked,
)
from kcl_py.executors.origin import Origin, origin_of
from kcl_py.processor import Checkpointer, PreparedCheckpoint, RecordProcessor

END_S = 0.5
"""How long a child may take to end once it is told to; then it is killed. Less than a cancelled hook has, ABANDON_S."""
READ_S = 0.1
"""How long after the end of a child what it has said is still read: then its line is cut, for a process that it has
forked may keep that open."""
_START = (
    "import sys; sys.path[:] = {path!r}; "
    "from kcl_py.executors.origin import serve; serve({handle}, {module!r}, {name!r})"
)


class ChildEndedError(KclError):
    """A child process ended while it had work to do; the next attempt has a new one."""

    retryable = True


class RunningChild:
    """One child process.

    Args:
        process: it.
        line: to it.
        shard_id: what it is for.
    """

    def __init__(self, process: Process, line: "Line", shard_id: str) -> None:
        self._process, self._line, self._shard_id = process, line, shard_id
        self._numbers = count(1)
        loop = asyncio.get_running_loop()
        self._end = loop.create_task(process.wait())
        self._end.add_done_callback(lambda _: loop.call_later(READ_S, line.abort))
        self._is_cut_off = False
        """Whether this end has given it up, because a hook was cancelled."""

    @classmethod
    async def start(cls, processor: type[RecordProcessor], shard_id: str) -> "RunningChild":
        """Start a child that has imported nothing of the user's yet."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = await _launched(origin_of(processor), theirs)
            _, line = await asyncio.get_running_loop().create_connection(Line, sock=ours)
        except BaseException:
            ours.close()  # what has been started then ends
            raise
        return cls(process, line, shard_id)

    async def call(self, hook: str, arguments: tuple[Any, ...], checkpointer: Checkpointer | None) -> Any:
        """Call a hook of the instance in the child, and answer when it asks for checkpoints.

        Raises:
            ChildEndedError: the child has ended.
            ChildError: the hook has raised this, in a class of the same name.
        """
        call = Call(next(self._numbers), hook, arguments)
        inbox, prepared = self._line.open(call), list[PreparedCheckpoint]()
        try:
            while True:
                match await inbox.get():
                    case Done(outcome=outcome):
                        return unpacked(hook, outcome)
                    case Failed(fault=fault):
                        raise fault.error()
                    case Ask() as ask:
                        self._line.send(await _answer(ask, checkpointer, prepared))
                    case _:
                        raise await self._ended(hook)
        except asyncio.CancelledError:
            self._is_cut_off = True
            with anyio.CancelScope(shield=True):
                await self._leave()
            raise
        finally:
            self._line.close(call)

    @property
    def is_gone(self) -> bool:
        """Whether nothing can be asked of it any more."""
        return self._line.is_lost

    async def end(self) -> None:
        """Let the child end in order; kill it if it does not, and wait until it is gone."""
        self._line.send(End())
        with anyio.move_on_after(END_S):
            await self._process.wait()
        with anyio.CancelScope(shield=True):
            await self.killed()

    def kill(self) -> None:
        """End the child at once; idempotent, and it needs no event loop."""
        self._line.abort()
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def killed(self) -> None:
        """End the child at once, and wait until it is gone."""
        self.kill()
        await self._process.wait()

    async def _leave(self) -> None:
        """Have the child end by itself, for its line is cut; kill it if it does not, and wait until it is gone."""
        self._line.abort()
        with anyio.move_on_after(END_S):
            await self._process.wait()
        await self.killed()

    async def _ended(self, hook: str) -> ChildEndedError:
        has_own_end = not self._is_cut_off
        await self._leave()
        code = self._process.returncode or 0
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        how = how if has_own_end else "ended with another hook that was cancelled"
        return ChildEndedError(
            f"cannot finish {hook} of {self._shard_id!r}: expected its child process to live on, found it {how}; "
            "the next attempt has a new one"
        )


class Line(asyncio.Protocol):
    """Sorts what comes from the child by calls. Holds what one call of a hook takes and returns, no more."""

    def __init__(self) -> None:
        self._unpacker = Unpacker()
        self._inboxes: dict[int, asyncio.Queue[Frame]] = {}
        self._transport: asyncio.Transport | None = None
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        for inbox in self._inboxes.values():
            inbox.put_nowait(End())

    def data_received(self, data: bytes) -> None:
        for frame in self._unpacker.feed(data):
            if not isinstance(frame, Ask | Done | Failed):
                continue
            if (inbox := self._inboxes.get(frame.number)) is not None:
                inbox.put_nowait(frame)
            elif isinstance(frame, Ask):
                self.send(Answer(frame.request, _too_late()))

    def open(self, call: Call) -> "asyncio.Queue[Frame]":
        """Send a call; what the child says to it comes into the inbox, and an ``End`` when the child is gone."""
        data = pack(call)
        inbox = self._inboxes[call.number] = asyncio.Queue[Frame]()
        self._write(data)
        if self.is_lost:
            inbox.put_nowait(End())
        return inbox

    def close(self, call: Call) -> None:
        """Forget a call."""
        del self._inboxes[call.number]

    def send(self, frame: Frame) -> None:
        self._write(pack(frame))

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self.is_lost:
            self._transport.write(data)

    def abort(self) -> None:
        self.is_lost = True
        if self._transport is not None:
            with suppress(RuntimeError):  # the event loop is closed, and with it the line
                self._transport.abort()


async def _launched(origin: Origin, theirs: socket.socket) -> Process:
    start = _START.format(path=sys.path, handle=theirs.fileno(), module=origin.module, name=origin.name)
    return await asyncio.create_subprocess_exec(sys.executable, "-c", start, stdin=DEVNULL, pass_fds=[theirs.fileno()])


async def _answer(ask: Ask, checkpointer: Checkpointer | None, prepared: list[PreparedCheckpoint]) -> Answer:
    if checkpointer is None:
        return Answer(ask.request, _too_late())
    try:
        return Answer(ask.request, None, await _stored(ask, checkpointer, prepared))
    except Exception as error:  # the child raises it
        return Answer(ask.request, portable(error))


async def _stored(ask: Ask, checkpointer: Checkpointer, prepared: list[PreparedCheckpoint]) -> bool | int | None:
    match ask.what:
        case Checkpoint(at):
            await checkpointer.checkpoint(at)
        case Prepare(at, state):
            prepared.append(await checkpointer.prepare(at, state=state))
            return len(prepared) - 1
        case Commit(place):
            await prepared[place].commit()
        case Once(effects, at):
            return await checkpointer.once(effects, at=at)
    return None


def _too_late() -> KclError:
    return KclError(
        "cannot checkpoint: expected the hook that was given this checkpointer to run, found that it has returned"
    )
