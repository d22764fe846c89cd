"""What ``kcl run`` does with signals and with the way its stream ends; the stream here is a fake."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import anyio
import pytest

from actors.errors import RestartLimitError
from kcl_py import errors, log
from kcl_py.cli.failure import exit_code, fail
from kcl_py.cli.run import work
from kcl_py.cli.signals import Signals
from kcl_py.config import Config
from kcl_py.tree.halts import HaltedShard

CONFIG = Config(app="demo", stream="flights", processor="m:C", grace_s=7)


@dataclass(frozen=True)
class Outcome:
    """How the fake ended."""

    unfinished: int = 0
    has_let_go: bool = True


CLEAN = Outcome()


async def at_once() -> None:
    """Start without waiting."""


class FakeStream:
    """A stream that runs until it is stopped, and then ends with ``outcome``."""

    def __init__(
        self,
        *,
        start: Callable[[], Awaitable[None]] = at_once,
        outcome: Outcome = CLEAN,
        failure: Exception | None = None,
        halt: HaltedShard | None = None,
    ) -> None:
        self._halt = halt
        self._start, self._outcome, self._failure = start, outcome, failure
        self._stopped = anyio.Event()
        self.graces_s: list[float] = []
        self.was_closed = False
        self.waiting = anyio.Event()

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.was_closed = True

    def stop(self, grace_s: float) -> None:
        self.graces_s.append(grace_s)
        self._stopped.set()

    def tree(self) -> str:
        return "stream [running] mailbox 0"

    async def halted(self) -> HaltedShard:
        if self._halt is None:
            await anyio.sleep_forever()
        assert self._halt is not None
        return self._halt

    async def wait(self) -> Outcome:
        self.waiting.set()
        if self._failure is not None:
            raise self._failure
        await self._stopped.wait()
        return self._outcome


@pytest.fixture
def left() -> list[int]:
    """Signals that ended the process at once, had it been one."""
    return []


@pytest.fixture
def signals(left: list[int]) -> Iterator[Signals]:
    """Handlers in place; what was there before comes back."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)]
    with Signals(leave=left.append) as signals:
        yield signals
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)] == before


def send(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.asyncio
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    ("outcome", "code", "said"),
    [(Outcome(), 0, ""), (Outcome(3), 4, "found 3; they will come again"), (Outcome(0, False), 4, "table 'demo'")],
)
async def test_first_signal_stops_with_the_grace(
    signals: Signals, capsys: pytest.CaptureFixture[str], number: int, outcome: Outcome, code: int, said: str
) -> None:
    """The exit code and the line tell whether records will come again."""
    stream = FakeStream(outcome=outcome)
    async with anyio.create_task_group() as tasks:

        async def stop_when_running() -> None:
            await stream.waiting.wait()
            send(number)

        tasks.start_soon(stop_when_running)
        assert await work(lambda: stream, CONFIG, signals) == code
    assert stream.graces_s == [7]
    assert stream.was_closed
    error = capsys.readouterr().err
    assert said in error
    assert error.count("error: ") == bool(code)


@pytest.mark.asyncio
@pytest.mark.parametrize("is_asked", [True, False])
async def test_worker_ends_with_the_first_shard_that_halts_if_that_is_asked_for(
    signals: Signals, capsys: pytest.CaptureFixture[str], is_asked: bool
) -> None:
    """It stops in order, says where, and ends with 3; else it runs on."""
    stream = FakeStream(halt=HaltedShard("s-1", "ValueError: no", "49"))
    async with anyio.create_task_group() as tasks:

        async def stop_when_running() -> None:
            await stream.waiting.wait()
            send(signal.SIGTERM)

        if not is_asked:
            tasks.start_soon(stop_when_running)
        assert await work(lambda: stream, CONFIG, signals, exit_on_halt=is_asked) == (3 if is_asked else 0)
    assert stream.graces_s == [7]
    said = "cannot go on with 's-1' of stream 'flights': expected the processor to get past position 49"
    assert (said in capsys.readouterr().err) == is_asked


@pytest.mark.asyncio
async def test_second_signal_leaves_at_once(signals: Signals, left: list[int]) -> None:
    """Even while the loop is busy: it is not asked."""
    stream = FakeStream()
    signals.serve(stop=lambda: stream.stop(7), show=str)
    send(signal.SIGTERM)
    assert left == []
    send(signal.SIGINT)
    assert left == [signal.SIGINT]


@pytest.mark.asyncio
async def test_signal_before_the_loop_is_not_lost(signals: Signals) -> None:
    """It came while the configuration was read: the stream is not even started."""
    started = False

    async def start() -> None:
        nonlocal started
        await anyio.lowlevel.checkpoint()
        started = True

    send(signal.SIGTERM)
    assert await work(lambda: FakeStream(start=start), CONFIG, signals) == 0
    assert not started


@pytest.mark.asyncio
async def test_signal_while_starting_ends_the_start(signals: Signals) -> None:
    """A worker that waits for AWS to answer stops as fast as any other."""

    async def start() -> None:
        send(signal.SIGTERM)
        await anyio.sleep_forever()

    stream = FakeStream(start=start)
    with anyio.fail_after(5):
        assert await work(lambda: stream, CONFIG, signals) == 0
    assert stream.graces_s == []


@pytest.mark.asyncio
async def test_signal_at_the_very_end_of_starting_stops_the_stream(signals: Signals) -> None:
    """It came when the start had nothing left to wait for: the stream runs, and is stopped with its grace."""

    async def start() -> None:
        send(signal.SIGTERM)

    stream = FakeStream(start=start)
    with anyio.fail_after(5):
        assert await work(lambda: stream, CONFIG, signals) == 0
    assert set(stream.graces_s) == {7}


