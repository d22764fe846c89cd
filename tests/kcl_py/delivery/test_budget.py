"""The bytes that all shards of a worker share: in order of asking, and never lost."""

import asyncio

import pytest

from kcl_py.delivery.budget import Budget
from tests.simloop import simulated


@simulated
async def test_request_waits_until_others_give_back_and_goes_in_turn() -> None:
    """A small request does not overtake a large one that waits: no shard starves."""
    budget, order = Budget(100), []

    async def ask(name: str, size_bytes: int) -> None:
        await budget.reserve(size_bytes)
        order.append(name)

    await budget.reserve(60)
    asks = [asyncio.ensure_future(ask("large", 50)), asyncio.ensure_future(ask("small", 10))]
    await asyncio.sleep(1)
    assert order == []
    budget.give_back(60)
    await asyncio.gather(*asks)
    assert (order, budget.used_bytes) == (["large", "small"], 60)


@simulated
async def test_request_above_the_total_is_let_through_alone() -> None:
    """One record larger than everything must not stop its shard for ever."""
    budget = Budget(100)
    await budget.reserve(10)
    large = asyncio.ensure_future(budget.reserve(500))
    await asyncio.sleep(1)
    assert not large.done()
    budget.give_back(10)
    await large
    assert budget.used_bytes == 500


@pytest.mark.parametrize("granted_first", [False, True])
@simulated
async def test_cancelled_request_loses_no_bytes(granted_first: bool) -> None:
    """Cancelled while it waits, or just as it is granted, a request leaves the budget as it was."""
    budget = Budget(100)
    await budget.reserve(100)
    waiting = asyncio.ensure_future(budget.reserve(40))
    next_one = asyncio.ensure_future(budget.reserve(30))
    await asyncio.sleep(1)
    if granted_first:
        budget.give_back(100)
        waiting.cancel()
    else:
        waiting.cancel()
        await asyncio.sleep(1)
        budget.give_back(100)
    await asyncio.wait([waiting, next_one])
    assert waiting.cancelled()
    assert budget.used_bytes == 30


@simulated
async def test_account_replaces_what_was_reserved_by_what_came() -> None:
    """A reply is booked with its real size, also above the total."""
    budget = Budget(100)
    account = budget.account()
    await account.reserve(50)
    account.correct(50, 120)
    assert budget.used_bytes == 120
    account.give_back(120)
    assert budget.used_bytes == 0


@simulated
async def test_account_never_gives_back_more_than_it_holds() -> None:
    """A reset in between makes later returns worth nothing, and takes nothing from other shards."""
    budget = Budget(100)
    account, other = budget.account(), budget.account()
    await account.reserve(40)
    await other.reserve(40)
    account.reset()
    account.give_back(40)
    assert budget.used_bytes == 40


@simulated
async def test_closed_account_holds_nothing_whatever_its_tasks_still_do() -> None:
    """A Pipeline that stops returns all, also what a request brings in after that."""
    budget = Budget(100)
    account = budget.account()
    await account.reserve(40)
    account.close()
    account.correct(40, 70)
    assert budget.used_bytes == 0
