"""``make sim``: live many seeds and judge them, or one seed with its log.

    python -m tests.sim --seeds 1000 [--first 0]
    python -m tests.sim --seed 7 [--log FILE]

A bad life is made smaller and told; the exit code is then 1.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.progress import Progress

from tests.sim.plan import FAIR, FORMS, Plan, plan
from tests.sim.run import Result, live, lives
from tests.sim.shrink import shrink
from tests.sim.story import setting, story

SEEDS_A_TASK, TASKS_A_CHILD = 10, 10
"""What a crash leaves behind is never freed, so a process lives a hundred seeds."""
HAPPY_LAWS = ("every record is finished", "what stops leaves nothing", "all is read in the end", "nobody fails")
ENOUGH_SEEDS = 200
"""From so many lives on each of these must have happened."""
MUST_HAPPEN = {
    "takes": "kcl_py.lease.taken free",
    "expiries": "kcl_py.lease.taken expired",
    "handoffs": "kcl_py.lease.taken handoff",
    "splits": "split",
    "merges": "merge",
    "shard counts": "count",
    "lost replies": "lost_reply",
    "throttles": "throttle",
    "crashes": "crash",
    "cancels": "cancel",
    "stops": "stop",
    "pauses": "pause",
    "freezes": "freeze",
    "clock jumps": "jump",
    "partitions": "cut",
    "storms": "storm",
    "actors killed": "kill",
    "rows deleted": "row deleted",
    "requests carried out": "kcl_py.lease.request_applied",
    "failing batches": "kcl_py.batch.failed",
    "records given up": "given_up",
    "skipped": "skipped",
    "dead letters": "letter",
    "shards halted": "halts",
    "records given to batchers": "away",
    "checkpoints by processors": "saved",
    "hooks cut off": "kcl_py.processor.cut_off",
    "parts stored": "part",
    "expired iterators": "kcl_py.fetch.iterator_expired",
    "ended shards": "kcl_py.lease.completed",
    "rows done with": "kcl_py.lease.deleted",
}
"""What a good many lives must have had, and under which name it is counted."""


def main() -> int:
    """Do what the arguments say."""
    arguments = _parser().parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets of strings must be the same in every run
        os.execve(
            sys.executable, [sys.executable, "-m", "tests.sim", *sys.argv[1:]], os.environ | {"PYTHONHASHSEED": "0"}
        )
    if arguments.fair:
        return _fair()
    if arguments.until_bad:
        return _first_bad(range(arguments.first, arguments.first + arguments.seeds), arguments.form)
    if arguments.seed is not None:
        return _one(plan(arguments.seed, arguments.form), arguments.log)
    return _many(range(arguments.first, arguments.first + arguments.seeds), arguments.processes)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.sim", description="Simulated lives of whole fleets.")
    parser.add_argument("--seeds", type=int, default=ENOUGH_SEEDS, help="how many lives")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, help="one life")
    parser.add_argument("--form", choices=FORMS, default="", help="how records reach processors; default: as drawn")
    parser.add_argument("--fair", action="store_true", help="one life in good weather")
    parser.add_argument("--until-bad", action="store_true", help="stop at the first life that breaks a law")
    parser.add_argument("--log", type=Path, help="where its history goes, with the events of its workers")
    return parser


def _one(chosen: Plan, log: Path | None) -> int:
    result = live(chosen, keeps_log=log is not None)
    if log is not None:
        log.write_bytes(b"".join(line + b"\n" for line in result.lines))
    _tell(f"seed {chosen.seed}: {setting(chosen)}")
    _tell(f"{result.virtual_s:.0f} virtual s, {result.steps} steps, {result.cpu_s:.2f} CPU s")
    if result.broken:
        _explain(result)
        return 1
    return _report(result)


def _report(result: Result) -> int:
    _tell("\n".join(result.broken) or "all laws hold")
    return bool(result.broken)


def _fair() -> int:
    """Live in good weather, and look only at what a test of the happy path would."""
    result = live(FAIR)
    result.broken = [text for text in result.broken if text.startswith(HAPPY_LAWS)]
    return _report(result)


def _first_bad(seeds: range, form: str) -> int:
    """Say which is the first bad one, for those who try bugs."""
    for seed in seeds:
        result = live(plan(seed, form))
        if result.broken:
            _tell(f"seed {seed}")
            return _report(result)
    _tell("all laws hold")
    return 0


def _many(seeds: range, processes: int) -> int:
    counts: Counter[str] = Counter()
    bad: list[Result] = []
    cpu_s = virtual_s = 0.0
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("lives", total=len(seeds))
        for result in _results(seeds, processes):
            counts.update(result.counts)
            cpu_s, virtual_s = cpu_s + result.cpu_s, virtual_s + result.virtual_s
            progress.advance(task)
            if result.broken:
                bad.append(result)
                progress.console.print(f"seed {result.seed}: {result.broken[0]}", markup=False, highlight=False)
    _tell(f"{len(seeds)} lives, {virtual_s / 3600:.1f} virtual hours, {cpu_s / len(seeds):.2f} CPU s each")
    _tell(", ".join(f"{counts[name]} {what}" for what, name in MUST_HAPPEN.items()))
    missing = [what for what, name in MUST_HAPPEN.items() if not counts[name]]
    is_short = bool(missing) and len(seeds) >= ENOUGH_SEEDS
    for result in sorted(bad, key=lambda one: one.seed)[:3]:
        _explain(result)
    if is_short:
        _tell(f"none of the lives had {', '.join(missing)}: the plans are wrong")
    _tell(f"{len(bad)} of {len(seeds)} lives broke a law" if bad else "all laws hold")
    return bool(bad) or is_short


def _results(seeds: range, processes: int) -> Iterator[Result]:
    tasks = [seeds[start : start + SEEDS_A_TASK] for start in range(0, len(seeds), SEEDS_A_TASK)]
    with get_context("spawn").Pool(processes, maxtasksperchild=TASKS_A_CHILD) as pool:
        for results in pool.imap_unordered(lives, tasks):
            yield from results


def _explain(result: Result) -> None:
    small, found = shrink(plan(result.seed), result, live)
    _tell(f"\nseed {result.seed} breaks {', '.join(sorted(result.laws))}:")
    _tell("\n".join(f"  {text}" for text in result.broken))
    _tell(f"made smaller: {setting(small)}")
    _tell("\n".join(f"  {text}" for text in found.broken))
    _tell("\n".join(story(found.lines, found.broken)))
    _tell(f"again: make sim SEED={result.seed} LOG=life.jsonl")


def _tell(text: str, file: TextIO = sys.stdout) -> None:
    file.write(f"{text}\n")
    file.flush()


if __name__ == "__main__":
    sys.exit(main())
