"""The rules of a bad day together: which of them happens in a call, and how often each has.

No I/O and no clock: ``draw`` only decides. Chance comes from the generator that is passed in, so the same calls in the
same order meet the same faults. Memory is bounded by the number of rules and of AWS's operations.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from random import Random

from kcl_py.local.faults.fault import Fault, Kind


@dataclass(slots=True)
class Tally:
    """What became of one rule so far."""

    fault: Fault
    calls: int = 0
    """How many calls it is about."""
    happened: int = 0
    where: Counter[str] = field(default_factory=Counter)
    """How often of these in which operation."""

    def is_due(self, random: Random) -> bool:
        """Decide about the call that was just counted."""
        fault = self.fault
        if fault.calls and self.calls not in fault.calls:
            return False
        if fault.times is not None and self.happened >= fault.times:
            return False
        return fault.probability >= 1 or random.random() < fault.probability


class Faults:
    """Rules in order: the first that is due in a call happens in it, alone; each counts the calls that it is about.

    Args:
        faults: the rules to begin with.
        random: decides where a rule says a probability, and which part of a batch fails.
    """

    def __init__(self, faults: Iterable[Fault] = (), *, random: Random) -> None:
        self.random = random
        self.happened: Counter[tuple[str, str, Kind]] = Counter()
        """How often what happened, by service, operation and kind; it outlasts ``clear``."""
        self._tallies: list[Tally] = []
        self._reaching: dict[tuple[str, str], list[Tally]] = {}
        for fault in faults:
            self.add(fault)

    @property
    def is_idle(self) -> bool:
        """Whether there are no rules."""
        return not self._tallies

    def draw(self, service: str, operation: str, *, without: Collection[Kind] = ()) -> Fault | None:
        """Count a call, and return what happens in it.

        Args:
            service: such as ``kinesis``.
            operation: AWS's name of one of its operations.
            without: kinds that cannot happen in this very call; rules of them only count it.
        """
        if not self._tallies:
            return None
        drawn: Tally | None = None
        for tally in self._about(service, operation):
            tally.calls += 1
            if drawn is None and tally.fault.kind not in without and tally.is_due(self.random):
                drawn = tally
        if drawn is None:
            return None
        drawn.happened += 1
        drawn.where[operation] += 1
        self.happened[service, operation, drawn.fault.kind] += 1
        return drawn.fault

    def reach(self, service: str, operation: str, kind: Kind) -> bool:
        """Return whether a rule of ``kind`` is about such calls."""
        return any(tally.fault.kind is kind for tally in self._about(service, operation))

    def add(self, fault: Fault) -> None:
        """Add a rule after the others. Raises TypeError if it is none."""
        if not isinstance(fault, Fault):
            raise TypeError(f"cannot add a rule: expected a Fault, such as Fault(kind=…), found {type(fault).__name__}")
        self._tallies.append(Tally(fault))
        self._reaching.clear()

    def remove(self, fault: Fault) -> None:
        """Remove a rule; nothing if it is not there."""
        self._tallies = [tally for tally in self._tallies if tally.fault is not fault]
        self._reaching.clear()

    def clear(self) -> None:
        """Remove all rules."""
        self._tallies.clear()
        self._reaching.clear()

    def tallies(self) -> tuple[Tally, ...]:
        """Return what became of each rule, in order."""
        return tuple(self._tallies)

    def _about(self, service: str, operation: str) -> list[Tally]:
        key = service, operation
        found = self._reaching.get(key)
        if found is None:
            found = [tally for tally in self._tallies if tally.fault.reaches(service, operation)]
            self._reaching[key] = found
        return found
