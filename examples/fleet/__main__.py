"""``make fleet``: ``python -m examples.fleet [--shards 32] [--rate 500]``. Exits with 1 if anything is lost."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median

import anyio
from rich.console import Console
from rich.table import Table

from actors.clock import SystemClock
from examples.demo.environment import isolate
from examples.fleet.figures import Row, after_waking, failures, milliseconds, read, rows
from examples.fleet.story import Story

FOLDER = Path(".fleet")
INTERRUPTED = 130
"""The exit code of a process that Ctrl-C has ended. Source: POSIX shells."""


def main() -> int:
    """Run the fleet; return the exit code."""
    parser = argparse.ArgumentParser(prog="make fleet", description=__doc__)
    parser.add_argument("--shards", type=int, default=32)
    parser.add_argument("--rate", type=int, default=500, help="records put a second")
    options = parser.parse_args()
    isolate()
    console = Console()
    FOLDER.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=FOLDER)).resolve()
    story = Story(folder, SystemClock(), shards=options.shards, rate=options.rate, say=console.print)
    try:
        traces = anyio.run(story.run)
    except KeyboardInterrupt:
        shutil.rmtree(folder)
        return INTERRUPTED
    deliveries = read(traces.out)
    table = rows(traces.acts, deliveries)
    stale = after_waking(deliveries, traces.sleeper, traces.woke_at, traces.took_at)
    failed = traces.accidents + failures(traces.put, deliveries, table, stale)
    console.print(drawn(table))
    print(f"put {len(traces.put)}, delivered {len(deliveries)}, lost {len(traces.put - {d.place for d in deliveries})}")
    print(f"delivered with old knowledge after the sleep: {stale}")
    if failed:
        print(f"what the processes said and wrote: {folder}")
        print(f"fleet: FAILED: {'; '.join(failed)}")
        return 1
    shutil.rmtree(folder)
    print("fleet: ok")
    return 0


def drawn(table: list[Row]) -> Table:
    """Draw what each act has cost."""
    shown = Table(box=None, pad_edge=False)
    for name in ("act", "took s", "moves", "median pause ms", "longest ms", "twice"):
        shown.add_column(name, justify="left" if name == "act" else "right")
    for row in table:
        took_s = row.act.ended_at - row.act.began_at
        pauses = (milliseconds(median, row.pauses_s), milliseconds(max, row.pauses_s))
        shown.add_row(row.act.name, f"{took_s:.1f}", str(row.moved), *pauses, str(row.twice))
    return shown


if __name__ == "__main__":
    sys.exit(main())
