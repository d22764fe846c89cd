"""One law of Kinesis, as (requests → expected): it plays its requests and returns what it found."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.conformance.service import RefusedError, Service


@dataclass(frozen=True)
class Case:
    """One law."""

    name: str
    aws: str
    play: Callable[[Service], str]
    on_the_wire: bool
    """Whether it is about the bytes of HTTP, and so nothing for the model in memory."""

    def find(self, service: Service) -> str:
        """Return what ``service`` does."""
        try:
            return self.play(service)
        except RefusedError as error:
            return error.code
        except (KeyError, IndexError, TypeError, ValueError, StopIteration) as error:
            return f"answers in another shape ({type(error).__name__})"


Cases = list[Case]


def case(cases: Cases, name: str, aws: str, *, on_the_wire: bool = False) -> Callable[[Callable[[Service], str]], None]:
    """Add a case, made of a function, to ``cases``; ``aws`` is what the table in docs/local.md shows, too."""

    def add(play: Callable[[Service], str]) -> None:
        cases.append(Case(name, aws, play, on_the_wire))

    return add
