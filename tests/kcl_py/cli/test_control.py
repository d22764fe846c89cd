"""How ``kcl pause`` waits until nothing of what it has paused is in a processor's hands."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kcl_py.cli.control import pause_command
from kcl_py.clients import Clients
from kcl_py.config import Config
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.leases.row import SHARD_END, LeaseRow, Native
from kcl_py.leases.store import Scan
from tests.kcl_py.tree.stage import INFO, ScriptedSource

HELD = LeaseRow("s-1", owner="a", native=Native(token="t", owner="a"))


class Living(MemoryLeaseStore):
    """A table in which something happens between two looks."""

    def __init__(self, *rows: LeaseRow, happens: Callable[["Living"], None] = lambda _: None) -> None:
        super().__init__(rows)
        self._happens = happens

    async def scan(self, *, consistent: bool = False) -> Scan:
        self._happens(self)
        return await super().scan(consistent=consistent)

    def say(self, key: str, **native: Any) -> None:
        item = self.items[key]
        self.items[key] = {**item, "native": {**item["native"], **native}}

    def is_paused(self, key: str) -> bool:
        return "paused" in self.items[key]["native"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Return what pauses shards of a table."""
    file = tmp_path / "orders.yaml"
    file.write_text("{app: orders, stream: orders, processor: m:C, leases: {failover_s: 3, handoff_timeout_s: 1}}")

    def pause(store: MemoryLeaseStore, *shards: str) -> int:
        @asynccontextmanager
        async def connected(config: Config) -> AsyncIterator[Clients]:
            yield Clients(ScriptedSource(), store, INFO)

        monkeypatch.setattr("kcl_py.cli.control.looking", connected)
        return pause_command(file, shards, None)

    return pause


def test_shard_whose_holder_says_nothing_is_named(run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    """It may be dead, or busy with what it has; the pause stands, and the exit code tells."""
    store = Living(HELD, LeaseRow("s-2"))
    assert run(store) == 1
    said = capsys.readouterr()
    assert said.out.endswith("2 changes made\n")
    assert "error: no word within 4 s that s-1 has come to rest" in said.err
    assert store.is_paused("s-1")
    assert store.is_paused("s-2")


def test_shard_that_comes_while_the_stream_comes_to_rest_is_paused_too(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its parent's end was in hand, and its holder did not know."""

    def ends(store: Living) -> None:
        if store.is_paused("s-1") and "s-2" not in store.items:
            store.items["s-1"] = {**store.items["s-1"], "checkpoint": SHARD_END}
            store.items["s-2"] = {**store.items["s-1"], "leaseKey": "s-2", "checkpoint": "TRIM_HORIZON", "native": {}}
            del store.items["s-2"]["leaseOwner"]  # type: ignore[attr-defined]  # a dict of this test's own

    store = Living(HELD, happens=ends)
    assert run(store) == 0
    assert store.is_paused("s-2")
    assert capsys.readouterr().out.splitlines()[-1].startswith("2 shards paused")


def test_one_shard_that_is_paused_waits_for_no_other(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """And a word about a pause before is none about this one."""

    def says(store: Living) -> None:
        native = store.items["s-1"]["native"]
        if "paused" in native:
            store.say("s-1", quiet=5 if "quiet" not in native else native["paused"]["at"])

    store = Living(HELD, LeaseRow("s-2", owner="b", native=Native(token="u", owner="b")), happens=says)
    assert run(store, "s-1") == 0
    assert not store.is_paused("s-2")
    assert capsys.readouterr().out.splitlines()[-1].startswith("1 shard paused")
