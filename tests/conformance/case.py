"""One law of Kinesis, as (requests → expected): it plays its requests and returns what it found."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from tests.conformance.service import RefusedError, Service


class Asked(Enum):
    """Who is asked."""

    ALL = "all"
    ON_THE_WIRE = "all but the model in memory: it is about the bytes of HTTP"
    OURS = "the model, whose clock can be moved: others would be waited for, or know nothing of our ways"


@dataclass(frozen=True)
class Case:
    """One law."""

    name: str
    aws: str
    play: Callable[[Service], str]
    asked: Asked
    with_rates: bool
    """Whether ours is asked with its rates limited; others have no such switch."""

    def find(self, service: Service) -> str:
        """Return what ``service`` does."""
        try:
            return self.play(service)
        except RefusedError as error:
            return error.code
        except (KeyError, IndexError, TypeError, ValueError, StopIteration) as error:
            return f"answers in another shape ({type(error).__name__})"


Cases = list[Case]


def case(
    cases: Cases, name: str, aws: str, *, asked: Asked = Asked.ALL, with_rates: bool = False
) -> Callable[[Callable[[Service], str]], None]:
    """Add a case, made of a function, to ``cases``; ``aws`` is what the table in docs/local.md shows, too."""

    def add(play: Callable[[Service], str]) -> None:
        cases.append(Case(name, aws, play, asked, with_rates))

    return add
