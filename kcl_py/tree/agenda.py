"""What a Lease has to do with its row, and which write is the next one. Pure; instants are monotonic seconds."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from kcl_py.delivery.lag import Lag
from kcl_py.leases import commits, requests, rules
from kcl_py.leases.requests import RESUME, SEEK, Place
from kcl_py.leases.row import Halt, Later, LeaseRow, Request
from kcl_py.leases.rules import Report
from kcl_py.leases.store import Write
from kcl_py.leases.throughput import Throughput
from kcl_py.records import SequenceNumber
from kcl_py.tree.checkpoints import Checkpoints
from kcl_py.tree.lease_requests import ChildrenMade
from kcl_py.tree.messages import Complete, Drain, Drained, Halted, MemberGone, Progress, Release, Why
from kcl_py.tree.steering import Rested


@dataclass(slots=True)
class Agenda:
    """What is known of the wishes of everybody: of the worker, the receiver, the operator, Pipeline and processor."""

    owner: str
    stream: str
    checkpoints: Checkpoints
    throughput: Throughput
    fresh: Callable[[], str]
    """Draws a token."""
    fault: str | None = None
    """Why the shard is taken only to be released again."""
    is_beat_due: bool = False
    halt: Halt | None = None
    stop: Release | None = None
    gone: str | None = None
    """A worker that has died."""
    is_draining: bool = False
    called_off_at: float = float("-inf")
    """When that for which it drains was seen to be called off."""
    drained: Drained | None = None
    completion: Complete | None = None
    children: tuple[str, ...] | None = None
    """Children that have their rows; only then the shard can be completed."""
    void: str | None = None
    """A request that was meant for the ownership before this one."""
    answer_token: tuple[str, str] = ("", "")
    """The request that is being answered, and the token for that."""
    paused_at_ms: int | None = None
    """The pause that the Pipeline was told of."""
    rested_at_ms: int | None = None
    """The pause under which nothing is in the processor's hands."""

    def must_make_children(self, now: float) -> bool:
        """Whether rows for the children come next: a renewal that is due goes first, and without time none are made."""
        is_wanted = self.completion is not None and self.children is None
        return is_wanted and not self.is_beat_due and not self.is_out_of_time(now)

    def note(self, said: Progress | Halted | Complete | MemberGone | ChildrenMade | Rested, now: float) -> None:
        """Take note of what somebody says."""
        match said:
            case Progress():
                self.checkpoints.progress = said
                self.is_beat_due |= self.checkpoints.is_pressing(now)
            case Halted(halt):
                self.halt, self.is_beat_due = halt, True
            case Complete():
                self.completion = said
            case MemberGone(owner):
                self.gone = owner
            case ChildrenMade(children):
                self.children = children
            case Rested(at_ms):
                self.rested_at_ms, self.is_beat_due = at_ms, True

    @property
    def unfinished(self) -> int:
        return self.drained.unfinished if self.drained is not None else 0

    def heeds_pause(self, row: LeaseRow) -> bool:
        """See in the row whether the shard is paused; True if that is news."""
        before, paused = self.paused_at_ms, row.native.paused
        self.paused_at_ms = None if paused is None else paused.at_ms
        return before != self.paused_at_ms

    def begin_drain(self, why: Why, now: float, *, timeout_s: float) -> Drain:
        """Note that the drain begins; return what the Pipeline is told."""
        self.is_draining, self.called_off_at = True, float("-inf")
        until_at = float("inf") if why is Why.STOP else now + timeout_s
        return Drain(why, until_at if self.stop is None else min(until_at, self.stop.until_at))

    def note_row(self, row: LeaseRow, now: float) -> None:
        """See in the row as it is at ``now`` whether that for which it drains still stands."""
        if row.in_handoff or self.asked(row) is not None:
            self.called_off_at = float("-inf")
        elif self.is_draining and self.stop is None and self.called_off_at < 0:
            self.called_off_at = now

    def may_resume(self, row: LeaseRow) -> bool:
        """Whether the drain has lost its reason: what was asked was called off, and the worker does not stop."""
        has_reason = row.in_handoff or self.stop is not None or self.asked(row) is not None
        return self.drained is not None and not has_reason

    def note_taken(self, row: LeaseRow, *, by_read: bool) -> None:
        """See in the row that was taken what was asked of others.

        A position goes on being asked for, and is written before anything runs. Who was asked to let go has done so;
        but where only a later read has shown that the take succeeded, it may be this ownership that is asked.
        """
        request = row.native.request
        if request is not None and requests.asks_to_let_go(request):
            self.void = None if by_read else request.id
        elif self.asked(row) is not None:
            self.is_draining, self.drained = True, Drained(None, None, 0)

    def asked(self, row: LeaseRow) -> Request | None:
        """What is to be answered once the shard has drained; at the end of a shard it is too late for that."""
        request = row.native.request
        if request is None or self.completion is not None or self._is_idle(request):
            return None
        return request

    def _is_idle(self, request: Request) -> bool:
        """Whether there is nothing to be done for it, but to take it out of the row."""
        return request.id == self.void or requests.fault(request) is not None

    def begin_again(self, row: LeaseRow) -> SequenceNumber | None:
        """Forget the drain, and why the shard stood still before it; return the position after which it goes on.

        That is what would have been stored: records of which the processor has not said that they are finished come
        again, to a new one.
        """
        final = self._final(self.drained)
        self._forget_drain()
        self.checkpoints.begin(row.position, unstored=0 if final is None else self.checkpoints.unstored)
        return final or row.position

    @property
    def reached(self) -> SequenceNumber | None:
        """Up to where records were handed over when the processor was drained; None where nobody can say."""
        return None if self.drained is None else self.drained.delivered

    def begin_anew(self, row: LeaseRow) -> None:
        """Forget all of the ownership before this one, also what its processor still waits for."""
        self._forget_drain()
        self.answer_token = ("", "")
        self.paused_at_ms = self.rested_at_ms = None
        self.checkpoints.refuse()
        self.checkpoints.begin(row.position)

    def _forget_drain(self) -> None:
        self.is_draining, self.drained, self.halt = False, None, None

    def is_out_of_time(self, now: float) -> bool:
        """Whether the worker stops and its grace has ended."""
        return self.stop is not None and now >= self.stop.until_at

    def next_write(self, row: LeaseRow, token: str, *, now: float, now_ms: int) -> Write | None:
        """Work out the next write of a held lease; None if there is nothing to write."""
        me = self.owner
        if row.in_handoff and row.owner == self.gone:
            return rules.cancel_handoff_by_holder(row, owner=me, token=token)
        if self.children is not None:
            return rules.complete(row, owner=me, token=token, children=self.children)
        last = self._last_said(now)
        if last is not None or self.fault is not None:
            if row.in_handoff:
                return rules.transfer(
                    row, owner=me, position=self._final(last), delivered=self._delivered(last), later=self._later
                )
            if self.stop is not None or self.fault is not None:
                return self._release(row, token, last)
            if (request := self.asked(row)) is not None:
                return self._answer(row, request, token, last)
        if row.native.request is not None and self._is_idle(row.native.request):
            return rules.refuse(row, owner=me, token=token)
        if (asked := self.checkpoints.asked()) is not None:
            return rules.checkpoint(row, owner=me, token=token, report=self._report(row, asked, now, now_ms))
        if self.is_beat_due or self.checkpoints.transactions.is_in_doubt:
            due = self.checkpoints.due(now)
            return rules.heartbeat(row, owner=me, token=token, report=self._report(row, due, now, now_ms))
        return self._commit(row, token)

    def _commit(self, row: LeaseRow, token: str) -> Write | None:
        """What goes after a heartbeat that is due, since it may fail for reasons of its own."""
        if (pending := self.checkpoints.prepared()) is not None:
            return commits.prepare(row, owner=self.owner, token=token, pending=pending)
        if (asked := self.checkpoints.transaction()) is None:
            return None
        return commits.transact(
            row,
            owner=self.owner,
            token=token,
            position=asked.position,
            effects=asked.effects,
            transaction=asked.name,
        )

    def _answer(self, row: LeaseRow, request: Request, token: str, last: Drained | None) -> Write:
        if request.kind == SEEK:
            place = Place.parse(request.position or "")
            return rules.seek(row, owner=self.owner, token=token, fresh=self._token_for(request), place=place)
        if request.kind == RESUME:
            at, fresh = self._final(last), self._token_for(request)
            return rules.resume(row, owner=self.owner, token=token, fresh=fresh, position=at)
        return self._release(row, token, last)

    def _token_for(self, request: Request) -> str:
        if self.answer_token[0] != request.id:
            self.answer_token = request.id, self.fresh()
        return self.answer_token[1]

    def _last_said(self, now: float) -> Drained | None:
        """What the Pipeline has said last; an end for which no time is left is found again by the next owner."""
        if self.completion is not None and self.is_out_of_time(now):
            return Drained(self.completion.prefix, self.completion.prefix, 0)
        return self.drained

    def _final(self, last: Drained | None) -> SequenceNumber | None:
        return None if last is None else self.checkpoints.final(last.prefix)

    @property
    def _later(self) -> tuple[Later, ...]:
        return () if self.checkpoints.progress is None else self.checkpoints.progress.later

    @staticmethod
    def _delivered(last: Drained | None) -> str | None:
        is_clean = last is not None and last.delivered is not None and not last.unfinished
        return str(last.delivered) if is_clean and last is not None else None

    def _release(self, row: LeaseRow, token: str, last: Drained | None) -> Write:
        return rules.release(
            row,
            owner=self.owner,
            token=token,
            position=self._final(last),
            delivered=self._delivered(last),
            later=self._later,
            fault=self.fault,
        )

    def _report(self, row: LeaseRow, position: SequenceNumber | None, now: float, now_ms: int) -> Report:
        progress = self.checkpoints.progress
        lag = self._lag(row, now, now_ms)
        return Report(
            position=position,
            lag_ms=lag.lag_ms if lag else None,
            lag_at_ms=now_ms - int((now - lag.at) * 1000) if lag else None,
            throughput_kbps=None if progress is None else self.throughput.by(now, progress.size_bytes),
            held_by=self.checkpoints.held_by(now),
            later=self._later,
            halted=self.halt,
            stream=self.stream if row.native.stream is None else None,
            quiet_for=self.paused_at_ms if self.rested_at_ms == self.paused_at_ms else None,
        )

    def _lag(self, row: LeaseRow, now: float, now_ms: int) -> Lag | None:
        """How far the shard is behind; nobody looks while it is paused, so it falls behind as time goes by."""
        paused, progress = row.native.paused, self.checkpoints.progress
        lag = None if progress is None else progress.lag
        if lag is None:
            return None if paused is None else Lag(max(now_ms - paused.at_ms, 0), now)
        return (lag if paused is None else replace(lag, is_growing=True)).by(now)
