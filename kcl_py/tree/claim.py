"""How a Lease comes to its row: what it begins with, what each look at the row calls for, and what it writes then."""

from kcl_py.leases import rules
from kcl_py.leases.receiving import Receiving, Step
from kcl_py.leases.row import LeaseRow
from kcl_py.leases.store import Write
from kcl_py.leases.view import How
from kcl_py.tree.lease_requests import Polled
from kcl_py.tree.messages import OpenShard
from kcl_py.tree.worker import Worker


class Claim:
    """The way to one lease, up to its take."""

    def __init__(self, worker: Worker, opening: OpenShard) -> None:
        row = opening.row
        self._worker, self._me = worker, worker.owner
        self.how, self.why, self.previous = opening.how, opening.why or opening.how.value, row.holder
        failover_s = worker.config.leases.failover_s
        self._receiving = Receiving(self._me, row, seen_at=opening.seen_at, failover_s=failover_s)

    @property
    def is_pull(self) -> bool:
        """Whether the shard comes from a holder that lives."""
        return self.how is How.HANDOFF

    def first(self, row: LeaseRow) -> Step:
        """Say what to begin with."""
        match self.how:
            case How.AWAIT:
                return Step.WAIT
            case How.HANDOFF:
                return Step.ASK
            case How.OWN if row.owner != self._me and row.holder == self._me:
                return Step.PASS_ON
        return Step.TAKE

    def look(self, polled: Polled, *, is_stopping: bool) -> Step:
        """Say what a look at the row calls for."""
        step = self._receiving.step(
            polled.row, begun_at=polled.begun_at, ended_at=polled.ended_at, is_stopping=is_stopping
        )
        if step in (Step.TAKE, Step.TAKE_EXPIRED):
            self.how = How.HANDOFF if step is Step.TAKE else How.EXPIRED
        return step

    def write(self, step: Step, row: LeaseRow) -> Write | None:
        """Make the write that a step consists of, if it does."""
        match step:
            case Step.ASK:
                return rules.start_handoff(row, owner=self._me)
            case Step.PASS_ON:
                return rules.transfer(row, owner=self._me)
            case Step.WITHDRAW:
                return rules.cancel_handoff_by_receiver(row, owner=self._me)
            case Step.TAKE | Step.TAKE_EXPIRED:
                return self._take(row)
        return None

    def _take(self, row: LeaseRow) -> Write:
        worker, why = self._worker, self.why if self.is_pull else self.how.value
        token, now_ms = worker.ids.token(), int(worker.clock.time() * 1000)
        return rules.take(row, owner=self._me, token=token, now_ms=now_ms, stream=worker.stream.identity, why=why)
