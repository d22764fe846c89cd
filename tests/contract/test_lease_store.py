"""What every lease store means by its methods; memory and DynamoDB pass the same tests."""

from dataclasses import replace
from typing import Any

import anyio
import pytest

from kcl_py.errors import ConditionFailedError, RejectedError
from kcl_py.leases import rules, settling
from kcl_py.leases.row import LeaseRow, WorkerRow
from kcl_py.leases.store import Is, Write
from kcl_py.records import SequenceNumber
from tests.contract.conftest import Bench
from tests.contract.lease_commits import COMMITS
from tests.contract.lease_rows import BY_HAND, CASES, KEY, ME, MINE, OTHER, STRANGE, Case, a_row, stored, violations

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHILD = LeaseRow("shardId-000000000009", parents=(KEY,))
_STARTING = {"state": "starting", "held": 2, "max": 9}
EVERY_WRITE = pytest.mark.parametrize("case", [*CASES, *COMMITS, *BY_HAND], ids=lambda case: case.name)


@EVERY_WRITE
async def test_write_changes_what_it_names_and_nothing_else(bench: Bench, case: Case) -> None:
    """The row is then as the protocol says, and attributes we do not know are as they were."""
    await bench.put(stored(case.row))
    assert await bench.store.write(case.write) == case.after
    assert await bench.get(KEY) == stored(case.after, extended=case.row.has_native)


@EVERY_WRITE
async def test_write_is_refused_and_leaves_the_item_when_one_test_fails(bench: Bench, case: Case) -> None:
    """Each test of each write refuses by itself."""
    broken = violations(case.write, stored(case.row))
    assert len(broken) == len(case.write.tests) >= 1
    for test, item in broken.items():
        await bench.put(item)
        with pytest.raises(ConditionFailedError, match=case.write.operation):
            await bench.store.write(case.write)
        assert await bench.get(KEY) == item, test


@EVERY_WRITE
async def test_write_creates_nothing_when_the_row_is_missing(bench: Bench, case: Case) -> None:
    """A row that somebody deleted does not come back half filled."""
    with pytest.raises(ConditionFailedError):
        await bench.store.write(case.write)
    assert await bench.get(KEY) is None


@pytest.mark.parametrize("case", [*CASES, *COMMITS], ids=lambda case: case.name)
async def test_row_read_after_a_write_shows_that_it_succeeded(bench: Bench, case: Case) -> None:
    """Where the reply is lost, one consistent read tells that the write took effect."""
    await bench.put(stored(case.row))
    await bench.store.write(case.write)
    assert settling.decide(case.write, await bench.store.read(KEY)) == "succeeded"


async def test_checkpoint_ends_a_prepared_one(bench: Bench) -> None:
    """A checkpoint that the Java client had prepared is over once a real one is stored."""
    pending = {"pendingCheckpoint": "1200", "pendingCheckpointSubSequenceNumber": 0, "pendingCheckpointState": b"\0s"}
    await bench.put(stored(a_row()) | pending)
    after = await bench.store.write(
        rules.checkpoint(a_row(), **MINE, report=rules.Report(position=SequenceNumber(1500)))
    )
    assert await bench.get(KEY) == stored(after)


async def test_heartbeat_keeps_a_prepared_checkpoint_when_it_stores_none(bench: Bench) -> None:
    """Renewing says nothing about progress."""
    pending = {"pendingCheckpoint": "1200", "pendingCheckpointState": b"\0s"}
    await bench.put(stored(a_row()) | pending)
    after = await bench.store.write(rules.heartbeat(a_row(), **MINE))
    assert await bench.get(KEY) == stored(replace(after, pending=None)) | pending


async def test_write_into_a_map_is_rejected_when_there_is_no_map(bench: Bench) -> None:
    """A row without ``native`` needs the whole map, as in DynamoDB."""
    await bench.put({"leaseKey": KEY, "leaseCounter": 1, "checkpoint": "5"})
    with pytest.raises(RejectedError):
        await bench.store.write(Write("probe", KEY, (Is(("leaseCounter",), 1),), {("native", "token"): "t"}))
    assert await bench.get(KEY) == {"leaseKey": KEY, "leaseCounter": 1, "checkpoint": "5"}