@pytest.mark.asyncio
async def test_user_signal_shows_the_tree_on_stderr(signals: Signals, capsys: pytest.CaptureFixture[str]) -> None:
    """Each time, without disturbing anything; while starting there is no tree yet."""
    shown = anyio.Event()

    async def start() -> None:
        send(signal.SIGUSR1)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()

    stream = FakeStream(start=start)
    tree = stream.tree

    def tree_and_tell() -> str:
        shown.set()
        return tree()

    stream.tree = tree_and_tell  # type: ignore[method-assign]
    async with anyio.create_task_group() as tasks:

        async def look_and_stop() -> None:
            await stream.waiting.wait()
            send(signal.SIGUSR1)
            await shown.wait()
            send(signal.SIGTERM)

        tasks.start_soon(look_and_stop)
        await work(lambda: stream, CONFIG, signals)
    assert capsys.readouterr().err == "starting\nstream [running] mailbox 0\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigError("a"), 2),
        (errors.ProcessorError("a"), 2),
        (errors.StreamNotFoundError("a"), 3),
        (errors.CredentialsError("a"), 3),
        (errors.EndpointError("a"), 3),
        (errors.LeaseTableError("a"), 3),
        (errors.StreamIdentityError("a"), 3),
        (errors.RequestError("a", "b", "c"), 1),
        (errors.KclError("a"), 1),
        (KeyError("a"), 1),
    ],
)
def test_each_error_has_its_exit_code(error: Exception, code: int) -> None:
    """Scripts and orchestrators decide by it."""
    assert exit_code(error) == code


@pytest.mark.asyncio
async def test_error_of_a_running_worker_is_its_failure_whatever_its_kind(
    signals: Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only at the start does it mean that the set-up is wrong, and that starting again cannot help."""
    error = errors.LeaseTableError("cannot go on")

    async def start() -> None:
        raise error

    stream = FakeStream(failure=error)
    assert await work(lambda: stream, CONFIG, signals) == 1
    assert (stream.was_closed, capsys.readouterr().err) == (True, "error: cannot go on\n")
    with pytest.raises(errors.LeaseTableError):
        await work(lambda: FakeStream(start=start), CONFIG, signals)


def test_failure_is_one_line_even_out_of_nested_groups(capsys: pytest.CaptureFixture[str]) -> None:
    """Task groups wrap what happened; our own error in there is what the user needs."""
    error = ExceptionGroup("x", [ValueError("no"), ExceptionGroup("y", [errors.EndpointError("two\nlines")])])
    assert fail(error) == 3
    assert capsys.readouterr().err == "error: two lines\n"


def test_supervisor_that_gave_up_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    """Its own error alone would only count restarts."""
    error = RestartLimitError("stream", "coordinator", 3, 30)
    error.__cause__ = KeyError("a")
    assert fail(error) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "'coordinator'" in line
    assert "unexpected KeyError: 'a'" in line


def test_traceback_is_printed_at_debug_only(capsys: pytest.CaptureFixture[str]) -> None:
    """Before the error line, which stays the last."""
    log.configure("debug", "json")
    try:
        fail(KeyError("a"))
    finally:
        log.configure("info", "json")
    shown = capsys.readouterr().err
    assert "KeyError: 'a'\nerror: unexpected KeyError: 'a'; set log.level" in shown
    assert shown.splitlines()[-1].startswith("error: ")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_process_exits_with_128_plus_the_second_signal(number: int, code: int) -> None:
    """At once, so without running what is left of the program."""
    program = f"""
import os
from kcl_py.cli.signals import Signals
with Signals():
    os.kill(os.getpid(), {int(number)})
    print("still here", flush=True)
    os.kill(os.getpid(), {int(number)})
    print("not any more", flush=True)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stdout) == (code, "still here\n")
    assert done.stderr.startswith("error: stopped at once by a second SIG")
    for stands_still in (True, False):  # who reads why; or has left
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        with suppress(BlockingIOError):
            while stands_still:
                os.write(writing, b"x" * 512)
        os.set_blocking(writing, True)
        if not stands_still:
            os.close(reading)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=writing, text=True, check=False, timeout=30)
        os.close(writing)
        assert (done.returncode, done.stdout) == (code, "still here\n")
        if stands_still:
            os.close(reading)


def test_hanging_up_stops_in_peace_however_often_it_comes_unless_it_is_ignored() -> None:
    """A terminal's end and its shell's are two of them; ``nohup`` is there against both."""
    stops, left, then = list[int](), list[int](), list[int]()
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)

    async def main() -> None:
        with Signals(leave=left.append) as signals:
            signals.serve(stop=lambda: stops.append(1), show=str)
            for number in (signal.SIGHUP, signal.SIGHUP, *then):
                os.kill(os.getpid(), number)
                await asyncio.sleep(0)
                await asyncio.sleep(0)

    asyncio.run(main())
    assert (stops, left) == ([1], [])
    then += [signal.SIGTERM, signal.SIGTERM]
    asyncio.run(main())
    assert (stops, left) == ([1, 1], [signal.SIGTERM]), "the second SIGTERM, not the first"
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    then.clear()
    asyncio.run(main())
    assert (stops, left) == ([1, 1], [signal.SIGTERM])
    signal.signal(signal.SIGHUP, before)
