"""Faults of ``kcl local``, from a file, and what it tells of them: first that they are there, then what they did."""

from pathlib import Path
from random import Random

from kcl_py.local.faults.faults import Faults, Tally
from kcl_py.local.faults.script import read_script

_SEEDS = 2**32


class BadDay:
    """The rules of a file. Raises ConfigError if it cannot be used."""

    def __init__(self, file: Path) -> None:
        script = read_script(str(file))
        self._file, self._seed = file, Random().randrange(_SEEDS) if script.seed is None else script.seed
        self.faults = Faults(script.faults, random=Random(self._seed))

    def announced(self) -> str:
        """Say that things will go wrong."""
        count = len(self.faults.tallies())
        rules = "1 rule" if count == 1 else f"{count} rules"
        return f"A bad day: {rules} of {self._file}, seed {self._seed}. What happened is told at the end.\n"

    def told(self) -> str:
        """Say how often each rule happened."""
        lines = [f"  rule {number}: {_told(tally)}\n" for number, tally in enumerate(self.faults.tallies(), 1)]
        return f"\nThe bad day, seed {self._seed}:\n{''.join(lines)}"


def _told(tally: Tally) -> str:
    fault = tally.fault
    where = " ".join(filter(None, (fault.service, fault.operation))) or "any operation"
    if not tally.calls:
        return f"{fault.kind} in {where}: no such call"
    places = sorted(tally.where.items(), key=lambda place: (-place[1], place[0]))
    named = ", ".join(f"{operation or 'another'} {times}" for operation, times in places)
    detail = f" ({named})" if named and not fault.operation else ""
    return f"{fault.kind} in {where}: {tally.happened} of {tally.calls} calls{detail}"
