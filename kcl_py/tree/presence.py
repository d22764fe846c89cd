"""This worker's own row in the worker table: what it says, and since when it has said so. Pure."""

from collections.abc import Iterable

from kcl_py.leases.row import WorkerRow
from kcl_py.tree.holding import Holding, Phase
from kcl_py.tree.worker import Worker


class Presence:
    """What others see of this worker; instants are monotonic seconds."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._beat = 0
        self._since_at: float | None = None
        self.news = 0
        self.held_off: str | None = None
        self.is_initialized = self.is_draining = False
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
            news=self.news,
            updated_s=int(self._worker.clock.time()),
        )

    def beat(self) -> None:
        """Count a write of the row."""
        self._beat += 1

    def note_written(self, now: float) -> None:
        if self._since_at is None:
            self._since_at = now

    def seconds(self, now: float) -> float:
        """For how long others have been able to see this worker."""
        return 0.0 if self._since_at is None else now - self._since_at
