"""``make mutants``: apply each deliberate bug of ``mutants.py`` alone, and see that a law notices it.

A bug is caught if the life in good weather goes well and one of a thousand seeds breaks a law of ``tests.sim.checker``.
Works on a copy; the project's files are not touched.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import Progress

from tests.sim.checker import LAWS
from tests.sim.mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
SEEDS = 1000
"""How many lives a bug may have to be noticed in; most are in the 200 that the tests live."""
LIMIT_S = 3600
_COPIED, _LINKED = ("actors", "kcl_py"), ("tests", "pyproject.toml")


@dataclass(frozen=True)
class Verdict:
    """What became of one bug."""

    mutant: Mutant
    survives_fair_weather: bool
    seed: str = ""
    law: str = ""

    @property
    def is_caught(self) -> bool:
        return self.survives_fair_weather and bool(self.law)


def main() -> int:
    """Try all bugs, or those whose names contain an argument."""
    chosen = [mutant for mutant in MUTANTS if not sys.argv[1:] or any(word in mutant.name for word in sys.argv[1:])]
    verdicts: list[Verdict] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool, Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("bugs", total=len(chosen))
        _tell("| Bug | Law that notices it | First seed |\n| --- | --- | --- |")
        for verdict in pool.map(judge, chosen):
            verdicts.append(verdict)
            found = verdict.law or ("**none**" if verdict.survives_fair_weather else "**fails in good weather**")
            _tell(f"| {verdict.mutant.name} | {found} | {verdict.seed} |")
            progress.advance(task)
    caught = sum(verdict.is_caught for verdict in verdicts)
    _tell(f"\ncaught {caught} of {len(verdicts)}")
    return caught != len(verdicts)


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def judge(mutant: Mutant) -> Verdict:
    """Try one bug."""
    with applied(mutant) as root:
        form = ("--form", mutant.form) if mutant.form else ()
        if _simulate(root, "--fair")[0]:
            return Verdict(mutant, survives_fair_weather=False)
        for line, seed in _laws(_simulate(root, "--until-bad", "--seeds", str(SEEDS), *form)[1]):
            return Verdict(mutant, survives_fair_weather=True, seed=seed, law=line)
    return Verdict(mutant, survives_fair_weather=True)


@contextmanager
def applied(mutant: Mutant) -> Iterator[Path]:
    """Yield a copy of the project that has the bug."""
    with TemporaryDirectory(prefix="mutant-") as folder:
        root = Path(folder)
        for name in _COPIED:
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in _LINKED:
            (root / name).symlink_to(ROOT / name)
        path = root / mutant.path
        path.write_text(path.read_text().replace(mutant.old, mutant.new))
        yield root


def _simulate(root: Path, *arguments: str) -> tuple[int, list[str]]:
    command = [sys.executable, "-m", "tests.sim", *arguments]
    environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    if done.stderr:
        raise RuntimeError(f"cannot try a bug: the simulation itself failed\n{done.stderr}")
    return done.returncode, done.stdout.splitlines()


def _laws(output: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the names of the broken laws of a life, with its seed."""
    names = {law.__name__.replace("_", " ") for law in LAWS}
    seed = next((line.removeprefix("seed ") for line in output if line.startswith("seed ")), "")
    for line in output:
        if (name := line.partition(":")[0]) in names:
            yield name, seed


if __name__ == "__main__":
    sys.exit(main())
