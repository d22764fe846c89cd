"""The rules of supervision, as tables."""

import pytest

from actors import Intensity, Restart, Strategy
from actors.restart import affected, wants_restart


@pytest.mark.parametrize(
    ("policy", "failed", "restarted"),
    [
        (Restart.PERMANENT, True, True),
        (Restart.PERMANENT, False, True),
        (Restart.TRANSIENT, True, True),
        (Restart.TRANSIENT, False, False),
        (Restart.TEMPORARY, True, False),
        (Restart.TEMPORARY, False, False),
    ],
)
def test_policy_decides_who_is_restarted(policy: Restart, failed: bool, restarted: bool) -> None:
    """Permanent: always; transient: after a failure; temporary: never."""
    assert wants_restart(policy, failed=failed) is restarted


@pytest.mark.parametrize(
    ("strategy", "ended", "names"),
    [
        (Strategy.ONE_FOR_ONE, "b", ["b"]),
        (Strategy.ONE_FOR_ALL, "b", ["a", "b", "c"]),
        (Strategy.REST_FOR_ONE, "a", ["a", "b", "c"]),
        (Strategy.REST_FOR_ONE, "b", ["b", "c"]),
        (Strategy.REST_FOR_ONE, "c", ["c"]),
    ],
)
def test_strategy_decides_who_is_taken_along_in_start_order(strategy: Strategy, ended: str, names: list[str]) -> None:
    """The failed one is always among them."""
    assert affected(strategy, ["a", "b", "c"], ended) == names


@pytest.mark.parametrize(
    ("restarted_at", "now", "allowed"),
    [
        ([], 0.0, True),
        ([1.0, 2.0], 3.0, True),
        ([1.0, 2.0, 3.0], 3.0, False),
        ([1.0, 2.0, 3.0], 6.0, False),  # 5 s ago counts
        ([1.0, 2.0, 3.0], 6.1, True),
    ],
)
def test_intensity_counts_the_restarts_of_its_window(restarted_at: list[float], now: float, allowed: bool) -> None:
    """Three in five seconds, both ends included."""
    assert Intensity(restarts=3, within_s=5.0).allows(restarted_at, now) is allowed


def test_intensity_of_no_restarts_allows_none() -> None:
    """So a supervisor can pass the first failure of a child up."""
    assert not Intensity(restarts=0).allows([], 0.0)
