"""Where a worker's shards say that they stand still, for who wants to end with the first that does."""

from dataclasses import dataclass

import anyio

from kcl_py.events import Events


@dataclass(frozen=True, slots=True)
class HaltedShard:
    """A shard that stands still, and holds its place."""

    shard_id: str
    error: str
    """What the last attempt ended with."""
    position: str
    """The sequence number of the record that was given up; where there is none, where the shard stands."""


class Halts:
    """The halts of one worker."""

    def __init__(self) -> None:
        self._first: HaltedShard | None = None
        self._has_come = anyio.Event()

    def note(self, halted: HaltedShard, attempts: int, log: Events) -> None:
        """Note that a shard stands still, after so many attempts; tell the log, bound to the shard."""
        log.error(
            "kcl_py.shard.halted",
            error=halted.error,
            position=halted.position,
            attempts=attempts,
            how_to_resume="mend the cause and restart this worker, or, if it lies elsewhere, use kcl resume FILE "
            f"--shard {halted.shard_id}: the shard then goes on from its checkpoint; where a record is the cause, "
            "'A halted shard' in docs/leases.md tells how to find and pass over it",
        )
        if self._first is None:
            self._first = halted
            self._has_come.set()

    async def first(self) -> HaltedShard:
        """Wait for the first of them."""
        await self._has_come.wait()
        assert self._first is not None
        return self._first
