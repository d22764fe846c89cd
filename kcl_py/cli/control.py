"""``kcl pause`` and ``kcl resume``: have a stream, or some of its shards, stand still, and go on."""

import secrets
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import anyio

from actors.clock import SystemClock, move_on_after
from kcl_py.cli.asking import wait_for_answers
from kcl_py.cli.changing import carry_out
from kcl_py.cli.countdown import Countdown
from kcl_py.cli.failure import WORKER_FAILED, print_error
from kcl_py.cli.loading import load_config
from kcl_py.cli.looking import looking
from kcl_py.cli.output import say
from kcl_py.cli.seen import look, warn
from kcl_py.errors import ConfigError, RequestError
from kcl_py.leases.control import WHY_CHARACTERS, chosen, is_quiet, pause, resume
from kcl_py.leases.row import LeaseRow, Paused
from kcl_py.printable import counted, printable

if TYPE_CHECKING:
    from pathlib import Path

    from kcl_py.cli.asking import Asked
    from kcl_py.clients import Clients
    from kcl_py.config import Config
    from kcl_py.leases.repositioning import Change
    from kcl_py.leases.store import LeaseStore


def pause_command(file: "Path", shards: Sequence[str], why: str | None) -> int:
    """Pause shards, or the whole stream, and wait until nothing of them is in a processor's hands."""
    config = load_config(file)
    if why is not None and not 0 < len(why) <= WHY_CHARACTERS:
        raise ConfigError(
            f"cannot pause for that reason: expected --why of 1 to {WHY_CHARACTERS} characters, found {len(why)}"
        )
    asked = Paused(int(SystemClock().time() * 1000), why, is_of_stream=not shards)
    return anyio.run(_pause, config, shards, asked)


def resume_command(file: "Path", shards: Sequence[str]) -> int:
    """Have shards, or the whole stream, go on, and wait until those that had halted do."""
    return anyio.run(_resume, load_config(file), shards)


async def _pause(config: "Config", shards: Sequence[str], asked: Paused) -> int:
    async with looking(config) as clients:
        rows = await _change(clients, config, shards, "pause", lambda row: pause(row, asked))
        pausing = _Pausing(clients.leases, config, asked, {row.key for row in rows})
        return await pausing.wait(config.leases.failover_s + config.leases.handoff_timeout_s)


async def _resume(config: "Config", shards: Sequence[str]) -> int:
    asked: Asked = {}
    async with looking(config) as clients:
        await _change(clients, config, shards, "resume", lambda row: resume(row, secrets.token_hex(4)), asked)
        patience_s = config.leases.failover_s + config.leases.handoff_timeout_s
        return await wait_for_answers(clients.leases, asked, patience_s=patience_s) if asked else 0


async def _change(
    clients: "Clients",
    config: "Config",
    shards: Collection[str],
    what: str,
    plan: "Callable[[LeaseRow], list[Change]]",
    asked: "Asked | None" = None,
) -> list[LeaseRow]:
    """Show and make the changes; return the rows that they are about."""
    seen = await look(clients, config)
    warn(seen)
    rows = chosen(seen.rows, shards, config.leases.table, what)
    changes = [change for row in rows for change in plan(row)]
    found = await _carry_out(clients.leases, config, changes)
    if not changes:
        say("nothing to do\n")
    if asked is not None:
        asked.update(found)
    return rows


async def _carry_out(store: "LeaseStore", config: "Config", changes: "Sequence[Change]") -> "Asked":
    for change in changes:
        say(f"{printable(change.key)}: {printable(change.what)}\n")
    return await carry_out(store, changes, patience_s=config.aws.start_timeout_s) if changes else {}


class _Pausing:
    """Waits until paused shards are quiet.

    Args:
        store: where their rows are.
        config: for the times.
        asked: what was asked; of the whole stream, shards that come meanwhile are paused, too.
        keys: the shards.
    """

    def __init__(self, store: "LeaseStore", config: "Config", asked: Paused, keys: set[str]) -> None:
        self._store, self._config, self._asked, self._keys = store, config, asked, keys
        self._trouble = ""

    async def wait(self, patience_s: float) -> int:
        """Look until all are quiet, or for so long; return 0 if all are."""
        left = await self._left()
        try:
            if left:
                left = await self._watch(left, patience_s)
        except anyio.get_cancelled_exc_class():
            print_error(f"cut off before {counted(len(left), 'shard')} had come to rest; the pause stands")
            raise
        if left:
            print_error(
                f"no word within {patience_s:g} s that {', '.join(map(printable, left))} has come to rest: what a "
                f"processor has in its hands may still run; the pause stands{self._trouble}"
            )
            return WORKER_FAILED
        say(f"{counted(len(self._keys), 'shard')} paused, and nothing of that in a processor's hands\n")
        return 0

    async def _watch(self, left: list[str], patience_s: float) -> list[str]:
        clock = SystemClock()
        said = f"waiting for up to {{}} until processors have finished what they have of {counted(len(left), 'shard')}"
        with Countdown(said, patience_s), move_on_after(clock, patience_s):
            while left:
                await clock.sleep(self._config.leases.tick_s)
                left = await self._left()
        return left

    async def _left(self) -> list[str]:
        """Name the shards that have not come to rest, as far as is known."""
        try:
            return await self._look()
        except RequestError as error:  # the next look may get through
            self._trouble = f"; a look failed: {error}"
            return sorted(self._keys)

    async def _look(self) -> list[str]:
        """Look at the rows; pause those that have come meanwhile; return which are not quiet."""
        rows = {row.key: row for row in (await self._store.scan(consistent=True)).rows}
        if self._asked.is_of_stream:
            late = [row for key, row in rows.items() if key not in self._keys and not row.has_ended]
            await _carry_out(self._store, self._config, [change for row in late for change in pause(row, self._asked)])
            self._keys |= {row.key for row in late}
        return sorted(key for key in self._keys if not is_quiet(rows.get(key)))
