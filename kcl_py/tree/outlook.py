"""The Outlook: what one worker is to take and pull, as far as it can see.

A plan is kept until something changes that it rests on, so that a quiet fleet costs the same however large it is.
The rules are those of ``leases/assignment.py``. Instants are monotonic seconds.
"""

from collections.abc import Collection

from kcl_py.config import Leases
from kcl_py.events import Events
from kcl_py.leases.assignment import Fleet, Plan, agreed, plan
from kcl_py.leases.row import WorkerRow
from kcl_py.leases.view import View
from kcl_py.tree.audit import Audit
from kcl_py.tree.holding import Setbacks


class Outlook:
    """Plans for one worker.

    Args:
        view: the fleet and its rows.
        audit: the shards that are still to be read.
        leases: the worker's options.
        log: where shards that wait for a parent are named.
    """

    def __init__(self, view: View, audit: Audit, leases: Leases, log: Events) -> None:
        self._view, self._audit, self._leases, self._log = view, audit, leases, log
        self._rests_on: object = None
        self._balanced = 0
        """By which reading of the lease table it was last planned by throughput."""
        self._plan = Plan()

    def plan(
        self,
        me: WorkerRow,
        mine: Collection[str],
        overdue_rows: set[str],
        setbacks: Setbacks,
        now: float,
        *,
        may_pull: bool,
    ) -> Plan:
        """Plan what to take and pull; see ``Fleet`` for what is given."""
        view, overdue_workers = self._view, self._view.overdue_workers(now - self._leases.tick_s)
        by_time = (overdue_rows, overdue_workers, setbacks.resting(now), may_pull)
        has_fresh_rates = view.scans > self._balanced and agreed(me, view.others()) == "throughput"
        rests_on = (
            view.changes,
            has_fresh_rates,
            frozenset(view.born),
            self._audit.said,
            tuple(mine),
            me.state,
            by_time,
        )
        if has_fresh_rates or rests_on != self._rests_on:
            self._rests_on = rests_on
            self._plan = plan(self._fleet(me, mine, *by_time, has_fresh_rates=has_fresh_rates))
            self._balanced = view.scans
        return self._plan

    def _fleet(
        self,
        me: WorkerRow,
        mine: Collection[str],
        overdue_rows: set[str],
        overdue_workers: set[str],
        resting: set[str],
        may_pull: bool,
        *,
        has_fresh_rates: bool,
    ) -> Fleet:
        view, others = self._view, self._view.others()
        assert view.rows is not None
        for key, parents in view.note_blocked(self._audit.missing(view.rows)):
            self._log.info("kcl_py.shard.blocked", shard_id=key, parents=list(parents))
        return Fleet(
            me=me,
            others=others,
            rows=view.rows,
            blocked=view.blocked,
            offered=view.on_offer(),
            born=view.born,
            mine=mine,
            resting=resting,
            overdue_rows=overdue_rows,
            overdue_workers=overdue_workers,
            is_initialised=me.state != "starting",
            may_pull=may_pull,
            strategy=agreed(me, others),
            has_fresh_rates=has_fresh_rates,
        )
