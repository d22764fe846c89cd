"""Pauses, resumes and moves the reading of a stream from within a worker: ``kcl pause``, ``resume`` and ``seek``.

It writes to the rows as an operator does, and then has the Leases of this worker look at theirs at once; other workers
see it with their next heartbeats.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from kcl_py.errors import ConditionFailedError, ConfigError, KclError
from kcl_py.leases import control
from kcl_py.leases.making import make
from kcl_py.leases.places import find, parse_place, service_ms
from kcl_py.leases.repositioning import Change
from kcl_py.leases.row import LeaseRow, Paused
from kcl_py.records import SequenceNumber
from kcl_py.tree.worker import Worker

TRIES = 10
"""How often a row is looked at again that others write meanwhile."""

Plan = Callable[[LeaseRow], Sequence[Change]]


class Control:
    """What a program can ask of the readers of its stream.

    Args:
        worker: what the worker's actors share.
        look: has the Leases of these shards look at their rows, if they run here.
    """

    def __init__(self, worker: Worker, look: Callable[[frozenset[str]], None]) -> None:
        self._worker, self._look = worker, look

    async def pause(self, shard_id: str | None, why: str | None) -> None:
        """Pause one shard, or all, also those that come meanwhile."""
        if why is not None and not 0 < len(why) <= control.WHY_CHARACTERS:
            raise ConfigError(
                f"cannot pause for that reason: expected 1 to {control.WHY_CHARACTERS} characters, found {len(why)}"
            )
        asked = Paused(int(self._worker.clock.time() * 1000), why, is_of_stream=shard_id is None)
        for _ in range(TRIES):
            if not await self._change(shard_id, "pause", partial(control.pause, asked=asked)) or shard_id is not None:
                return

    async def resume(self, shard_id: str | None) -> None:
        """Have one shard, or all, go on."""
        await self._change(shard_id, "resume", lambda row: control.resume(row, self._key()))

    async def seek(self, to: str | datetime | SequenceNumber, shard_id: str | None) -> None:
        """Have one shard, or all, be read from another place on."""
        place, source = parse_place(to), self._worker.source
        if isinstance(place, SequenceNumber) and shard_id is None:
            raise ConfigError(f"cannot move all shards to {place}: expected the shard that it is of, found none")
        now_ms = await service_ms(source, place)
        if shard_id is not None:
            await find(source, shard_id, place)
        await self._change(shard_id, "move", lambda row: [control.seek(row, place, self._key(), now_ms=now_ms)])

    def _key(self) -> str:
        return self._worker.ids.token()[:8]

    async def _change(self, shard_id: str | None, what: str, plan: Plan) -> bool:
        """Change the rows as ``plan`` says; False if there was nothing to change."""
        scan = await self._worker.store.scan(consistent=True)
        rows = {row.key: row for row in sorted(scan.rows, key=lambda row: row.key)}
        shards = () if shard_id is None else (shard_id,)
        chosen = control.chosen(rows, shards, self._worker.config.leases.table, what)
        for row in chosen:
            plan(row)  # before anything is written it shows whether all can be
        changed = [row.key for row in chosen if await self._change_one(row, plan)]
        self._look(frozenset(changed))
        return bool(changed)

    async def _change_one(self, row: LeaseRow, plan: Plan) -> bool:
        """Change one row; where somebody has written it meanwhile, as it is by then."""
        worker, has_changed = self._worker, False
        for _ in range(TRIES):
            try:
                for change in plan(row):
                    await make(worker.store, change, worker.clock, patience_s=worker.config.aws.start_timeout_s)
                    has_changed = True
            except ConditionFailedError:
                found = await worker.store.read(row.key)
                if found is None or found.has_ended:
                    return has_changed
                row = found
            else:
                return has_changed
        raise KclError(
            f"cannot change {row.key!r}: expected the row to stay as it was seen, found it changed {TRIES} times"
        )
