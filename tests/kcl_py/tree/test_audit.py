"""When a worker lists the shards, and what it makes of a listing as rows come and go."""

from itertools import pairwise

from kcl_py.config import Leases
from kcl_py.leases.lineage import HASH_KEYS
from kcl_py.leases.row import SHARD_END, TRIM_HORIZON, LeaseRow
from kcl_py.sources.source import TRIM_HORIZON as FROM_HORIZON
from kcl_py.sources.source import Listing, ShardInfo
from kcl_py.tree.audit import OTHERS_LIST, Audit
from kcl_py.tree.messages import Listed

ALL = (0, HASH_KEYS - 1)


def an_audit(failover_s: float = 3.0) -> Audit:
    return Audit(Leases(failover_s=failover_s), FROM_HORIZON)


def a_listing(*shards: ShardInfo, known: str = "", begun_at: float = 0.0) -> Listed:
    return Listed(Listing(shards, server_time_s=0.0), begun_at, frozenset(known))


def some_rows(*rows: LeaseRow) -> dict[str, LeaseRow]:
    return {row.key: row for row in rows}


def test_shards_are_listed_at_once_and_then_mostly_by_one_worker_for_all() -> None:
    """Six failover times after the last listing, or a minute; the others need a reason, or an hour."""
    for failover_s, period_s in ((3.0, 18.0), (10.0, 60.0), (300.0, 60.0)):
        audit = an_audit(failover_s)
        assert audit.is_due(5.0, is_mine=False)
        audit.begin(5.0)
        assert not audit.is_due(4.9 + period_s, is_mine=True)
        assert audit.is_due(5.0 + period_s, is_mine=True)
        assert not audit.is_due(4.9 + OTHERS_LIST * period_s, is_mine=False)
        assert audit.is_due(5.0 + OTHERS_LIST * period_s, is_mine=False)


def test_reason_has_shards_listed_a_heartbeat_after_the_last_time() -> None:
    """However often it is told."""
    audit = an_audit()
    audit.begin(5.0)
    audit.soon()
    audit.soon()
    assert not audit.is_due(5.9, is_mine=False)
    assert audit.is_due(6.0, is_mine=False)
    audit.begin(6.0)
    assert not audit.is_due(8.0, is_mine=False)


def test_parent_blocks_until_it_has_a_row_and_again_when_that_vanishes() -> None:
    """The last listing was made before all that, and nobody else has a reason to list again."""
    parent, child = ShardInfo("2", ("1",), ALL, closed=True), ShardInfo("4", ("2", "3"), ALL)
    first = LeaseRow("1", checkpoint="7", hash_range=ALL)
    waiting = LeaseRow("4", checkpoint=TRIM_HORIZON, parents=("2", "3"), hash_range=ALL)
    audit, rows = an_audit(), some_rows(first, waiting)
    audit.wanted(a_listing(ShardInfo("1", (), ALL, closed=True), parent, child, known="14"), rows)
    assert audit.missing(rows) == {"2"}
    audit.note_rows(rows | some_rows(LeaseRow("2", parents=("1",), hash_range=ALL)))
    assert audit.missing(rows) == {"2"}, "its row was there and is no more"
    assert audit.is_doubtful(rows, 0.0)


def test_row_that_was_deleted_since_the_listing_is_not_missed() -> None:
    """It had ended, and its child has progress."""
    child = LeaseRow("2", checkpoint="7", parents=("1",), hash_range=ALL)
    audit, before = an_audit(), some_rows(LeaseRow("1", checkpoint=SHARD_END, children=("2",)), child)
    audit.wanted(a_listing(ShardInfo("1", (), ALL, closed=True), ShardInfo("2", ("1",), ALL), known="12"), before)
    assert not audit.missing(some_rows(child))
    assert not audit.is_doubtful(some_rows(child), 0.0)


def test_rows_settle_in_three_failover_times_and_with_a_listing_that_began_after_their_end() -> None:
    """Whichever is later."""
    audit = an_audit()
    assert audit.settled_before(a_listing(begun_at=100.0), 101.0) == 92.0
    assert audit.settled_before(a_listing(begun_at=80.0), 101.0) == 80.0


def test_doubt_that_listings_do_not_end_has_them_made_less_and_less_often() -> None:
    """An item that is no lease leaves a hole for as long as it is there."""
    audit, rows, listed_at = an_audit(), some_rows(LeaseRow("1", checkpoint="7", hash_range=(0, 9))), []
    shard = ShardInfo("1", (), (0, 9))
    for now in range(200):
        if audit.is_due(now, is_mine=False):
            listed_at.append(now)
            audit.begin(now)
            audit.wanted(a_listing(shard, known="1"), rows)
            audit.end(is_complete=True)
        elif audit.is_doubtful(rows, now):
            audit.soon()
    assert listed_at[:6] == [0, 2, 5, 10, 19, 36]
    assert [after - before for before, after in pairwise(listed_at[5:])] == [19] * 8


def test_listings_that_are_in_vain_for_days_or_fail_for_days_harm_nobody() -> None:
    """The pause between them has long been the longest."""
    audit, rows = an_audit(), some_rows(LeaseRow("1", checkpoint="7", hash_range=(0, 9)))
    for now in range(0, 60_000, 20):
        audit.begin(now)
        if now % 40:
            audit.note_failure()
        else:
            audit.soon()
            audit.wanted(a_listing(ShardInfo("1", (), (0, 9)), known="1"), rows)
            audit.end(is_complete=True)
        assert not audit.is_doubtful(rows, now + 0.5)
    assert audit.is_doubtful(rows, 60_000)
