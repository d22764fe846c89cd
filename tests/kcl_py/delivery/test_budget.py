"""The memory that all shards of a worker share: who may read next, who has to give up what, and that none gets lost."""

import asyncio
import random
from collections.abc import Callable

import pytest

from actors.testing import ManualClock
from kcl_py.delivery.budget import FETCH_BYTES, IDLE_S, PATIENCE_S, Account, Budget
from tests.simclock import SimClock
from tests.simloop import sim_loop, simulated

LARGE = 10 * FETCH_BYTES
SMALL = 1
"""A budget in which nobody may read while anything at all is held."""
SOON_S = PATIENCE_S / 2
"""Before anybody is called in."""


class Shards:
    """A budget and those who share it."""

    def __init__(self, total_bytes: int) -> None:
        self.budget = Budget(total_bytes, SimClock(sim_loop()))
        self.order: list[str] = []
        """Whose turn it was."""
        self.called: list[str] = []
        self._turns: list[asyncio.Task[None]] = []

    def account(self, name: str) -> Account:
        return self.budget.account(lambda: self.called.append(name))

    async def holding(self, name: str, size_bytes: int) -> Account:
        """Open an account that has read so much."""
        account = self.account(name)
        async with asyncio.timeout(SOON_S):
            await account.turn()
        account.settle(size_bytes)
        return account

    def ask(self, name: str, account: Account | None = None) -> "asyncio.Task[None]":
        """Wait for a turn beside everything else."""
        asking = account or self.account(name)

        async def turn() -> None:
            await asking.turn()
            self.order.append(name)

        task = asyncio.ensure_future(turn())
        self._turns.append(task)
        return task

    async def is_all_free(self) -> bool:
        """Whether nothing is held; for a small budget."""
        turn = self.ask("whoever")
        await asyncio.wait([turn], timeout=SOON_S)
        return turn.cancel() is False


@simulated
async def test_fetch_is_sent_while_less_than_the_total_is_held_or_expected() -> None:
    """Each one on its way counts as the most that it can bring, so no more than one goes over the total."""
    shards = Shards(3 * FETCH_BYTES - 1)
    for name in ("a", "b", "c", "d"):
        shards.ask(name)
        await asyncio.sleep(0)
    await asyncio.sleep(SOON_S)
    assert shards.order == ["a", "b", "c"]


@simulated
async def test_fetch_counts_as_full_only_until_its_reply_is_there() -> None:
    """Small replies leave the room to others as soon as their size is known."""
    shards = Shards(FETCH_BYTES)
    account = shards.account("a")
    await account.turn()
    other = shards.ask("b")
    await asyncio.sleep(SOON_S)
    assert not other.done()
    account.settle(100)
    await asyncio.wait_for(other, SOON_S)


@pytest.mark.parametrize("seed", range(5))
@simulated
async def test_no_more_than_the_total_and_one_reply_is_ever_held(seed: int) -> None:
    """Whatever replies bring, and in whatever order they come and are finished; and in the end nothing is left."""
    chance, total_bytes = random.Random(seed), 3 * FETCH_BYTES
    shards, held, most = Shards(total_bytes), 0, 0

    async def live(account: Account) -> None:
        nonlocal held, most
        for _ in range(20):
            await account.turn()
            await asyncio.sleep(chance.uniform(0.01, 0.1))
            size_bytes = chance.choice((0, 1000, FETCH_BYTES))
            account.settle(size_bytes)
            held += size_bytes
            most = max(most, held)
            await asyncio.sleep(chance.uniform(0.0, 1.0))
            account.give_back(size_bytes)
            held -= size_bytes
        account.close()

    await asyncio.gather(*(live(shards.account(str(number))) for number in range(20)))
    assert total_bytes <= most <= total_bytes + FETCH_BYTES
    turns = [shards.ask("again") for _ in range(4)]
    await asyncio.sleep(SOON_S)
    assert sum(turn.done() for turn in turns) == 3, "as in the beginning"


@simulated
async def test_reply_larger_than_the_whole_budget_is_let_through_alone() -> None:
    """A budget of nearly nothing makes reading slow, and never stops it."""
    shards = Shards(SMALL)
    account = await shards.holding("a", 1)
    other = shards.ask("b")
    await asyncio.sleep(SOON_S)
    assert not other.done()
    account.give_back(1)
    await asyncio.wait_for(other, SOON_S)


@simulated
async def test_shards_take_turns_in_the_order_of_asking() -> None:
    """Nobody is overtaken by one like itself."""
    shards = Shards(FETCH_BYTES)
    account = await shards.holding("full", FETCH_BYTES)
    accounts = {name: shards.account(name) for name in "abc"}
    for name in "abc":
        shards.ask(name, accounts[name])
        await asyncio.sleep(0)
    account.give_back(FETCH_BYTES)
    for name in "abc":
        await asyncio.sleep(0.01)
        assert shards.order[-1] == name
        accounts[name].settle(0)


