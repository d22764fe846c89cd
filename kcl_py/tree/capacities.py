"""Keep to what the tables can carry, and say once what they cannot."""

from collections.abc import Iterable

from kcl_py.leases import wide
from kcl_py.leases.capacity import Capacity, Demand, of_leases, of_workers
from kcl_py.leases.pacing import Pace
from kcl_py.leases.row import LeaseRow
from kcl_py.tree.worker import Worker


class Capacities:
    """Watches the demand of the fleet, as it grows and shrinks, beside the capacity that its tables were found with.

    Args:
        worker: what the worker's actors share.
        leases: how often the lease table is read; ``members`` the worker table.
    """

    def __init__(self, worker: Worker, leases: Pace, members: Pace) -> None:
        self._worker, self._options = worker, worker.config.leases
        self._leases, self._members = leases, members
        self._told: dict[tuple[str, str], float] = {}

    def note(self, rows: Iterable[LeaseRow], workers: int) -> None:
        """Take in how large the fleet is: its rows, and how many workers live."""
        rows, workers = list(rows), max(workers, 1)
        of_table, of_worker_table = self._worker.store.capacity
        heartbeat_s = self._options.heartbeat_s
        self._leases.spread(wide.period_s(len(rows)) if self._worker.store.has_workers else 0.0)
        held = sum(row.holder is not None for row in rows)
        self._compare(
            self._options.table,
            of_table,
            of_leases(len(rows), held, workers, heartbeat_s=heartbeat_s),
            self._leases,
            heartbeat_s,
        )
        self._compare(
            self._options.workers_table,
            of_worker_table,
            of_workers(workers, heartbeat_s=heartbeat_s),
            self._members,
            self._options.tick_s,
        )

    def _compare(self, table: str, has: Capacity | None, demand: Demand, pace: Pace, usual_s: float) -> None:
        if has is None:
            return
        pace.carry(demand.period_s(has.reads))
        self._tell(table, "reads", demand.reads(usual_s), has.reads)
        self._tell(table, "writes", demand.writes, has.writes)

    def _tell(self, table: str, what: str, needed: float, has: float) -> None:
        """Warn once, and again when it has grown by half or was enough meanwhile."""
        if needed <= has:
            self._told.pop((table, what), None)
        elif needed > 1.5 * self._told.get((table, what), 0.0):
            self._told[table, what] = needed
            self._worker.log.warning(
                "kcl_py.table.too_small", table=table, what=what, needed=round(needed, 1), found=has
            )
