"""Dead letters: records that were given up, stored where their user finds and replays them."""

from kcl_py.dead_letters.destination import DeadLetters
from kcl_py.dead_letters.letter import DeadLetter, parse
from kcl_py.errors import DeadLetterError

__all__ = ["DeadLetter", "DeadLetterError", "DeadLetters", "parse"]
