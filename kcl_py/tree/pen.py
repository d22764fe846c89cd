"""What a Lease writes with: one request at a time, and none for a while after one that has failed."""

from collections.abc import Awaitable, Callable

from kcl_py.delivery.retry import Backoff
from kcl_py.leases.store import Write
from kcl_py.leases.writer import Writer
from kcl_py.tree.worker import Worker

RETRY_S = 0.3
"""Pause after a request that failed, such as a write that was throttled; doubles up to half a heartbeat period."""


class Pen:
    """The requests of one Lease.

    Args:
        worker: what the worker's actors share.
        run: runs a request in a task of the Lease, to which its outcome comes as a message.
    """

    def __init__(self, worker: Worker, run: Callable[[Callable[[], Awaitable[object]]], object]) -> None:
        self._writer = Writer(worker.store, worker.gate, worker.clock)
        self._clock, self._run = worker.clock, run
        self._backoff = Backoff(RETRY_S, worker.config.leases.heartbeat_s / 2, worker.ids.jitter)
        self.is_busy = False
        """Whether a request is on its way."""
        self.is_pausing = False

    @property
    def may_write(self) -> bool:
        return not self.is_busy and not self.is_pausing

    def write(self, write: Write, *, not_after: float) -> None:
        """Carry out one write, not after that instant (monotonic seconds)."""
        self.request(lambda: self._writer.carry_out(write, not_after=not_after))

    def request(self, work: Callable[[], Awaitable[object]]) -> None:
        """Make another request than a write."""
        self.is_busy = True
        self._run(work)

    def pause_s(self, sent_at: float) -> float:
        """Count a failure of what was sent at that instant; return how long to wait from now on."""
        return sent_at + self._backoff.next_s() - self._clock.monotonic()

    def note_success(self) -> None:
        """Count no failures any more."""
        self._backoff.reset()
