"""Deliberate bugs, applied one at a time by ``mutate.py`` (``make mutants``)."""

from tests.sim.mutants import batchers, effects, leases, outcomes, reading
from tests.sim.mutants.mutant import Mutant

__all__ = ["MUTANTS", "Mutant"]

MUTANTS: tuple[Mutant, ...] = (
    *leases.MUTANTS,
    *reading.MUTANTS,
    *outcomes.MUTANTS,
    *batchers.MUTANTS,
    *effects.MUTANTS,
)