@simulated
async def test_shard_that_holds_nothing_goes_before_those_that_read_ahead() -> None:
    """To have nothing to do is worse than to have little ready."""
    shards = Shards(LARGE)
    ahead = await shards.holding("ahead", 1000)
    full = await shards.holding("full", LARGE)
    shards.ask("ahead", ahead)
    await asyncio.sleep(0)
    shards.ask("hungry")
    await asyncio.sleep(0)
    full.give_back(LARGE)
    await asyncio.sleep(0.01)
    assert shards.order == ["hungry", "ahead"]


@pytest.mark.parametrize("total_bytes", [LARGE, 1000])
@simulated
async def test_reading_ahead_leaves_room_for_a_shard_that_holds_nothing(total_bytes: int) -> None:
    """What is only kept ready never makes a shard wait that has run dry."""
    shards = Shards(total_bytes)
    ahead = await shards.holding("ahead", 1)
    for _ in range(100):
        turn = shards.ask("ahead", ahead)
        await asyncio.sleep(0.01)
        if not turn.done():
            break
        ahead.settle(min(FETCH_BYTES, total_bytes // 2))
    assert len(shards.order) >= 1, "what is free is used"
    await asyncio.wait_for(shards.ask("hungry"), SOON_S)


@simulated
async def test_shard_that_finishes_nothing_is_called_in_when_another_holds_nothing() -> None:
    """A moment of patience, then what the idle one holds no longer counts."""
    shards = Shards(LARGE)
    await shards.holding("stuck", LARGE)
    await asyncio.sleep(IDLE_S)
    turn = shards.ask("hungry")
    await asyncio.sleep(SOON_S)
    assert not turn.done()
    await asyncio.wait_for(turn, PATIENCE_S)
    assert shards.called == ["stuck"]


@pytest.mark.asyncio
async def test_patience_is_measured_by_the_clock_that_tests_move() -> None:
    """No real time has to pass before somebody is called in, and none is taken for patience."""
    clock, called = ManualClock(), list[str]()
    budget = Budget(SMALL, clock)
    idle, hungry = budget.account(lambda: called.append("idle")), budget.account(lambda: called.append("hungry"))
    await idle.turn()
    idle.settle(1)
    await clock.advance(IDLE_S)
    turn = asyncio.ensure_future(hungry.turn())
    await clock.advance(SOON_S)
    assert (called, turn.done()) == ([], False)
    await clock.advance(SOON_S)
    assert (called, turn.done()) == (["idle"], True)


@simulated
async def test_shard_is_not_called_in_while_it_finishes_something() -> None:
    """Slow is not idle."""
    shards = Shards(LARGE)
    slow = await shards.holding("slow", LARGE + 100)
    shards.ask("hungry")
    for _ in range(20):
        await asyncio.sleep(IDLE_S - 0.1)
        slow.give_back(1)
    assert not shards.called
    assert not shards.order


@simulated
async def test_shard_is_not_called_in_for_one_that_reads_ahead() -> None:
    """Who has something to do can wait."""
    shards = Shards(LARGE)
    await shards.holding("stuck", LARGE - 1)
    ahead = await shards.holding("ahead", 1)
    turn = shards.ask("ahead", ahead)
    await asyncio.sleep(10 * IDLE_S)
    assert not shards.called
    ahead.give_back(1)
    await asyncio.wait_for(turn, 2 * PATIENCE_S)


@simulated
async def test_no_more_shards_are_called_in_than_are_needed_and_the_largest_first() -> None:
    """What is dropped must be read again."""
    shards = Shards(LARGE)
    await shards.holding("small", 1000)
    await shards.holding("middle", FETCH_BYTES)
    await shards.holding("large", LARGE)
    await asyncio.sleep(IDLE_S)
    await asyncio.wait_for(shards.ask("hungry"), 2 * PATIENCE_S)
    assert shards.called == ["large"]


@simulated
async def test_no_more_shards_are_called_in_than_are_needed_when_all_of_them_wait_to_read_ahead() -> None:
    """Nothing that was set aside makes its shard one that has nothing to do: it is not served before the hungry one."""
    shards = Shards(2 * FETCH_BYTES)
    for name in "abcdefgh":
        shards.ask(name, await shards.holding(name, FETCH_BYTES // 4))
    await asyncio.sleep(IDLE_S)
    await asyncio.wait_for(shards.ask("hungry"), 2 * PATIENCE_S)
    assert shards.called == ["a"]
    assert shards.order == ["hungry"]


@simulated
async def test_nobody_is_called_in_when_that_would_not_be_enough() -> None:
    """While requests that hang take all memory, dropping what is ready would let nobody read."""
    shards = Shards(FETCH_BYTES)
    await shards.holding("stuck", 1000)
    hanging = shards.account("hanging")
    await hanging.turn()
    hungry = shards.ask("hungry")
    await asyncio.sleep(3 * IDLE_S)
    assert not shards.called
    hanging.settle(0)
    await asyncio.wait_for(hungry, SOON_S)


@simulated
async def test_shard_is_called_in_once_for_what_it_holds() -> None:
    """What it keeps in hand counts no longer, so there is nothing more to be had from it."""
    shards = Shards(SMALL)
    await shards.holding("stuck", 1000)
    await asyncio.sleep(IDLE_S)
    for name in "abc":
        hungry = shards.account(name)
        await asyncio.wait_for(hungry.turn(), 2 * PATIENCE_S)
        hungry.settle(1)
        await asyncio.sleep(IDLE_S)
    assert shards.called == ["stuck", "a", "b"]


@simulated
async def test_what_was_set_aside_comes_back_without_making_room_twice() -> None:
    """It left the budget when it was set aside, so its return changes nothing."""
    shards = Shards(SMALL)
    stuck = await shards.holding("stuck", 1000)
    await asyncio.sleep(IDLE_S)
    await asyncio.wait_for(shards.ask("hungry"), 2 * PATIENCE_S)
    stuck.give_back(600)
    stuck.give_back(400)
    assert not await shards.is_all_free(), "the fetch of the hungry one is on its way"


@simulated
async def test_shard_that_goes_on_after_it_was_called_in_counts_again() -> None:
    """Only what it held then is beside the budget."""
    shards = Shards(SMALL)
    stuck = await shards.holding("stuck", 1000)
    await asyncio.sleep(IDLE_S)
    hungry = shards.account("hungry")
    await asyncio.wait_for(hungry.turn(), 2 * PATIENCE_S)
    hungry.settle(0)
    stuck.give_back(1000)
    await asyncio.wait_for(stuck.turn(), SOON_S)
    stuck.settle(500)
    assert not await shards.is_all_free()
    stuck.give_back(500)
    assert await shards.is_all_free()


@pytest.mark.parametrize("granted_first", [False, True])
@simulated
async def test_cancelled_request_loses_no_bytes(granted_first: bool) -> None:
    """Cancelled while it waits, or just as it is granted, a request leaves the budget as it was."""
    shards = Shards(SMALL)
    account = await shards.holding("full", 100)
    waiting = shards.ask("waiting")
    await asyncio.sleep(0.01)
    if granted_first:
        account.give_back(100)
        waiting.cancel()
    else:
        waiting.cancel()
        await asyncio.sleep(0.01)
        account.give_back(100)
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert await shards.is_all_free()


@simulated
async def test_fetch_that_is_still_being_cancelled_when_the_next_is_granted_loses_no_bytes() -> None:
    """Each grant is returned once, in whatever order their tasks end; and all of them when the account is closed."""
    shards = Shards(2 * FETCH_BYTES)
    account, other = shards.account("account"), shards.account("other")
    for _ in range(2):
        await account.turn()
    account.settle(0)
    account.settle(0)
    for _ in range(2):
        await account.turn()
    account.close()
    for _ in range(2):
        await asyncio.wait_for(other.turn(), SOON_S)


def _reset(account: Account) -> None:
    account.reset()


def _return_too_much(account: Account) -> None:
    account.give_back(10**9)


def _return_in_parts(account: Account) -> None:
    account.give_back(60)
    account.reset()
    account.give_back(60)


def _close(account: Account) -> None:
    account.close()


@pytest.mark.parametrize("give_up", [_reset, _return_too_much, _return_in_parts, _close])
@simulated
async def test_account_gives_back_what_it_holds_and_no_more(give_up: Callable[[Account], None]) -> None:
    """A reset in between makes later returns worth nothing, and takes nothing from other shards."""
    shards = Shards(SMALL)
    account = await shards.holding("account", 100)
    give_up(account)
    other = await shards.holding("other", 100)
    account.give_back(100)
    assert not await shards.is_all_free()
    other.give_back(100)
    assert await shards.is_all_free()


@simulated
async def test_reset_leaves_the_fetch_on_its_way_counted() -> None:
    """What is still coming is counted until it is there or will never be."""
    shards = Shards(SMALL)
    account = shards.account("account")
    await account.turn()
    account.reset()
    assert not await shards.is_all_free()
    account.settle(0)
    assert await shards.is_all_free()


@simulated
async def test_closed_account_holds_nothing_whatever_its_tasks_still_do() -> None:
    """A Pipeline that stops returns all, also what a request brings in after that."""
    shards = Shards(SMALL)
    account = shards.account("account")
    await account.turn()
    account.close()
    account.settle(70)
    assert await shards.is_all_free()
    await asyncio.sleep(2 * IDLE_S)
    assert not shards.called
