"""The two-read rule: what counts as expired."""

from kcl_py.leases.sightings import Sightings
from kcl_py.leases.tenure import deadline

F = 10.0


def test_row_expires_when_a_read_begun_after_the_failover_time_shows_the_same_counter() -> None:
    """The time runs from the end of the first read to the begin of the later one."""
    seen = Sightings(F)
    assert not seen.has_expired("s", 5, begun_at=100.0, ended_at=101.0)
    assert not seen.has_expired("s", 5, begun_at=111.0, ended_at=112.0)
    assert seen.has_expired("s", 5, begun_at=111.01, ended_at=112.0)


def test_row_lives_on_when_its_counter_changes_in_any_way() -> None:
    """A counter that was seen differently starts the time anew, also a smaller one of a late read."""
    seen = Sightings(F)
    seen.has_expired("s", 5, begun_at=0, ended_at=0)
    assert not seen.has_expired("s", 6, begun_at=50, ended_at=51)
    assert not seen.has_expired("s", 5, begun_at=70, ended_at=71)
    assert seen.expires_at("s") == 81


def test_nothing_looks_expired_when_the_reader_was_paused() -> None:
    """After a long gap a first look at new counters expires nothing."""
    seen = Sightings(F)
    for key in ("a", "b"):
        seen.has_expired(key, 1, begun_at=0, ended_at=0)
    assert not any(seen.has_expired(key, 9, begun_at=1e6, ended_at=1e6) for key in ("a", "b"))


def test_missing_row_expires_like_a_row() -> None:
    """A row is missed only when two reads miss it, and coming back ends that."""
    seen = Sightings(F)
    assert not seen.has_expired("s", None, begun_at=0, ended_at=1)
    assert seen.has_expired("s", None, begun_at=12, ended_at=13)
    assert not seen.has_expired("s", 1, begun_at=14, ended_at=14)
    assert not seen.has_expired("s", None, begun_at=99, ended_at=99)


def test_forgotten_key_begins_anew() -> None:
    """Rows that are gone take no memory, and are strangers when they return."""
    seen = Sightings(F)
    seen.has_expired("s", 5, begun_at=0, ended_at=0)
    seen.has_expired("t", 5, begun_at=0, ended_at=0)
    seen.keep(["t", "u"])
    assert seen.expires_at("s") is None
    assert not seen.has_expired("s", 5, begun_at=50, ended_at=50)
    assert seen.has_expired("t", 5, begun_at=50, ended_at=50)


def test_tenure_ends_before_others_may_call_the_row_expired() -> None:
    """The deadline counts from the send time and keeps the margin, whoever saw the write at once."""
    seen, deadline_at = Sightings(F), deadline(100.0, F, 1.0)
    seen.has_expired("s", 5, begun_at=100.0, ended_at=100.0)
    assert not seen.has_expired("s", 5, begun_at=deadline_at + 0.99, ended_at=deadline_at + 0.99)
    assert seen.has_expired("s", 5, begun_at=deadline_at + 1.01, ended_at=deadline_at + 1.01)
