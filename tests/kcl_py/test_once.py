"""Markers and claims beside the work of single records: what is done again, and what is not."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kcl_py import Dedup, DuplicateInWorkError, EffectsRefusedError, Ids, Once, OwnedShard, Record, Retry
from kcl_py.effects import Effect, Put, Update
from kcl_py.errors import RequestError
from kcl_py.tables import Tables
from tests.kcl_py.tree.sums import MARKS, SUMS, TabledStore
from tests.kcl_py.tree.wire import Fault, Wire, WiredStore
from tests.simclock import SimClock
from tests.simloop import sim_loop, simulated

TIMEOUT_S = 5.0


class World:
    """Two tables, and a way to them that may fail."""

    def __init__(self) -> None:
        generator = random.Random(1)
        self.clock, self.wire, self.store = SimClock(sim_loop()), Wire(generator), TabledStore()
        wired = WiredStore(self.store, self.wire)
        self.tables = Tables(wired, self.clock, Ids(generator), timeout_s=TIMEOUT_S)

    def shard(self, *, shard_id: str = "shard-1", epoch: int = 1, stream: str = "orders") -> OwnedShard:
        return OwnedShard(stream, shard_id, epoch, None, (), tables=self.tables)

    @property
    def sum(self) -> int:
        return self.store.sums().get("all", 0)


def a_record(number: int, *, key: str = "m-1") -> Record:
    return Record(str(number), b"x", key)


def by_key(record: Record) -> str:
    return record.partition_key


ADD: Sequence[Effect] = [Update(SUMS, {"id": "all"}, "ADD n :n", values={":n": 1})]


@simulated
async def test_effects_of_a_record_that_comes_again_are_not_applied_again() -> None:
    """Whoever has it; those of another record are."""
    world = World()
    once = [Once(world.shard(epoch=epoch), table=MARKS, ttl_s=60) for epoch in (1, 2)]
    assert [await each.apply(a_record(1), ADD) for each in once] == [True, False]
    assert await once[1].apply(a_record(2), ADD)
    assert world.sum == 2
    assert sorted(item["id"] for item in world.store.rows_of(MARKS)) == [f"orders/shard-1/{n}/0" for n in (1, 2)]


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.LATE, Fault.LOST_REQUEST, Fault.BROKEN, Fault.THROTTLED])
@simulated
async def test_effects_whose_reply_is_lost_are_applied_once(fault: Fault) -> None:
    """Each try is the same request to DynamoDB."""
    world = World()
    world.wire.fail("effects", fault, times=2)
    assert await Once(world.shard(), table=MARKS, ttl_s=60).apply(a_record(1), ADD)
    await world.clock.sleep(5)
    assert (world.sum, len(world.wire.of("effects"))) == (1, 3)


@simulated
async def test_silence_ends_and_the_marker_tells_when_the_record_comes_again() -> None:
    """The attempt raises; what it had sent has taken effect, and counts."""
    world = World()
    once = Once(world.shard(), table=MARKS, ttl_s=60)
    world.wire.fail("effects", Fault.LOST_REPLY, times=100)
    with pytest.raises(RequestError):
        await once.apply(a_record(1), ADD)
    assert world.clock.monotonic() <= TIMEOUT_S + 1
    world.wire.recover()
    assert not await once.apply(a_record(1), ADD)
    assert world.sum == 1


@simulated
async def test_effect_that_is_refused_leaves_no_marker() -> None:
    """The record can come again; its number is the user's."""
    world = World()
    once = Once(world.shard(), table=MARKS, ttl_s=60)
    impossible = Put(SUMS, {"id": "all"}, "attribute_exists(id)")
    with pytest.raises(EffectsRefusedError) as caught:
        await once.apply(a_record(1), [impossible])
    assert caught.value.reasons == {0: "ConditionalCheckFailed"}
    assert (await once.apply(a_record(1), ADD), world.sum) == (True, 1)


@simulated
async def test_marker_of_a_message_id_is_that_of_its_stream() -> None:
    """S2-06: a sender that tries again may reach another shard; another stream has ids of its own."""
    world = World()
    shards = [world.shard(), world.shard(shard_id="shard-2"), world.shard(stream="others")]
    once = [Once(shard, table=MARKS, ttl_s=60, id=by_key) for shard in shards]
    assert [await each.apply(a_record(number), ADD) for number, each in enumerate(once)] == [True, False, True]


@simulated
async def test_marker_counts_for_its_time() -> None:
    """DynamoDB deletes it at some time after."""
    world = World()
    once = Once(world.shard(), table=MARKS, ttl_s=60, id=by_key)
    assert await once.apply(a_record(1), ADD)
    await world.clock.sleep(59)
    assert not await once.apply(a_record(2), ADD)
    await world.clock.sleep(2.5)
    assert await once.apply(a_record(3), ADD)


@simulated
async def test_one_marker_needs_room_in_the_transaction() -> None:
    """99 effects beside it."""
    world = World()
    effects = [Put(SUMS, {"id": str(number)}) for number in range(100)]
    once = Once(world.shard(), table=MARKS, ttl_s=60)
    with pytest.raises(EffectsRefusedError, match="expected 99 at most"):
        await once.apply(a_record(1), effects)
    assert await once.apply(a_record(1), effects[:99])


def a_dedup(world: World, **shard: Any) -> Dedup:
    return Dedup(world.shard(**shard), table=MARKS, ttl_s=600, id=by_key, work_s=30)


