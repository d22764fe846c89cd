"""The figures of ``make fleet``, from what workers write down."""

from pathlib import Path

from examples.fleet.figures import Act, Delivery, after_waking, failures, read, rows

S, T = "shard-0", "shard-1"
GENTLE, ROUGH = Act("deploy", 10.0, 20.0), Act("kill", 20.0, 30.0, is_gentle=False)


def test_lines_are_read_in_the_order_of_time_and_torn_ones_count_for_nothing(tmp_path: Path) -> None:
    """A worker that is killed in the middle of a line had not finished its batch."""
    (tmp_path / "7.tsv").write_text(f"2.5\t{S}\t11\n4.0\t{S}\t1")
    (tmp_path / "8.tsv").write_text(f"1.5\t{T}\t12\n")
    assert read(tmp_path) == [Delivery(1.5, 8, (T, 12)), Delivery(2.5, 7, (S, 11))]


def test_a_move_is_counted_where_its_pause_ends_and_repetitions_where_they_are() -> None:
    """Each in the act in which people would look for it."""
    deliveries = [
        Delivery(9.0, 1, (S, 1)),
        Delivery(11.0, 2, (S, 2)),
        Delivery(12.0, 2, (T, 1)),
        Delivery(25.0, 3, (T, 1)),
        Delivery(26.0, 3, (S, 2)),
    ]
    gentle, rough = rows([GENTLE, ROUGH], deliveries)
    assert (gentle.moved, gentle.pauses_s, gentle.twice) == (1, (2.0,), 0)
    assert (rough.moved, sorted(rough.pauses_s), rough.twice) == (2, [13.0, 15.0], 2)


def test_what_may_not_be_is_named() -> None:
    """Losses always, repetitions in what is gentle, and what a worker does with old knowledge."""
    deliveries = [Delivery(11.0, 1, (S, 1)), Delivery(12.0, 1, (S, 1)), Delivery(25.0, 2, (S, 1))]
    stale = after_waking(deliveries, worker=2, woke_at=24.0, took_at=26.0)
    assert failures({(S, 1), (S, 2)}, deliveries, rows([GENTLE, ROUGH], deliveries), stale) == [
        "1 of 2 records lost",
        "deploy: 1 records twice",
        "1 records delivered with old knowledge after a sleep",
    ]
    once = deliveries[:1]
    assert failures({(S, 1)}, once, rows([GENTLE, ROUGH], once), 0) == []
