"""Judges the history of one life of a fleet: reads its JSON lines, and knows nothing of the code that made them.

python -m tests.sim.checker HISTORY.jsonl
"""

from collections.abc import Iterable
from itertools import islice

from tests.sim.checker.laws import LAWS
from tests.sim.checker.story import MOST_TOLD, read

__all__ = ["LAWS", "broken"]


def broken(lines: Iterable[bytes | str]) -> list[str]:
    """Return what broke which law; nothing if all hold."""
    story = read(lines)
    return [f"{law.__name__.replace('_', ' ')}: {found}" for law in LAWS for found in islice(law(story), MOST_TOLD)]
