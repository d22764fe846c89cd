"""How ``kcl leases`` carries a plan out while the table does not answer as it should."""

from functools import partial

import anyio
import pytest

from kcl_py.cli.changing import carry_out
from kcl_py.errors import KclError, ThrottledError
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.leases.repositioning import Change
from kcl_py.leases.row import LeaseRow
from kcl_py.leases.store import Write

pytestmark = pytest.mark.asyncio
PLAN = tuple(Change(key, "no row -> TRIM_HORIZON", row=LeaseRow(key)) for key in ("s-0", "s-1", "s-2"))
PATIENCE_S = 20.0


class Busy(MemoryLeaseStore):
    """A table that refuses so many rows for the rate, from the second one on."""

    def __init__(self, refusals: int) -> None:
        super().__init__()
        self.refusals, self.refused = refusals, anyio.Event()

    async def create(self, row: LeaseRow, *, parent: Write | None = None) -> bool:
        if self.items and self.refusals > 0:
            self.refusals -= 1
            self.refused.set()
            raise ThrottledError("create", row.key, "ThrottlingException")
        return await super().create(row, parent=parent)


async def test_what_is_throttled_is_written_again() -> None:
    """So that a long plan gets through a table whose capacity is low."""
    store = Busy(2)
    assert await carry_out(store, PLAN, patience_s=PATIENCE_S) == {}
    assert list(store.items) == ["s-0", "s-1", "s-2"]


async def test_what_stays_throttled_says_how_far_it_was() -> None:
    """The plan can be made again then."""
    with pytest.raises(KclError, match=r"'s-1'.*; made 1 of 3 changes before; do it again"):
        await carry_out(Busy(1000), PLAN, patience_s=0)


async def test_what_is_cut_off_says_how_far_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    """As by Ctrl-C."""
    store = Busy(1000)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(carry_out, store, PLAN, patience_s=PATIENCE_S))
        await store.refused.wait()
        tasks.cancel_scope.cancel()
    said = "error: cut off while it changed 's-1': made 1 of 3 changes before; do it again\n"
    assert capsys.readouterr().err == said
