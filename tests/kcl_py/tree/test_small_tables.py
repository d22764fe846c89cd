"""Tables that carry less than the fleet asks of them: what cannot wait goes first, and nothing is lost."""

import asyncio

from structlog.testing import LogCapture

from kcl_py.leases.capacity import Capacity
from kcl_py.leases.memory import MemoryLeaseStore
from tests.kcl_py.tree.fleet import FAILOVER_S, Fleet, running
from tests.kcl_py.tree.wire import Fault
from tests.simloop import sim_loop, simulated

HEARTBEAT_S = FAILOVER_S / 3


class Provisioned(MemoryLeaseStore):
    """A store of two tables with few units."""

    leases, workers_ = Capacity(3.0, 100.0), Capacity(100.0, 1.0)

    @property
    def capacity(self) -> tuple[Capacity | None, Capacity | None]:
        return self.leases, self.workers_


@simulated
async def test_no_lease_is_lost_while_all_reads_of_the_tables_are_refused() -> None:
    """Heartbeats need no read: for ten failover times the shards stay where they are and are processed."""
    fleet = Fleet(shards=4)
    await running(fleet, workers=2, shards=4)
    await asyncio.sleep(2 * FAILOVER_S)  # each has seen what the other has taken
    held = {name: fleet.held_by(member) for name, member in fleet.members.items()}
    for member in fleet.members.values():
        for operation in ("scan", "workers", "read"):
            member.wire.fail(operation, Fault.THROTTLED, times=10**6)
    fleet.put(40)
    await fleet.delivered()
    before = {name: len(member.wire.of("scan", "workers", "read")) for name, member in fleet.members.items()}
    begin = sim_loop().time()
    await fleet.until(lambda: sim_loop().time() > begin + 10 * FAILOVER_S)
    for name, member in fleet.members.items():
        asked = len(member.wire.of("scan", "workers", "read")) - before[name]
        assert asked < 60  # each tick and heartbeat it would be some 390
        assert fleet.held_by(member) == held[name]
    fleet.put(40)
    await fleet.delivered()
    fleet.check()


@simulated
async def test_worker_that_dies_after_the_refusals_is_found_as_ever() -> None:
    """Patience ends with the refusals: within a period or two the tables are read as usual."""
    fleet = Fleet(shards=4)
    await running(fleet, workers=2, shards=4)
    first, second = fleet.members.values()
    for operation in ("scan", "workers"):
        second.wire.fail(operation, Fault.THROTTLED, times=8)
    await fleet.until(lambda: len(second.wire.of("scan")) > 40, within_s=300)
    first.crash()
    await fleet.until(lambda: fleet.held_by(second) == set(fleet.shards()), within_s=2 * FAILOVER_S)
    fleet.put(40)
    await fleet.delivered()
    fleet.check()


@simulated
async def test_provisioned_table_is_read_within_its_share_and_what_it_lacks_is_said_once(log: LogCapture) -> None:
    """Two workers and 40 rows take 3.4 units a look each; with 3 units a second that is a look in 9 s."""
    fleet = Fleet(shards=40)
    fleet.store = Provisioned()
    await running(fleet, workers=2, shards=40)
    begin, scans = sim_loop().time(), [len(member.wire.of("scan")) for member in fleet.members.values()]
    await fleet.until(lambda: sim_loop().time() > begin + 90)
    for member, before in zip(fleet.members.values(), scans, strict=True):
        assert 8 <= len(member.wire.of("scan")) - before <= 14
    told = [entry for entry in log.entries if entry["event"] == "kcl_py.table.too_small"]
    assert {(entry["what"], entry["found"]) for entry in told} == {("reads", 3.0), ("writes", 1.0)}
    reads = {entry["needed"] for entry in told if entry["what"] == "reads"}
    assert max(reads) == 27.3, "for two workers and all rows, of which the first scans may show some"
    assert len(reads) <= 3
    fleet.put(40)
    await fleet.delivered()
    fleet.check()
