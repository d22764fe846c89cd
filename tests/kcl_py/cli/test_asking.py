"""Waiting for the holders of shards to answer, while the lease table does not."""

import anyio
import pytest

from kcl_py.cli.asking import wait_for_answers
from kcl_py.errors import RejectedError
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.leases.requests import RELEASE
from kcl_py.leases.row import LeaseRow, Request

pytestmark = pytest.mark.asyncio
ASKED = Request("r1", RELEASE)


class MuteStore(MemoryLeaseStore):
    """Tells when it is asked, and never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = anyio.Event()

    async def read(self, key: str) -> LeaseRow | None:
        self.is_asked.set()
        await anyio.sleep_forever()
        return None


async def test_wait_is_over_in_time_however_slow_the_table_is(capsys: pytest.CaptureFixture[str]) -> None:
    """A look at hundreds of rows that all run into their deadlines would last for many minutes more."""
    with anyio.fail_after(30):
        assert await wait_for_answers(MuteStore(), {"s-1": (ASKED, LeaseRow("s-1"))}, patience_s=1) == 1
    assert "no answer within 1 s about s-1: what is asked stands, and whoever" in capsys.readouterr().err


async def test_who_may_not_look_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    """The holder may have answered; nobody can tell."""

    class ClosedStore(MemoryLeaseStore):
        async def read(self, key: str) -> LeaseRow | None:
            raise RejectedError("GetItem", key, "AccessDeniedException", "not authorized to perform dynamodb:GetItem")

    assert await wait_for_answers(ClosedStore(), {"s-1": (ASKED, LeaseRow("s-1"))}, patience_s=1) == 1
    assert "not authorized to perform dynamodb:GetItem" in capsys.readouterr().err


async def test_who_is_cut_off_during_a_look_is_told_that_requests_stand(capsys: pytest.CaptureFixture[str]) -> None:
    """It is during a look, rather than between two, for most of the time that the table is slow."""
    store = MuteStore()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                await wait_for_answers(store, {"s-1": (ASKED, LeaseRow("s-1"))}, patience_s=60)

            tasks.start_soon(wait)
            await store.is_asked.wait()
            tasks.cancel_scope.cancel()
    assert "error: cut off before 1 request had an answer; kcl leases show" in capsys.readouterr().err
