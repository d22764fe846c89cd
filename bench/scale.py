"""What a large fleet costs its machines while nobody puts records: CPU, memory, requests, and how soon all settles.

    python -m bench.scale [--shards 1000] [--workers 1] [--profile]
    python -m bench.scale --process [--shards 1000] [--held 500]

Whole workers on virtual time, failover_s 30 and idle_s 5. Their CPU counts with that of the service and of the
simulation, which ``--profile`` tells apart. ``--process`` runs a worker as it is, beside ``kcl local``; it takes all
shards, or so many of them.
"""

import argparse
import asyncio
import cProfile
import gc
import json
import os
import pstats
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import structlog

from bench.first_record import ENV, KCL, PROCESSOR
from tests import simloop
from tests.kcl_py.tree.fleet import Fleet
from tests.simloop import run, sim_loop

OPTIONS: dict[str, Any] = {"leases": {"failover_s": 30}, "fetch": {"idle_s": 5}}
QUIET_S = 60
PARTS = {
    "leases": ("kcl_py/leases/", "kcl_py/tree/lease.py", "kcl_py/tree/agenda.py", "kcl_py/tree/checkpoints.py"),
    "coordinator": ("kcl_py/tree/coordinator.py", "kcl_py/tree/outlook.py", "kcl_py/tree/reads.py"),
    "reading": ("kcl_py/tree/", "kcl_py/sources/", "kcl_py/delivery/", "kcl_py/aws.py"),
    "actors": ("actors/",),
    "service and simulation": ("kcl_py/local/", "tests/"),
}
"""Where time goes, by file; what is none of these is Python's, asyncio's and anyio's."""


def loads(fleet: Fleet) -> Counter[str]:
    """Count the rows of each worker; those in a handoff and those that are free count as nobody's."""
    items = fleet.store.items.values()
    return Counter(item.get("leaseOwner", "") if "checkpointOwner" not in item else "" for item in items)


def is_balanced(fleet: Fleet, shards: int) -> bool:
    """Tell whether every shard is held, by all workers, of whom none has two more than another."""
    held = loads(fleet)
    return held.total() == shards and len(held) == len(fleet.members) and max(held.values()) - min(held.values()) < 2


async def measure(shards: int, workers: int, *, with_profile: bool) -> None:
    """Start a fleet, let it be quiet, and have one more join; print what that takes."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    sim_loop().set_task_factory(None)  # else it keeps every task
    simloop.LIVELOCK = 10**9  # ten thousand shards take many steps in one instant
    fleet = Fleet(shards=shards, **OPTIONS)
    gc.collect()
    before_bytes, begun_s = _rss_bytes("self"), time.process_time()
    for number in range(workers):
        fleet.start(f"w{number}")
    await fleet.until(lambda: "" not in loads(fleet) and loads(fleet).total() == shards, each_s=0.25)
    print(f"all held after {sim_loop().time():.1f} s", end=", ", flush=True)
    await fleet.until(lambda: is_balanced(fleet, shards), each_s=0.25)
    print(f"balanced after {sim_loop().time():.1f} s, {time.process_time() - begun_s:.1f} CPU s", flush=True)
    await asyncio.sleep(30)
    _forget_calls(fleet)
    gc.collect()
    print(f"{(_rss_bytes('self') - before_bytes) / shards / 1024:.0f} KiB a shard, the service's part included")
    profile, begun_s = cProfile.Profile(), time.process_time()
    if with_profile:
        profile.enable()
    await asyncio.sleep(QUIET_S)
    profile.disable()
    print(f"quiet: {(time.process_time() - begun_s) / QUIET_S:.3f} CPU s a second", end="; ")
    calls = Counter(call.operation for member in fleet.members.values() for call in member.wire.calls)
    print(", ".join(f"{count / QUIET_S:.2f} {name}" for name, count in calls.most_common()), "a second")
    if with_profile:
        print(", ".join(f"{part} {share:.0%}" for part, share in _shares(profile).items()))
    joined_at, begun_s = sim_loop().time(), time.process_time()
    fleet.start("joins")
    await fleet.until(lambda: is_balanced(fleet, shards), within_s=600, each_s=0.25)
    took_s = sim_loop().time() - joined_at
    print(f"one more: balanced after {took_s:.1f} s, {time.process_time() - begun_s:.1f} CPU s of all", flush=True)
    _forget_calls(fleet)
    await fleet.stopped()


def _forget_calls(fleet: Fleet) -> None:
    for member in fleet.members.values():
        member.wire.calls.clear()


def _shares(profile: cProfile.Profile) -> dict[str, float]:
    spent: Counter[str] = Counter()
    root = f"{Path(__file__).parents[1]}/"
    for (file, _, _), (_, _, own_s, _, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        path = file.removeprefix(root)
        spent[next((part for part, places in PARTS.items() if path.startswith(places)), "python")] += own_s
    return {part: own_s / spent.total() for part, own_s in spent.most_common()}


def _rss_bytes(process: int | str) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_process(shards: int, held: int, quiet_s: float) -> None:
    """Run one worker on ``kcl local``; print its CPU and memory once it holds its shards."""
    command = [KCL, "local", "--port", "0", "--stream", f"bench:{shards}"]
    options = {"KCL_LEASES__FAILOVER_S": "30", "KCL_FETCH__IDLE_S": "5", "KCL_LEASES__MAX_LEASES": str(held)}
    with tempfile.TemporaryDirectory() as name, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().split()[1]
            (Path(name) / "worker.yaml").write_text("app: bench\nstream: bench\nprocessor: nothing:Nothing\n")
            (Path(name) / "nothing.py").write_text(PROCESSOR)
            env = ENV | options | {"KCL_AWS__ENDPOINT": url}
            with subprocess.Popen(
                [KCL, "run", "worker.yaml"], cwd=name, env=env, stderr=subprocess.PIPE, text=True
            ) as worker:
                try:
                    _watch(worker, held, quiet_s)
                finally:
                    worker.kill()
        finally:
            server.kill()


def _watch(worker: "subprocess.Popen[str]", held: int, quiet_s: float) -> None:
    begun_s, missing, before_bytes = time.monotonic(), held, 0
    assert worker.stderr is not None
    for line in worker.stderr:
        event = json.loads(line)["event"]
        if event == "kcl_py.worker.started":
            before_bytes = _rss_bytes(worker.pid)
        missing -= event == "kcl_py.lease.taken"
        if not missing:
            break
    print(f"process: {held} held {time.monotonic() - begun_s:.1f} s after its start")
    time.sleep(15)
    cpu_s, begun_s = _cpu_s(worker.pid), time.monotonic()
    time.sleep(quiet_s)
    used = (_cpu_s(worker.pid) - cpu_s) / (time.monotonic() - begun_s)
    rss_bytes = _rss_bytes(worker.pid)
    per_shard = (rss_bytes - before_bytes) / held / 1024
    print(
        f"quiet: {used:.3f} CPU s a second, {rss_bytes / 2**20:.0f} MiB, {per_shard:.0f} KiB more for each held shard"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--profile", action="store_true", help="tell where the time of the quiet fleet goes")
    parser.add_argument("--process", action="store_true", help="one real worker, for a minute")
    parser.add_argument("--held", type=int, help="how many shards it may take")
    options = parser.parse_args()
    if options.process:
        measure_process(options.shards, options.held or options.shards, 60.0)
    else:
        run(lambda: measure(options.shards, options.workers, with_profile=options.profile))


if __name__ == "__main__":
    main()
