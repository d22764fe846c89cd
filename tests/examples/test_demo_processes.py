"""The demo's subprocesses end, whatever happens. That they have is seen by their connections closing."""

import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from examples.demo.processes import EndedError, Processes

pytestmark = pytest.mark.asyncio

CONNECT = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); s.send(b'.'); s.recv(1)"
WITH_CHILD = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {CONNECT!r}, sys.argv[1]]); {CONNECT}"
PATIENCE_S = 20
ROOT = Path(__file__).parents[2]


@pytest.fixture
def door() -> Iterator[socket.socket]:
    """Where subprocesses connect to, to show that they live."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        door.settimeout(PATIENCE_S)
        yield door


def port_of(door: socket.socket) -> str:
    return str(door.getsockname()[1])


def life(door: socket.socket) -> socket.socket:
    """Return the connection of a process that has begun to live."""
    connection, _ = door.accept()
    connection.settimeout(PATIENCE_S)
    assert connection.recv(1) == b"."
    return connection


def has_ended(connection: socket.socket) -> bool:
    """Wait for the end of the process behind a connection."""
    with connection:
        return connection.recv(1) == b""


async def test_leaving_the_block_ends_a_process_and_its_children(tmp_path: Path, door: socket.socket) -> None:
    """Spark's JVM is a child of its driver."""
    async with Processes(tmp_path) as processes:
        await processes.start("parent", sys.executable, "-c", WITH_CHILD, port_of(door))
        lives = [life(door), life(door)]
    assert all(map(has_ended, lives))


async def test_failing_in_the_block_ends_them_too(tmp_path: Path, door: socket.socket) -> None:
    """And the failure is what is told."""
    with pytest.RaisesGroup(KeyError):
        async with Processes(tmp_path) as processes:
            await processes.start("one", sys.executable, "-c", CONNECT, port_of(door))
            connection = life(door)
            raise KeyError
    assert has_ended(connection)


async def test_killing_the_demo_itself_ends_its_processes(tmp_path: Path, door: socket.socket) -> None:
    """Nothing in it can run any more; the guard does."""
    program = (
        "import anyio, sys\n"
        "from pathlib import Path\n"
        "from examples.demo.processes import Processes\n"
        "async def main():\n"
        "    async with Processes(Path(sys.argv[1])) as processes:\n"
        "        await processes.start('one', sys.executable, '-c', sys.argv[2], sys.argv[3])\n"
        "        await anyio.sleep_forever()\n"
        "anyio.run(main)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path), WITH_CHILD, port_of(door)]
    async with await anyio.open_process(command, cwd=ROOT) as demo:
        lives = [life(door), life(door)]
        demo.kill()
    assert all(map(has_ended, lives))


async def test_process_that_ends_by_itself_ends_the_block_and_is_named(tmp_path: Path) -> None:
    """Waiting for what it was to do would take for ever."""
    with pytest.RaisesGroup(pytest.RaisesExc(EndedError, match="worker-1 ended by itself with exit code 3")):
        async with Processes(tmp_path) as processes:
            await processes.start("worker-1", sys.executable, "-c", "raise SystemExit(3)")
            await anyio.sleep_forever()


async def test_stopped_process_tells_its_exit_code_and_a_stubborn_one_is_killed(
    tmp_path: Path, door: socket.socket
) -> None:
    """SIGTERM first."""
    stubborn = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {CONNECT}"
    polite = f"import signal; signal.signal(signal.SIGTERM, lambda *_: sys.exit(4)); {CONNECT}"
    async with Processes(tmp_path) as processes:
        first = await processes.start("polite", sys.executable, "-c", f"import sys; {polite}", port_of(door))
        lives = [life(door)]
        second = await processes.start("stubborn", sys.executable, "-c", stubborn, port_of(door))
        lives.append(life(door))
        assert await processes.stop(first, within_s=PATIENCE_S) == 4
        assert await processes.stop(second, within_s=0.01) == -signal.SIGKILL
    assert all(map(has_ended, lives))


async def test_server_is_ready_at_its_first_line(tmp_path: Path) -> None:
    """The line is where it says its address; one that ends before is named."""
    async with Processes(tmp_path) as processes:
        program = "import time; print('ready at 7', flush=True); time.sleep(60)"
        _, line = await processes.start_server("local", sys.executable, "-c", program)
    assert line == "ready at 7"
    with pytest.raises(ExceptionGroup) as caught:
        async with Processes(tmp_path) as processes:
            await processes.start_server("local", sys.executable, "-c", "pass")
    assert caught.group_contains(EndedError, match="local")


async def test_what_processes_say_is_in_log_files(tmp_path: Path, door: socket.socket) -> None:
    """Both outputs, one file for each name, and what a later process of the same name says goes behind."""
    speak = f"import sys; print(sys.argv[2], flush=True); print('!', file=sys.stderr, flush=True); {CONNECT}"
    async with Processes(tmp_path) as processes:
        for text in ("one", "two"):
            running = await processes.start("spark", sys.executable, "-c", speak, port_of(door), text)
            with life(door):
                await processes.kill(running)
    assert (tmp_path / "spark.log").read_text().split() == ["one", "!", "two", "!"]
