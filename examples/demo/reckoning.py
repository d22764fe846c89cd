"""Counts, from files alone, what has become of the flights: the story's processes have all ended by now."""

from examples.demo import carriers, facts, spark_rows
from examples.demo.carriers import CarrierFigures
from examples.demo.dataset import flights
from examples.demo.story import Plan, Traces
from examples.demo.verdict import Reckoning


def reckon(plan: Plan, traces: Traces) -> tuple[Reckoning, dict[str, CarrierFigures]]:
    """Return the reckoning, and the figures by carrier: as Spark has them, or without it the data set."""
    put = {fact.identity for fact in facts.read(traces.put)} if traces.put.exists() else set()
    handed_over = [fact.identity for path in sorted(traces.facts.glob("*.tsv")) for fact in facts.read(path)]
    bound = 0
    if traces.killed_facts is not None and traces.killed_facts.exists():
        bound = facts.bound(facts.read(traces.killed_facts), traces.checkpoints)
    expected = carriers.count(flights(is_quick=plan.is_quick))
    found = carriers.read(traces.spark / "carriers.json")
    reckoning = Reckoning(
        flights=sum(figures.flights for figures in expected.values()),
        put=len(put),
        consumers=facts.tally(put, handed_over),
        bound=bound,
        spark=facts.tally(put, spark_rows.identities(traces.spark)) if plan.has_spark else None,
        carriers=len(expected),
        carriers_equal=carriers.equal(expected, found),
        carriers_found=len(found),
        accidents=tuple(traces.accidents),
    )
    return reckoning, found if plan.has_spark else expected
