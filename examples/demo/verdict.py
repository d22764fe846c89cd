"""The last five lines of the demo, and whether it has shown what it promises. Pure."""

from dataclasses import dataclass

from examples.demo.facts import Tally


@dataclass(frozen=True, slots=True)
class Reckoning:
    """All that was counted, from files."""

    flights: int
    """In the data set."""
    put: int
    consumers: Tally
    bound: int
    """Most records that the workers may have seen twice."""
    spark: Tally | None
    """None: the demo ran without Spark."""
    carriers: int
    carriers_equal: int
    carriers_found: int
    """How many Spark found."""
    accidents: tuple[str, ...] = ()
    """What went wrong beside the figures."""


def failures(reckoning: Reckoning) -> list[str]:
    """Return what is not as it must be; empty if all is well."""
    consumers, spark, put = reckoning.consumers, reckoning.spark, reckoning.put
    found = list(reckoning.accidents)
    if put != reckoning.flights:
        found.append(f"put: expected {reckoning.flights}")
    if consumers.missing or consumers.distinct != put or consumers.twice > reckoning.bound:
        found.append("consumers")
    if spark is not None and (spark.missing or spark.twice or spark.total != put):
        found.append("spark")
    if spark is not None and not reckoning.carriers == reckoning.carriers_equal == reckoning.carriers_found:
        found.append("carriers")
    return found


def lines(reckoning: Reckoning, *, took_s: float) -> list[str]:
    """Return the last lines."""
    consumers, spark, failed = reckoning.consumers, reckoning.spark, failures(reckoning)
    shown = [
        f"put {reckoning.put}",
        f"consumers {consumers.distinct} distinct, {consumers.missing} missing, {consumers.twice} twice "
        f"(bound {reckoning.bound})",
    ]
    if spark is not None:
        shown += [
            f"spark {spark.total} rows, {spark.missing} missing, {spark.twice} twice",
            f"carriers {reckoning.carriers_equal} of {reckoning.carriers} equal",
        ]
    end = f"FAILED: {', '.join(failed)}" if failed else f"ok in {took_s:.0f} s"
    return [*shown, f"demo: {end}"]