async def test_add_starts_from_nothing(bench: Bench) -> None:
    """Summing onto a missing number sets it."""
    await bench.put({"leaseKey": KEY, "leaseCounter": 1, "checkpoint": "5"})
    row = await bench.store.write(Write("probe", KEY, (), add={("ownerSwitchesSinceCheckpoint",): 1}))
    assert row.switches == 1


async def test_create_puts_the_row_once(bench: Bench) -> None:
    """The second of two creates changes nothing and says so."""
    row = a_row()
    assert await bench.store.create(row)
    assert not await bench.store.create(replace(row, counter=7, owner=OTHER))
    assert await bench.store.read(KEY) == row


async def test_create_has_one_winner_when_many_race(bench: Bench) -> None:
    """Of ten workers that create the same row at once, one did."""
    created: list[str] = []

    async def create(owner: str) -> None:
        if await bench.store.create(a_row(owner=owner)):
            created.append(owner)

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(create, f"w{number}/0")
    row = await bench.store.read(KEY)
    assert row is not None
    assert created == [row.owner]


async def test_take_has_one_winner_when_many_race(bench: Bench) -> None:
    """Of ten workers that take the same free row at once, one did; the others are refused."""
    free = a_row(owner=None)
    await bench.put(stored(free))
    outcomes: list[str] = []

    async def take(owner: str) -> None:
        try:
            await bench.store.write(rules.take(free, owner=owner, token=f"t-{owner}", now_ms=1))
        except ConditionFailedError:
            outcomes.append("refused")
        else:
            outcomes.append(owner)

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(take, f"w{number}/0")
    row = await bench.store.read(KEY)
    assert row is not None
    assert row.counter == free.counter + 1
    assert sorted(outcomes) == sorted([*["refused"] * 9, str(row.owner)])


async def test_child_is_created_when_the_parent_is_held(bench: Bench) -> None:
    """Parent check and child are one transaction; the parent stays as it is."""
    await bench.put(stored(a_row()))
    assert await bench.store.create(CHILD, parent=rules.parent_is_mine(a_row(), **MINE))
    assert await bench.store.read(CHILD.key) == CHILD
    assert await bench.get(KEY) == stored(a_row())


async def test_child_that_exists_stays_when_the_parent_is_held(bench: Bench) -> None:
    """Completing again after a crash does not throw a child back to its beginning."""
    grown = replace(CHILD, counter=5, owner=OTHER, checkpoint="2000")
    await bench.put(stored(a_row()))
    await bench.put(stored(grown))
    assert not await bench.store.create(CHILD, parent=rules.parent_is_mine(a_row(), **MINE))
    assert await bench.get(CHILD.key) == stored(grown)


@pytest.mark.parametrize("child_exists", [False, True])
async def test_child_is_refused_when_the_parent_is_not_as_tested(bench: Bench, child_exists: bool) -> None:
    """Who has lost the parent creates nothing, and learns of the loss even if the child is there."""
    check = rules.parent_is_mine(a_row(), **MINE)
    if child_exists:
        await bench.put(stored(CHILD))
    for item in violations(check, stored(a_row())).values():
        await bench.put(item)
        with pytest.raises(ConditionFailedError):
            await bench.store.create(CHILD, parent=check)
        assert await bench.get(KEY) == item
    assert await bench.get(CHILD.key) == (stored(CHILD) if child_exists else None)


async def test_delete_removes_a_row_of_an_earlier_stream(bench: Bench) -> None:
    """It goes, if it is as seen."""
    await bench.put(stored(a_row()))
    await bench.store.delete(rules.reset(a_row()))
    assert await bench.store.read(KEY) is None