async def is_first(dedup: Dedup, record: Record, during: Callable[[], object] = lambda: None) -> bool:
    async with dedup.first(record) as found:
        during()
    return found


@simulated
async def test_message_that_is_put_twice_is_first_once() -> None:
    """S2-06: in whichever shard the second one is."""
    world = World()
    assert await is_first(a_dedup(world), a_record(1))
    assert not await is_first(a_dedup(world, shard_id="shard-2"), a_record(7))
    assert await is_first(a_dedup(world), a_record(2, key="m-2"))
    await world.clock.sleep(601)
    assert await is_first(a_dedup(world), a_record(9))


def fail() -> None:
    raise ValueError("no such user")


@simulated
async def test_work_that_fails_is_first_again_when_its_record_comes_again() -> None:
    """At once, and under a later owner, too; an earlier one has no say any more."""
    world = World()
    with pytest.raises(ValueError, match="no such user"):
        await is_first(a_dedup(world, epoch=5), a_record(1), fail)
    with pytest.raises(DuplicateInWorkError):
        await is_first(a_dedup(world, epoch=4), a_record(1))
    with pytest.raises(ValueError, match="no such user"):
        await is_first(a_dedup(world, epoch=5), a_record(1), fail)
    assert await is_first(a_dedup(world, epoch=6), a_record(1))
    assert not await is_first(a_dedup(world, epoch=6), a_record(1))


@simulated
async def test_second_message_waits_while_the_first_is_in_work() -> None:
    """No longer than that may take: then it is worked on itself."""
    world = World()
    with pytest.raises(ValueError, match="no such user"):
        await is_first(a_dedup(world), a_record(1), fail)
    with pytest.raises(DuplicateInWorkError, match=r"orders/shard-2/7/0: .* within 30 s") as caught:
        await is_first(a_dedup(world, shard_id="shard-2"), a_record(7))
    await world.clock.sleep(caught.value.after_s + 1)
    assert await is_first(a_dedup(world, shard_id="shard-2"), a_record(7))
    assert not await is_first(a_dedup(world), a_record(1))


@simulated
async def test_second_message_of_long_work_waits_as_long_as_a_record_can() -> None:
    """``Retry(error.after_s)`` is no mistake, however long the work may take: it asks again before it has ended."""
    world = World()
    dedup = Dedup(world.shard(), table=MARKS, ttl_s=7200, id=by_key, work_s=3600)
    with pytest.raises(ValueError, match="no such user"):
        await is_first(dedup, a_record(1), fail)
    with pytest.raises(DuplicateInWorkError, match="within 3600 s") as caught:
        await is_first(dedup, a_record(7))
    assert Retry(caught.value.after_s).after_s == 900


@simulated
async def test_end_of_the_work_that_cannot_be_stored_has_it_done_again() -> None:
    """It raises, so the record comes again: that is the window which is left."""
    world = World()
    dedup = a_dedup(world)

    def silence() -> None:
        world.wire.fail("effects", Fault.LOST_REQUEST, times=100)

    with pytest.raises(RequestError):
        await is_first(dedup, a_record(1), silence)
    world.wire.recover()
    assert await is_first(dedup, a_record(1))
    assert not await is_first(dedup, a_record(1))


@pytest.mark.parametrize("make", [lambda shard: Once(shard, table=MARKS, ttl_s=1), lambda shard: a_dedup_of(shard)])
@simulated
async def test_shard_that_no_worker_gave_has_no_tables(make: Callable[[OwnedShard], object]) -> None:
    """The sentence says what is expected."""
    with pytest.raises(ValueError, match="expected the OwnedShard that initialize was given"):
        make(replace(World().shard(), tables=None))


def a_dedup_of(shard: OwnedShard) -> Dedup:
    return Dedup(shard, table=MARKS, ttl_s=1, id=by_key)


@pytest.mark.parametrize("message_id", [None, "", 7])
@simulated
async def test_message_without_an_id_is_refused_and_counts_as_no_other(message_id: object) -> None:
    """S2-06: else the second of them would be taken for the first, and dropped."""
    world = World()
    options: dict[str, Any] = {"table": MARKS, "ttl_s": 60, "id": lambda record: message_id}
    with pytest.raises(ValueError, match=f"expected an id, a str that is not empty, found {message_id!r}"):
        await Once(world.shard(), **options).apply(a_record(1), ADD)
    with pytest.raises(ValueError, match="cannot tell the message of orders/shard-1/1/0 from others"):
        async with Dedup(world.shard(), **options).first(a_record(1)):
            pass
    assert (world.sum, world.store.rows_of(MARKS)) == (0, [])


@pytest.mark.parametrize(
    "wrong", [{"ttl_s": 0}, {"ttl_s": "x"}, {"ttl_s": float("nan")}, {"ttl_s": True}, {"table": ""}, {"key": None}]
)
@pytest.mark.parametrize("kind", [Once, Dedup])
@simulated
async def test_markers_that_could_not_count_are_refused_before_any_work(kind: Any, wrong: dict[str, Any]) -> None:
    """When they are made, with what was found."""
    [(option, value)] = wrong.items()
    with pytest.raises(ValueError, match=f"cannot make {kind.__name__}: expected {option} to be a .*, found {value!r}"):
        kind(World().shard(), **{"table": MARKS, "ttl_s": 60, "id": by_key} | wrong)
