"""A fleet whose workers plan from snapshots, tick by tick; takes and handoffs succeed if the row is still as seen."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from kcl_py.leases.assignment import Fleet, Plan, Strategy, plan
from kcl_py.leases.row import LeaseRow, Native, WorkerRow


def a_worker(name: str, *, limit: int | None = None, state: str = "active", beat: int = 100) -> WorkerRow:
    """Return the row of a worker that has been there for a while."""
    return WorkerRow(name, beat=beat, state=state, max_leases=limit)


def held_row(key: str, owner: str | None, *, taken_ms: int = 0) -> LeaseRow:
    """Return a row as its holder's take left it."""
    return LeaseRow(key, counter=1, owner=owner, native=Native(owner=owner, token="t", taken_ms=taken_ms))


@dataclass(frozen=True)
class Snapshot:
    """What was to be seen at one tick."""

    workers: dict[str, WorkerRow]
    rows: dict[str, LeaseRow]
    free_for: dict[str, int]
    draining_for: dict[str, int]
    strategy: Strategy = "count"

    def fleet(self, me: str, mine: frozenset[str]) -> Fleet:
        """Return the view of one worker, which knows its own leases better than the snapshot does."""
        return Fleet(
            me=self.workers[me],
            others=tuple(row for name, row in self.workers.items() if name != me),
            rows=self.rows,
            offered=frozenset(self.free_for),
            mine=mine,
            overdue_rows=frozenset(key for key, ticks in self.free_for.items() if ticks),
            overdue_workers=frozenset(name for name, ticks in self.draining_for.items() if ticks),
            is_initialised=True,
            may_pull=True,
            strategy=self.strategy,
        )


@dataclass
class Play:
    """The truth, and how it goes on."""

    workers: dict[str, WorkerRow]
    rows: dict[str, LeaseRow]
    ticks: int = 0
    moves: int = 0
    free_for: dict[str, int] = field(default_factory=dict)
    draining_for: dict[str, int] = field(default_factory=dict)
    strategy: Strategy = "count"

    def snapshot(self) -> Snapshot:
        """Look at both tables."""
        free = [key for key, row in self.rows.items() if row.owner is None and not row.has_ended]
        self.free_for = {key: self.free_for.get(key, -1) + 1 for key in free}
        leaving = [name for name, row in self.workers.items() if row.state == "draining"]
        self.draining_for = {name: self.draining_for.get(name, -1) + 1 for name in leaving}
        return Snapshot(
            dict(self.workers), dict(self.rows), dict(self.free_for), dict(self.draining_for), self.strategy
        )

    def held(self, name: str) -> frozenset[str]:
        """Return the rows of one worker."""
        return frozenset(key for key, row in self.rows.items() if row.owner == name)

    def loads(self) -> dict[str, int]:
        """Return how many rows each worker has that stays."""
        return {name: len(self.held(name)) for name, row in self.workers.items() if row.state != "draining"}

    def throughput(self, name: str) -> float:
        """Return what one worker's rows say together, in kB/s."""
        return sum(self.rows[key].throughput_kbps or 0 for key in self.held(name))

    def tick(self, views: dict[str, Snapshot] | None = None) -> dict[str, Plan]:
        """Have all plan from the same snapshot (or from ``views``), and carry it out in turn."""
        now = self.snapshot()
        seen = views or dict.fromkeys(self.workers, now)
        plans = {name: plan(seen[name].fleet(name, self.held(name))) for name in self.workers if name in seen}
        for name, chosen in plans.items():
            for key in (*chosen.takes, *chosen.pulls):
                if self.rows[key].owner == seen[name].rows[key].owner:
                    kbps = self.rows[key].throughput_kbps
                    self.rows[key] = replace(held_row(key, name, taken_ms=self.ticks), throughput_kbps=kbps)
                    self.moves += 1
        self.ticks += 1
        return plans

    def settle(self, ticks: int) -> int:
        """Let everybody see everything until nothing moves; return how many ticks moved something."""
        for tick in range(ticks):
            before = self.moves
            self.tick()
            if self.moves == before:
                return tick
        raise AssertionError(f"still moving after {ticks} ticks: {self.loads()}")


def rows_of(owners: Sequence[str | None]) -> dict[str, LeaseRow]:
    """Return one row for each owner in the list."""
    keys = [f"shardId-{number:012}" for number in range(len(owners))]
    return {
        key: held_row(key, owner, taken_ms=number) for number, (key, owner) in enumerate(zip(keys, owners, strict=True))
    }


def ended(row: LeaseRow) -> LeaseRow:
    """Return the row at its end."""
    return replace(row, owner=None, checkpoint="SHARD_END")


def a_fleet(rows: dict[str, LeaseRow], *others: WorkerRow, **changes: Any) -> Fleet:
    """Return the view of ``me``, initialised and allowed to pull."""
    free = frozenset(key for key, row in rows.items() if row.owner is None)
    fields: dict[str, Any] = {
        "me": a_worker("me"),
        "offered": free,
        "mine": frozenset(key for key, row in rows.items() if row.owner == "me"),
        "is_initialised": True,
        "may_pull": True,
    }
    return Fleet(rows=rows, others=others, **(fields | changes))


STATES = st.sampled_from(["active", "active", "active", "draining"])
LIMITS = st.none() | st.integers(1, 8)


@st.composite
def plays(draw: st.DrawFn, *, limits: st.SearchStrategy[Any] = LIMITS, states: st.SearchStrategy[Any] = STATES) -> Play:
    """Any fleet of up to eight workers, and any table of up to forty rows, some of them free or ended."""
    names = [f"w{number}/0" for number in range(draw(st.integers(1, 8)))]
    workers = {
        name: a_worker(name, limit=draw(limits), state=draw(states), beat=draw(st.integers(1, 500))) for name in names
    }
    rows = rows_of(draw(st.lists(st.none() | st.sampled_from(names), max_size=40)))
    held: dict[str | None, int] = {}
    for key, row in rows.items():  # nobody starts with more than its limit
        limit = workers[row.owner].max_leases if row.owner else None
        held[row.owner] = held.get(row.owner, 0) + 1
        if limit is not None and held[row.owner] > limit:
            rows[key] = held_row(key, None)
        if draw(st.integers(0, 9)) == 0:
            rows[key] = ended(row)
    return Play(workers, rows)
