"""Flights and departure delays by carrier: straight from the data set, and as Spark found them.

Sums of minutes, so that two ways of counting are equal or not, with no rounding between. A flight whose delay is
missing counts as a flight and not as a delay.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from examples.demo.dataset import Flight


@dataclass(frozen=True, slots=True)
class CarrierFigures:
    """One carrier."""

    flights: int = 0
    delays: int = 0
    """Flights whose delay is known."""
    delay_min: int = 0
    """Sum of the delays, in minutes."""

    @property
    def mean_delay_min(self) -> float | None:
        return self.delay_min / self.delays if self.delays else None


def count(flights: Iterable[Flight]) -> dict[str, CarrierFigures]:
    """Count by carrier."""
    sums: dict[str, list[int]] = {}
    for flight in flights:
        figures = sums.setdefault(flight.carrier, [0, 0, 0])
        figures[0] += 1
        if (delay_min := flight.delay_min) is not None:
            figures[1] += 1
            figures[2] += delay_min
    return {carrier: CarrierFigures(*figures) for carrier, figures in sums.items()}


def read(path: Path) -> dict[str, CarrierFigures]:
    """Read what ``flights_spark.py`` keeps in its output folder; empty while there is nothing."""
    if not path.exists():
        return {}
    return {carrier: CarrierFigures(**figures) for carrier, figures in json.loads(path.read_bytes()).items()}


def equal(expected: Mapping[str, CarrierFigures], found: Mapping[str, CarrierFigures]) -> int:
    """Return how many carriers of ``expected`` are the same in ``found``."""
    return sum(found.get(carrier) == figures for carrier, figures in expected.items())
