"""Transactions of one ownership: which is to be sent, and what became of each. Pure.

An outcome is only told when it is sure: a request whose reply was lost may yet take effect, until the row has moved on.
"""

from collections import deque

from kcl_py.errors import EffectsRefusedError
from kcl_py.leases.paths import COUNTER
from kcl_py.leases.row import LeaseRow
from kcl_py.leases.writer import Settled
from kcl_py.tree.asking import CheckpointOutcome, Transact


class Transactions:
    """What waits, in the order in which it was asked for; the first is in work."""

    def __init__(self) -> None:
        self._asked: deque[Transact] = deque()
        self._doubt: int | None = None
        """The counter that the row has if the first one takes effect late."""

    def ask(self, asked: Transact) -> None:
        """Queue one."""
        self._asked.append(asked)

    @property
    def is_in_doubt(self) -> bool:
        """Whether somebody waits until the row has moved on."""
        return self._doubt is not None and self._is_over(self._asked[0])

    def next(self) -> Transact | None:
        """The one to be sent."""
        self._drop()
        return self._asked[0] if self._asked and not self._is_over(self._asked[0]) else None

    def note_settled(self, settled: Settled) -> None:
        """Note what is known of the one that was sent."""
        if settled.write.operation != "transact" or not self._asked:
            return
        if settled.outcome in ("again", "unknown") and settled.error is not None:
            self._doubt = int(settled.write.set[COUNTER])
        elif isinstance(settled.error, EffectsRefusedError):
            self._asked[0].answer.error = settled.error
            self._drop()

    def note_row(self, row: LeaseRow) -> None:
        """See in the row, as an own write has left it or a consistent read has found it, what is sure now."""
        if not self._asked:
            return
        first, position = self._asked[0], row.position
        if row.native.transaction == first.name:
            self._settle(CheckpointOutcome.APPLIED)
        elif position is not None and first.position <= position:
            self._settle(CheckpointOutcome.STORED)
        elif self._doubt is not None and row.counter >= self._doubt:
            self._doubt = None
            self._drop()

    def refuse(self) -> None:
        """Nothing can be stored any more."""
        while self._asked:
            self._settle(CheckpointOutcome.LOST)

    def _drop(self) -> None:
        while self._asked and self._doubt is None and self._is_over(self._asked[0]):
            is_refused = self._asked[0].answer.error is not None
            self._settle(CheckpointOutcome.REFUSED if is_refused else CheckpointOutcome.WITHDRAWN)

    def _settle(self, outcome: CheckpointOutcome) -> None:
        self._doubt = None
        self._asked.popleft().answer.resolve(outcome)

    @staticmethod
    def _is_over(asked: Transact) -> bool:
        return asked.answer.is_withdrawn or asked.answer.error is not None
