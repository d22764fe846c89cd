"""Who gets which shard: what one worker takes and pulls, decided from what all of them can see.

Pure and deterministic. There is no leader: each worker works out what all of them will do and does its own part, so
workers that see the same never reach for the same row; where they see different things, conditional writes decide and
the next tick corrects. The rules in words: docs/leases.md, "Who gets what".
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from math import ceil
from operator import itemgetter
from statistics import fmean
from typing import Literal

from kcl_py.leases.row import LeaseRow, WorkerRow

_GAP = 2
"""How many times its load two workers must be apart for a row to move: at 1 a move would only swap the two."""
IDLE_LOAD = 1000
"""What a shard counts beside its bytes a second, so that shards without data are spread as well, by their number."""
BAND = 0.2
"""By which part of the mean load two workers may differ in throughput: it varies, and a shard that moves costs more.
Source: the Java client's reBalanceThresholdPercentage, 10 % to either side of the mean."""

RANKINGS = 2**14
"""Of workers for a row, kept for the next plan: while a large fleet starts, each plan deals all rows that are left."""

Strategy = Literal["count", "throughput"]


class HeldOff(StrEnum):
    """Why a worker leaves what would fall to it; the values are for people."""

    NO_PROCESSOR = "no processor has initialised yet"
    NEW = "not seen by the others for failover_s yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What a worker sees when it plans; rows and workers are those of its last reads."""

    me: WorkerRow
    """This worker's row as it is now."""
    others: Collection[WorkerRow]
    """The other live workers."""
    rows: Mapping[str, LeaseRow]
    blocked: Collection[str] = ()
    """Rows that wait for a parent: they are not taken and count nowhere."""
    offered: Collection[str] = ()
    """Rows that are free or expired."""
    born: Collection[str] = ()
    """Rows of children of shards that this worker has just read to their end: others hear of them a tick later."""
    mine: Collection[str] = ()
    """Rows for which a Lease of this worker runs: held, being taken, pulled or given up."""
    resting: Collection[str] = ()
    """Rows that this worker leaves alone for now, since opening them failed."""
    overdue_rows: Collection[str] = ()
    """Those of ``offered`` that have been so for a tick or longer."""
    overdue_workers: Collection[str] = ()
    """Workers that have been draining for a tick or longer."""
    is_initialised: bool = False
    """Whether a processor of this worker has initialised; until then it may have one row."""
    may_pull: bool = False
    """Whether this worker's row has beaten for F, so that it may pull for balance."""
    strategy: Strategy = "count"
    """What is balanced: the number of rows, or the bytes a second that they say. See ``agreed``."""
    has_fresh_rates: bool = True
    """Whether all rates were read just now. By older ones no row is pulled for balance: workers that have read them at
    different times would take shards from each other."""


