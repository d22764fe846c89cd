"""What a worker needs of the place where dead letters go."""

from typing import Protocol

from kcl_py.dead_letters.letter import DeadLetter


class DeadLetters(Protocol):
    """Keeps letters; the same one may come twice, since a record is acknowledged only after its letter is stored."""

    async def store(self, letter: DeadLetter) -> None:
        """Store ``letter``; returns only when it is stored durably.

        Tries once and takes a bounded time; the caller decides about another try.

        Raises:
            DeadLetterError: it is not stored, or nobody knows.
        """
        ...
