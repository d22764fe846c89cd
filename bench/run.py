"""``make bench``: how long shards stand still as they move, how soon a worker has records, what leases cost, its CPU.

CPU is that of the whole tree as a multiple of fetching and decoding alone. The cases take turns against one stub server
on the same machine, each in a process of its own, and the table shows medians: the ratio is steadier than the seconds.
Nothing is asserted.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table

from bench import cost, pauses

CASES = ("floor", "tree")
SECRETS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench"}

Figures = dict[str, float]


@contextmanager
def a_stub(options: argparse.Namespace) -> Iterator[str]:
    """Run the stub server; yields its address."""
    sizes = [f"--{name}={getattr(options, name)}" for name in ("shards", "replies", "batch", "size")]
    command = [sys.executable, "-m", "bench.stub_server", *sizes]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().removeprefix("ready ").strip()
        finally:
            server.kill()


def run(case: str, url: str, records: int) -> Figures:
    """Run one case in a fresh process and return what it printed."""
    command = [sys.executable, "-m", "bench.cases", case, url, str(records)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | SECRETS)
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def show(results: dict[str, list[Figures]], options: argparse.Namespace) -> None:
    """Print the medians."""
    table = Table(
        title=f"{options.size} B records, {options.batch} a reply, {options.shards} shards, median of {options.reps}"
    )
    for column in ("case", "records", "CPU us/record", "÷ floor", "wall s"):
        table.add_column(column, justify="left" if column == "case" else "right")
    cpu_us = {case: statistics.median(f["cpu_s"] / f["records"] for f in runs) * 1e6 for case, runs in results.items()}
    for case, runs in results.items():
        wall_s = statistics.median(f["wall_s"] for f in runs)
        ratio = statistics.median(f["cpu_s"] / base["cpu_s"] for f, base in zip(runs, results["floor"], strict=True))
        table.add_row(case, f"{runs[0]['records']:,.0f}", f"{cpu_us[case]:.2f}", f"{ratio:.2f}", f"{wall_s:.1f}")
    Console().print(table)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("shards", 16), ("replies", 6), ("batch", 10_000), ("size", 200), ("reps", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    pauses.measure_and_show(options.reps)
    cost.main(cost.QUICK)
    results: dict[str, list[Figures]] = {case: [] for case in CASES}
    with a_stub(options) as url:
        for _ in range(options.reps):
            for case in CASES:
                results[case].append(run(case, url, options.shards * options.replies * options.batch))
    show(results, options)


if __name__ == "__main__":
    main()
