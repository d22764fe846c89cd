"""How long an answer takes where ``kcl local`` is to be realistic. Seconds.

The figures are of the size that callers in the same region see; they are no promise of AWS's.
"""

from random import Random

TYPICAL_S = {
    **{"GetRecords": 0.010, "PutRecord": 0.008, "PutRecords": 0.015, "GetShardIterator": 0.010},
    **{"GetItem": 0.004, "PutItem": 0.006, "UpdateItem": 0.006, "DeleteItem": 0.006, "Query": 0.006},
}
OTHER_S = 0.025
MOST_S = 1.0
_SPREAD = 0.5
"""Of the logarithm: one call in a hundred takes three times the typical time."""


class Latency:
    """Draws the time of each answer."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def __call__(self, operation: str) -> float:
        """Return how long ``operation`` takes this time."""
        return min(MOST_S, TYPICAL_S.get(operation, OTHER_S) * self._random.lognormvariate(0.0, _SPREAD))
