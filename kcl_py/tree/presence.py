"""This worker's own row in the worker table: what it says, and since when it has said so. Pure.

It outlives a Coordinator, and so keeps what the next one has to know.
"""

from collections.abc import Iterable

from kcl_py.leases.row import WorkerRow
from kcl_py.tree.holding import Holding, Phase
from kcl_py.tree.worker import Worker

TOLD_KEYS = 8
"""Of how many rows a worker's own row says that they have changed: it is written and read often, and so stays small."""


class Presence:
    """What others see of this worker; instants are monotonic seconds."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._beat = 0
        self._since_at = self._written_at = float("-inf")
        self._news = 0
        self._changed: tuple[str, ...] = ()
        self.held_off: str | None = None
        self.is_initialized = self.is_draining = False
        self.stream = worker.stream
        """As it was described last."""
        self.has_unsaid = False
        """Whether there is something new to say once the write on its way is done."""

    def row(self, held: Iterable[Holding]) -> WorkerRow:
        """Make the row as it is now."""
        return WorkerRow(
            worker=self._worker.owner,
            beat=self._beat,
            state="draining" if self.is_draining else "active" if self.is_initialized else "starting",
            held=sum(1 for holding in held if holding.phase is Phase.HELD),
            max_leases=self._worker.config.leases.max_leases,
            strategy=self._worker.config.leases.strategy,
            held_off=self.held_off,
            news=self._news,
            changed=self._changed,
            updated_s=int(self._worker.clock.time()),
        )

    def tell(self, key: str) -> None:
        """Have the others look at a row; an empty ``key`` is news about none."""
        self._news += 1
        self._changed = (*self._changed, key)[-TOLD_KEYS:]

    def beat(self) -> None:
        """Count a write of the row."""
        self._beat += 1

    def note_written(self, now: float) -> None:
        if self._is_forgotten(now):
            self._since_at = now
        self._written_at = now

    def seconds(self, now: float) -> float:
        """For how long others have been able to see this worker, and to see that it lives."""
        return 0.0 if self._is_forgotten(now) else now - self._since_at

    def _is_forgotten(self, now: float) -> bool:
        """Whether others may have taken it for dead meanwhile, as while its process stands still."""
        return now > self._written_at + self._worker.config.leases.failover_s
