"""``make demo``: ``python -m examples.demo [--quick]``. Exits with 1 if any figure is not as it must be."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import anyio
from rich.console import Console

from actors.clock import SystemClock
from examples.demo.environment import isolate
from examples.demo.reckoning import reckon
from examples.demo.screen import carrier_table, screen
from examples.demo.story import Plan, Story
from examples.demo.verdict import failures, lines

FOLDER = Path(".demo")
RATE, QUICK_RATE = 6000.0, 2000.0
"""Flights put a second: slow enough to be watched."""
INTERRUPTED = 130
"""The exit code of a process that Ctrl-C has ended. Source: POSIX shells."""


def main() -> int:
    """Give the demo; return the exit code."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="January only")
    parser.add_argument("--no-spark", action="store_true", help="the workers alone")
    options = parser.parse_args()
    clock = SystemClock()
    begun_at = clock.monotonic()
    isolate()
    console = Console()
    plan = Plan(options.quick, has_spark=not options.no_spark, rate=QUICK_RATE if options.quick else RATE)
    FOLDER.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=FOLDER)).resolve()
    try:
        with screen(console, clock) as shown:
            traces = anyio.run(Story(plan, folder, shown, clock).run)
        reckoning, carriers = reckon(plan, traces)
    except KeyboardInterrupt:
        shutil.rmtree(folder)
        return INTERRUPTED
    failed = failures(reckoning)
    console.print(carrier_table(carriers))
    if failed:
        print(f"what the processes said and wrote: {folder}")
    else:
        shutil.rmtree(folder)
    print(*lines(reckoning, took_s=clock.monotonic() - begun_at), sep="\n", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