def agreed(me: WorkerRow, others: Iterable[WorkerRow]) -> Strategy:
    """Return what all workers balance by: two that differed would take shards from each other for ever."""
    return "throughput" if all(row.strategy == "throughput" for row in (me, *others)) else "count"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now, in this order."""

    takes: tuple[str, ...] = ()
    """Free and expired rows."""
    pulls: tuple[str, ...] = ()
    """Rows to ask their holders for."""
    held_off: HeldOff | None = None
    """Why it is not more, where it is not."""
    spilled: int = 0
    """How many rows no worker may hold, since all are at their limit."""


def plan(fleet: Fleet) -> Plan:
    """Decide what this worker takes and pulls.

    Free and expired rows go to the rendezvous winner among those with room, within a fair share; one tick later to
    anyone with room. Rows of a draining worker go to the youngest within a fair share, also to one that has still to
    initialise its first processor, then to anyone. For balance the least loaded pull from the most loaded while that is
    two or more apart, each at most half of what it lacks (rounded up). What a donor took last goes first.
    """
    if fleet.me.state == "draining":
        return Plan()
    dealer, allowance = _Dealer(fleet), _allowance(fleet)
    takes, pulls, balance = dealer.deal_offered(), dealer.deal_leavers(), dealer.balance()
    held_off = HeldOff.NEW if balance and not fleet.may_pull else None
    if fleet.may_pull:
        pulls += balance
    if len(takes) + len(pulls) > allowance and not fleet.is_initialised:
        held_off = HeldOff.NO_PROCESSOR
    takes = takes[:allowance]
    return Plan(tuple(takes), tuple(pulls[: allowance - len(takes)]), held_off, dealer.spilled)


def rendezvous(worker: str, key: str) -> bytes:
    """Score a worker for a row; the highest wins. Rows keep their winner when others come and go."""
    return blake2b(f"{worker}\0{key}".encode()).digest()


@lru_cache(maxsize=RANKINGS)
def _ranked(workers: tuple[str, ...], key: str) -> tuple[str, ...]:
    """Sort workers by their score for a row, the best first."""
    return tuple(sorted(workers, key=lambda worker: rendezvous(worker, key), reverse=True))


def fair_share(total: int, limits: Iterable[int]) -> int:
    """Find the least number of rows for each worker, no more than its limit, that makes ``total`` in sum, or most."""
    bounds = list(limits)
    return min(
        bisect_left(range(total + 1), total, key=lambda share: sum(min(share, bound) for bound in bounds)), total
    )


def _allowance(fleet: Fleet) -> int:
    """How many more rows this worker may have."""
    limit = fleet.me.max_leases if fleet.me.max_leases is not None else len(fleet.rows) + len(fleet.mine)
    return max(0, (limit if fleet.is_initialised else min(limit, 1)) - len(fleet.mine))


def _weights(fleet: Fleet, keys: Collection[str]) -> dict[str, int]:
    """What each row counts; one that says nothing of its throughput counts as the others on average."""
    if fleet.strategy == "count":
        return dict.fromkeys(keys, 1)
    said = {key: fleet.rows[key].throughput_kbps if key in fleet.rows else None for key in keys}
    mean = fmean([kbps for kbps in said.values() if kbps is not None] or [0])
    return {key: IDLE_LOAD + round(1000 * (mean if kbps is None else kbps)) for key, kbps in said.items()}


class _Dealer:
    """Deals rows to all workers, and tells which of them fall to one."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, self._me = fleet, fleet.me.worker
        workers = {row.worker: row for row in fleet.others} | {self._me: fleet.me}
        self._leavers = {name for name, row in workers.items() if row.state == "draining"}
        self._live = {name: row for name, row in sorted(workers.items()) if name not in self._leavers}
        self._names = tuple(self._live)
        self._owners = self._count_rows()
        self._weights = _weights(fleet, self._owners)
        self._counts, self._loads = dict.fromkeys(self._live, 0), dict.fromkeys(self._live, 0)
        for key, owner in self._owners.items():
            if owner in self._loads:
                self._add(owner, self._weights[key])
        rows = len(self._owners)
        self._limits = {name: rows if row.max_leases is None else row.max_leases for name, row in self._live.items()}
        self.spilled = max(0, rows - sum(self._limits.values()))
        self._total = sum(self._weights.values())
        self._share, self._floor, self._gap = self._aims()

    def _aims(self) -> tuple[int, int, int]:
        """Up to which load a worker is given rows, from which on it lacks none, and how far apart two must be."""
        if self._fleet.strategy == "throughput":
            mean = self._total / len(self._live)
            return ceil(mean), int(mean), max(_GAP, ceil(BAND * mean))
        limits = self._limits.values()
        share = fair_share(self._total, limits)
        is_even = sum(min(share, limit) for limit in limits) == self._total
        return share, share if is_even else share - 1, _GAP

    def _count_rows(self) -> dict[str, str | None]:
        """Whose each row is or will be: one that this worker hands over is already the receiver's."""
        owners: dict[str, str | None] = {key: self._me for key in self._fleet.mine if key not in self._fleet.rows}
        for key, row in self._fleet.rows.items():
            if not row.has_ended and key not in self._fleet.blocked:
                is_mine = key in self._fleet.mine and row.checkpoint_owner != self._me
                owners[key] = self._me if is_mine else None if key in self._fleet.offered else row.owner
        return owners

    def deal_offered(self) -> list[str]:
        """Return the free and expired rows that fall to me: those I win, then those that waited for another."""
        keys = sorted(key for key in self._fleet.offered if key in self._owners and self._owners[key] is None)
        winners = {key: self._winner(self._fleet.rows[key]) for key in keys}
        overdue = [key for key in keys if winners[key] != self._me and key in self._fleet.overdue_rows]
        overdue.sort(key=lambda key: rendezvous(self._me, key), reverse=True)
        return self._not_resting([*(key for key in keys if winners[key] == self._me), *overdue])

    def _winner(self, row: LeaseRow) -> str | None:
        """Deal one row: to the receiver whom a dead holder's row names, or to one below a fair share.

        That is who has made it, if he is one of those; else the best of them.
        """
        if row.in_handoff and row.owner in self._live:
            return self._give(row.owner, row.key)
        ranked = _ranked(self._names, row.key)
        if row.key in self._fleet.born:
            ranked = (self._me, *ranked)
        return self._give(self._first_with_room(ranked), row.key)

    def _give(self, name: str | None, key: str) -> str | None:
        if name is not None:
            self._add(name, self._weights[key])
        return name

    def _add(self, name: str, weight: int, rows: int = 1) -> None:
        self._loads[name] += weight
        self._counts[name] += rows

    def _first_with_room(self, names: Iterable[str]) -> str | None:
        """The first that is below a fair share; where there is none, the first below its limit."""
        room = (name for name in names if self._counts[name] < self._limits[name])
        first = next(room, None)
        if first is None or self._loads[first] < self._share:
            return first
        return next((name for name in room if self._loads[name] < self._share), first)

    def deal_leavers(self) -> list[str]:
        """Return the draining workers' rows that fall to me: by youth, then those that waited for another."""
        pulls, overdue = [], []
        by_youth = sorted(self._live, key=lambda name: (self._live[name].beat, name))
        for key in reversed(self._pullable(self._leavers)):
            if self._give(self._first_with_room(by_youth), key) == self._me:
                pulls.append(key)
            elif self._owners[key] in self._fleet.overdue_workers:
                overdue.append(key)
        return self._not_resting(pulls + overdue)

    def balance(self) -> list[str]:
        """Return the rows that I pull from those who have more, once all rows are dealt."""
        is_known = self._fleet.strategy == "count" or self._fleet.has_fresh_rates
        if not is_known or max(self._loads.values()) - self._loads[self._me] < self._gap:
            return []
        stock: dict[str, list[tuple[int, str]]] = {name: [] for name in self._live}
        for key in self._pullable(self._live):
            stock[str(self._owners[key])].append((self._weights[key], key))
        for rows in stock.values():
            rows.sort(key=itemgetter(0))  # of those that count alike, what was taken last stays last
        budgets = {name: self._budget(name) for name in self._live if self._receives(name)}
        pulls = []
        while (move := self._next_move(stock, budgets)) is not None:
            donor, receiver, weight, key = move
            if receiver == self._me:
                pulls.append(key)
            budgets[receiver] -= weight
            self._add(donor, -weight, -1)
            self._add(receiver, weight)
        return self._not_resting(pulls)

    def _budget(self, name: str) -> int:
        """How much a worker pulls at once: half of what it lacks to a fair share, rounded up, at least one row.

        By throughput it is all that it lacks, since that is asked for only when the table has been read.
        """
        if self._fleet.strategy == "throughput":
            return max(1, self._floor - self._loads[name])
        return ceil(max(1, min(self._floor, self._limits[name]) - self._loads[name]) / 2)

    def _next_move(
        self, stock: Mapping[str, list[tuple[int, str]]], budgets: Mapping[str, int]
    ) -> tuple[str, str, int, str] | None:
        """Find donor, receiver and row: the largest row that leaves the donor with no less than the receiver."""
        by_load = {name: (load, name) for name, load in self._loads.items()}
        receivers = [name for name, left in budgets.items() if left > 0 and self._counts[name] < self._limits[name]]
        receiver = min(receivers, key=by_load.__getitem__, default=None)
        if receiver is None:
            return None
        for donor in sorted(filter(stock.get, stock), key=by_load.__getitem__, reverse=True):
            apart = self._loads[donor] - self._loads[receiver]
            if apart < self._gap:
                return None
            at = bisect_right(stock[donor], apart // _GAP, key=itemgetter(0))
            if at:
                weight, key = stock[donor].pop(self._chosen(stock[donor], at, receiver))
                return donor, receiver, weight, key
        return None

    def _chosen(self, stock: Sequence[tuple[int, str]], at: int, receiver: str) -> int:
        """Choose one of the first ``at`` rows: the last; for me, rather one that I do not leave alone for now."""
        if receiver != self._me:
            return at - 1
        return next((place for place in reversed(range(at)) if stock[place][1] not in self._fleet.resting), at - 1)

    def _receives(self, name: str) -> bool:
        """Whether a worker pulls; what another one may do shows only in its state."""
        return name == self._me or self._live[name].state == "active"

    def _pullable(self, donors: Collection[str]) -> list[str]:
        """Rows of ``donors`` that nobody has asked for yet; what they took first comes first."""
        rows = (
            self._fleet.rows[key] for key, owner in self._owners.items() if owner in donors and key in self._fleet.rows
        )
        return [row.key for row in sorted(rows, key=_age) if not row.in_handoff]

    def _not_resting(self, keys: Iterable[str]) -> list[str]:
        return [key for key in keys if key not in self._fleet.resting]


def _age(row: LeaseRow) -> tuple[int, str]:
    """Order one holder's rows by when it took them."""
    return (row.native.taken_ms or 0) if row.native_is_current else 0, row.key
