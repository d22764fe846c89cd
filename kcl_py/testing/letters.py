"""Dead letters in a test: in a list that outlives the worker, wherever its options say that they go."""

from anyio.lowlevel import checkpoint

from kcl_py.dead_letters import DeadLetter, DeadLetterError
from kcl_py.testing.line import Line


class Letters:
    """Implements ``DeadLetters``.

    Args:
        kept: what has been stored, in order.
        line: of the worker.
    """

    def __init__(self, kept: list[DeadLetter], line: Line) -> None:
        self._kept, self._line = kept, line

    async def store(self, letter: DeadLetter) -> None:
        """Keep ``letter``; see ``DeadLetters``."""
        await checkpoint()
        if self._line.is_cut:
            raise DeadLetterError("cannot store a dead letter: expected a living worker, found it dead", retryable=True)
        self._kept.append(letter)
