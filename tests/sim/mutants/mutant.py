"""One deliberate bug."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A small change of the code that a fleet in good weather survives and a law must notice."""

    name: str
    path: str
    old: str
    """Is in its file exactly once, which a test holds."""
    new: str
    form: str = ""
    """In which form of delivery it shows; empty: as the lives draw it."""
