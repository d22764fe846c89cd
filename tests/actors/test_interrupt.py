"""Ctrl-C and its like, in a process of its own: the tree stops in order, and the interrupt comes out as itself."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
    import signal
    import sys
    import anyio
    from actors import Actor, Child, Supervisor, running

    class Speaker(Actor):
        async def on_start(self):
            print("start", self.ref.name, flush=True)

        async def on_message(self, message):
            raise message

        async def on_stop(self):
            await anyio.sleep(0.01)
            print("stop", self.ref.name, flush=True)

    class Pair(Supervisor):
        async def on_message(self, message):
            self.child("a").tell(message)

    async def main():
        pair = [Child("a", Speaker), Child("b", Speaker)]
        async with running(lambda: Pair(pair), observer=lambda event: None) as root:
            print("ready", flush=True)
            if sys.argv[2] != "none":
                root.ref.tell({"KeyboardInterrupt": KeyboardInterrupt(), "SystemExit": SystemExit(7)}[sys.argv[2]])
            await anyio.sleep_forever()

    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs tests in the background ignores it
    try:
        anyio.run(main, backend=sys.argv[1])
    except BaseException as error:
        print("out", type(error).__name__, flush=True)
"""


def run_program(backend: str, raised: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), backend, raised], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_interrupt_stops_the_tree_in_order_and_comes_out_as_itself(backend: str) -> None:
    """With the stop hooks run to their end."""
    with run_program(backend, "none") as process:
        assert process.stdout is not None
        begun = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert begun == ["start a\n", "start b\n", "ready\n"]
    assert rest == "stop b\nstop a\nout KeyboardInterrupt\n"


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "SystemExit"])
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_end_of_the_program_raised_in_an_actor_comes_out_as_itself(backend: str, raised: str) -> None:
    """No group wraps it, and every stop hook runs."""
    with run_program(backend, raised) as process:
        out, _ = process.communicate()
    assert sorted(out.splitlines()[3:-1]) == ["stop a", "stop b"]
    assert out.splitlines()[-1] == f"out {raised}"