async def test_delete_is_refused_when_one_test_fails(bench: Bench) -> None:
    """A row that moved on, or is another stream's, stays."""
    reset = rules.reset(a_row())
    for item in violations(reset, stored(a_row())).values():
        await bench.put(item)
        with pytest.raises(ConditionFailedError):
            await bench.store.delete(reset)
        assert await bench.get(KEY) == item


async def test_delete_is_refused_when_the_row_is_missing(bench: Bench) -> None:
    """Deleting twice is not mistaken for deleting."""
    with pytest.raises(ConditionFailedError):
        await bench.store.delete(rules.reset(a_row()))


async def test_read_returns_none_when_there_is_no_row(bench: Bench) -> None:
    """A missing row is an answer, not an error."""
    assert await bench.store.read("shardId-000000000099") is None


async def test_scan_returns_all_rows_and_a_sentence_for_each_item_that_is_none(bench: Bench) -> None:
    """A damaged item or one of another kind never hides the leases."""
    rows = [a_row(), CHILD, LeaseRow("shardId-java", counter=3, owner="java-1", has_native=False)]
    for row in rows:
        await bench.put(stored(row))
    await bench.put({"leaseKey": "broken", "leaseCounter": "seven", "checkpoint": "5"})
    await bench.put({"leaseKey": "Leader", "entityType": "LEADER", "ownerName": "java-1"})
    scan = await bench.store.scan()
    assert sorted(scan.rows, key=lambda row: row.key) == sorted(rows, key=lambda row: row.key)
    assert scan.malformed == (
        "cannot read the row of 'broken': expected a whole number in leaseCounter, found 'seven'; it is left alone",
    )


async def test_read_is_rejected_when_the_item_is_no_lease(bench: Bench) -> None:
    """Reading a damaged row says what is wrong with it."""
    await bench.put({"leaseKey": KEY, "leaseCounter": 1, "checkpoint": "yesterday"})
    with pytest.raises(
        RejectedError, match="expected a sequence number or a sentinel in checkpoint, found 'yesterday'"
    ):
        await bench.store.read(KEY)


async def test_ensure_says_that_nothing_was_created_when_the_tables_are_there(bench: Bench) -> None:
    """Starting again does not report a new table."""
    assert await bench.store.ensure() is None
    assert bench.store.has_workers


async def test_worker_row_keeps_attributes_that_we_do_not_write(bench: Bench) -> None:
    """A beat replaces our fields only, and a limit that was lifted is gone."""
    row = WorkerRow(ME, beat=1, state="starting", held=2, max_leases=9, news=3, updated_s=100)
    await bench.store.put_worker(row)
    item = await bench.get_worker(ME)
    assert item == {"wid": ME, "lut": 100, "sts": {}, "opr": {}, "beat": 1, "news": 3, **_STARTING}
    await bench.put_worker(item | STRANGE)
    await bench.store.put_worker(replace(row, beat=2, state="active", max_leases=None))
    expected: dict[str, Any] = {**item, **STRANGE, "beat": 2, "state": "active"}
    expected.pop("max")
    assert await bench.get_worker(ME) == expected


async def test_workers_are_read_and_deleted(bench: Bench) -> None:
    """Rows that kcl_py did not write are passed over; deleting twice is no error."""
    mine, other = (
        WorkerRow(ME, beat=4, state="draining"),
        WorkerRow(OTHER, beat=1, max_leases=2, strategy="throughput", held_off="why"),
    )
    await bench.store.put_worker(mine)
    await bench.store.put_worker(other)
    await bench.put_worker({"wid": "java-1", "lut": 1, "sts": {}, "opr": {}})
    assert sorted(await bench.store.workers(), key=lambda row: row.worker) == [mine, other]
    await bench.store.delete_worker(ME)
    await bench.store.delete_worker(ME)
    assert await bench.store.workers() == (other,)


async def test_store_closes_twice(bench: Bench) -> None:
    """Closing is idempotent."""
    await bench.store.aclose()
    await bench.store.aclose()
