"""One conditional write and what became of it, for every way that it can fail."""

from random import Random

import pytest

from kcl_py.errors import MissingError
from kcl_py.leases import rules
from kcl_py.leases.gate import Gate
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.leases.row import LeaseRow, Native
from kcl_py.leases.writer import PRIORITIES, Settled, Writer
from tests.kcl_py.tree.wire import DEADLINE_S, Fault, Wire, WiredStore
from tests.simclock import SimClock
from tests.simloop import sim_loop, simulated

ME = "me/1"
ROW = LeaseRow("shard", counter=5, owner=ME, native=Native(token="t", owner=ME))


async def written(*faults: tuple[str, Fault, int], not_after: float = 5.0) -> tuple[Settled, Wire]:
    """Send one heartbeat over a wire with these faults."""
    wire, clock = Wire(Random(1)), SimClock(sim_loop())
    for operation, fault, times in faults:
        wire.fail(operation, fault, times=times)
    writer = Writer(WiredStore(MemoryLeaseStore([ROW]), wire), Gate(4), clock)
    return await writer.carry_out(rules.heartbeat(ROW, owner=ME, token="t"), not_after=not_after), wire


@simulated
async def test_write_that_is_answered_is_believed() -> None:
    """With the row as it then is, and no read."""
    settled, wire = await written()
    assert settled.outcome == "succeeded"
    assert settled.row is not None
    assert settled.row.counter == 6
    assert [call.operation for call in wire.calls] == ["heartbeat"]


@pytest.mark.parametrize(
    ("fault", "outcome", "reads"),
    [
        (Fault.LOST_REPLY, "succeeded", 1),
        (Fault.LOST_REQUEST, "again", 1),
        (Fault.BROKEN, "again", 1),
        (Fault.LATE, "again", 1),
        (Fault.THROTTLED, "no_effect", 0),
        (Fault.REJECTED, "no_effect", 0),
    ],
)
@simulated
async def test_one_read_decides_about_a_write_without_an_answer(fault: Fault, outcome: str, reads: int) -> None:
    """A refusal for the rate or the request itself needs none: it had no effect."""
    settled, wire = await written(("heartbeat", fault, 1))
    assert (settled.outcome, len(wire.of("read"))) == (outcome, reads)
    assert settled.by_read == bool(reads)
    assert len(wire.of("heartbeat")) == 1, "a write is never sent twice under one cover"


@simulated
async def test_deciding_read_is_tried_until_the_deadline() -> None:
    """And then nothing is known."""
    settled, wire = await written(("heartbeat", Fault.BROKEN, 1), ("read", Fault.BROKEN, 1000), not_after=2.0)
    assert settled.outcome == "unknown"
    assert 5 <= len(wire.of("read")) <= 12
    assert sim_loop().time() < 2.0 + DEADLINE_S


@simulated
async def test_nothing_is_sent_after_the_deadline() -> None:
    """A write that waited too long at the gate is not sent any more."""
    settled, wire = await written(not_after=0.0)
    assert (settled.outcome, wire.calls) == ("no_effect", [])


@pytest.mark.parametrize("operation", ["heartbeat", "read"])
@simulated
async def test_missing_table_is_raised(operation: str) -> None:
    """Nothing is retried against a table that is gone."""
    with pytest.raises(MissingError):
        await written(("heartbeat", Fault.BROKEN, 1 if operation == "read" else 0), (operation, Fault.MISSING, 1))


def test_every_write_of_a_lease_has_a_place_at_the_gate() -> None:
    """A heartbeat before all others; nothing that keeps a shard behind what would take one."""
    assert PRIORITIES["heartbeat"] < PRIORITIES["transfer"] <= PRIORITIES["release"] < PRIORITIES["complete"]
    assert PRIORITIES["complete"] < PRIORITIES["checkpoint"] < PRIORITIES["take"] < PRIORITIES["start handoff"]
