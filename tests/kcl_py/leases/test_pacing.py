"""Whole tables are read as often as their capacity lets them be, and less often while reads are refused."""

from typing import Any

import pytest

from kcl_py.leases.capacity import Capacity, found, of_leases, of_workers
from kcl_py.leases.pacing import LONGEST_S, Pace


def a_pace() -> Pace:
    return Pace(3.0, lambda low, high: high)


def test_news_are_looked_at_without_delay() -> None:
    """While nothing is in the way, a read follows its period, or news at once."""
    pace = a_pace()
    pace.begin(10.0)
    assert not pace.is_due(12.9)
    assert pace.is_due(10.1, has_news=True)
    assert pace.is_due(13.0)


def test_period_doubles_while_reads_are_refused_and_comes_back() -> None:
    """Refusals are answered by patience, up to a limit, and news wait too; answers bring the usual period back."""
    pace, periods = a_pace(), []
    for _ in range(6):
        pace.refused()
        periods.append(pace.period_s)
    assert periods == [6.0, 12.0, 24.0, 48.0, 48.0, 48.0]
    pace.begin(0.0)
    assert not pace.is_due(50.0, has_news=True)
    assert pace.is_due(48.0 * 1.2)  # varied, so that those refused together do not come back together
    for _ in range(4):
        pace.answered()
    assert pace.period_s == 3.0
    assert pace.is_due(1.0, has_news=True)


def test_small_table_is_read_as_often_as_it_can_be() -> None:
    """The capacity stretches the period by itself, before anything is refused; never beyond a minute."""
    pace = a_pace()
    pace.carry(20.0)
    assert pace.period_s == 20.0
    pace.carry(2.0)
    assert not pace.is_stretched
    pace.carry(1000.0)
    assert pace.period_s == LONGEST_S


def test_large_table_is_read_soon_where_something_calls_for_it_also_after_it_was_throttled() -> None:
    """Size is no reason to wait then; only what the table can carry is."""
    pace = a_pace()
    pace.spread(50.0)
    for _ in range(2):
        pace.refused()
    pace.begin(0.0)
    assert not pace.is_due(40.0)
    pace.hurry()
    assert pace.is_due(12.0)
    assert not pace.is_due(11.0)
    pace.carry(20.0)
    pace.begin(100.0)
    pace.hurry()
    assert not pace.is_due(130.0)


@pytest.mark.parametrize("workers", [1, 3, 40])
def test_scans_of_all_workers_together_take_a_quarter_of_the_reads(workers: int) -> None:
    """Of a lease table of 4,096 rows, 700 bytes each, at half a unit for 4 KB: 350 units a look."""
    demand = of_leases(4096, 4000, workers, heartbeat_s=2.0)
    period_s = demand.period_s(100.0)
    assert workers * 350 / period_s == pytest.approx(25.0)
    assert demand.reads(period_s) == pytest.approx(100.0)
    assert demand.writes == pytest.approx(2200.0)  # each row twice in four seconds, a little early


def test_small_fleet_fits_the_smallest_tables() -> None:
    """Three workers with twenty shards, F = 10 s: five units a second are enough for reading, seven for writing."""
    leases, workers = of_leases(20, 20, 3, heartbeat_s=10 / 3), of_workers(3, heartbeat_s=10 / 3)
    assert leases.reads(10 / 3) < 7
    assert workers.reads(1.0) < 5
    assert 5 < leases.writes < 7
    assert workers.writes < 1


ON_DEMAND: tuple[dict[str, Any], ...] = (
    {},
    {"BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"}},
    {"ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}},
)


@pytest.mark.parametrize("table", ON_DEMAND)
def test_table_on_demand_has_no_limit(table: dict[str, Any]) -> None:
    """DescribeTable shows such a table with zero units, or none."""
    assert found(table) is None


def test_provisioned_table_is_read_as_described() -> None:
    """Both numbers count."""
    assert found({"ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 7}}) == Capacity(5, 7)
