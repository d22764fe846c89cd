"""One worker's life in a simulated fleet: the real ``Stream`` with its own clock, chance and ways to the services.

It can be crashed, cancelled, stopped, paused, frozen and cut off. Seconds are virtual.
"""

import asyncio
import random
from contextvars import copy_context
from typing import Any

from kcl_py import Config, Stream
from kcl_py.clients import Clients
from kcl_py.dead_letters import DeadLetters
from kcl_py.leases.dynamodb import DynamoLeaseStore
from kcl_py.processor import RecordProcessor
from kcl_py.sources.kinesis.polling import KinesisSource
from kcl_py.tree.stream import Outcome
from kcl_py.tree.worker import Ids
from tests.sim.history import History
from tests.sim.network import Link
from tests.simclock import SimClock
from tests.simloop import WORKER, SimLoop


class Life:
    """From its start to its end, whichever it is.

    Args:
        name: of this life; no other has it.
        config: its worker's.
        links: to Kinesis and DynamoDB.
        clients: the same, as the worker sees them.
    """

    def __init__(
        self,
        name: str,
        config: Config,
        *,
        loop: SimLoop,
        clock: SimClock,
        draw: random.Random,
        links: dict[str, Link],
        clients: dict[str, Any],
        processor: type[RecordProcessor],
        letters: DeadLetters,
        history: History,
    ) -> None:
        self.name, self.clock, self.links = name, clock, links
        self._config, self._loop, self._clients, self._history = config, loop, clients, history
        self._processor, self._letters, self._ids = processor, letters, Ids(draw)
        self.stream: Stream | None = None
        self.outcome: Outcome | None = None
        self.is_crashed = self.is_paused = self.is_stopping = False
        self._most_bytes = 0
        self._context = copy_context()
        self._context.run(WORKER.set, name)
        self.task = loop.create_task(self._live(), name=name, context=self._context)

    @property
    def is_over(self) -> bool:
        return self.is_crashed or self.task.done()

    @property
    def is_free(self) -> bool:
        """Whether something can still be done to it."""
        return self.stream is not None and not self.is_over and not self.is_paused and not self.is_stopping

    def can(self, kind: str) -> bool:
        """Whether such a thing can happen to it now: most can also while it starts or stops."""
        match kind:
            case "crash" | "cut" | "jump":
                return not self.is_over
            case "pause" | "freeze":
                return not self.is_over and not self.is_paused
            case "kill":
                return self.stream is not None and not self.is_over and not self.is_paused
            case _:
                return self.is_free

    async def _live(self) -> None:
        config, clock, clients = self._config, self.clock, self._clients
        own = Clients(
            KinesisSource(clients["kinesis"], config.stream, clock=clock),
            DynamoLeaseStore(clients["dynamodb"], config.leases, clock=clock),
            dead_letters=self._letters,
        )
        stream = Stream(config, processor=self._processor, clients=own, clock=clock, ids=self._ids)
        try:
            async with stream:
                self.stream = stream
                self._note_up(stream)
                self.outcome = await stream.wait()
        except asyncio.CancelledError:
            self._history.note("cancelled", w=self.name)
            raise
        except Exception as error:  # judged by the checker
            self._history.note("failed", w=self.name, error=type(error).__name__, text=str(error))
        else:
            self._history.note(
                "stopped", w=self.name, let_go=self.outcome.has_let_go, unfinished=self.outcome.unfinished
            )

    def _note_up(self, stream: Stream) -> None:
        config = self._config
        stores_within_s = None
        if config.checkpoint.mode == "auto":
            stores_within_s = config.leases.heartbeat_s + (config.checkpoint.interval_s or 0.0)
        self._history.note(
            "up",
            w=self.name,
            owner=stream._worker.owner,
            stores_within_s=stores_within_s,
            ahead_records=config.delivery.max_ahead.records,
            concurrency=config.delivery.concurrency,
            retries=config.delivery.retries,
            batchers=[(each.max_records, each.concurrency) for each in self._processor.batchers.values()],
        )

    def note_rest(self) -> None:
        """Note what it still holds when everything has been read."""
        if self.stream is not None and self.is_free:
            accounts = self.stream._worker.budget._accounts
            held_bytes = sum(account.held_bytes + account._aside_bytes for account in accounts)
            self._history.note("rest", w=self.name, held_bytes=held_bytes)

    def note_memory(self) -> None:
        """Note what of its memory it uses, when that is more than ever."""
        if self.stream is not None:
            used_bytes = self.stream._worker.budget._used_bytes
            if used_bytes > self._most_bytes:
                self._most_bytes = used_bytes
                most_bytes = self._config.fetch.budget_bytes
                self._history.note("held", w=self.name, used_bytes=used_bytes, budget_bytes=most_bytes)

    # --- what can happen to it ---------------------------------------------------------------------------------

    def crash(self) -> None:
        """Never run anything of it again, wherever it is."""
        self.is_crashed = True
        self._loop.crash(self.name)
        for link in self.links.values():
            link.lose_some()
        self._history.note("crash", w=self.name)

    def cancel(self) -> None:
        """Cancel the task that holds the worker open, as Ctrl-C does."""
        self._history.note("cancel", w=self.name, grace_s=self._config.grace_s)
        self.is_stopping = True
        self.task.cancel()

    def stop(self, grace_s: float) -> None:
        assert self.stream is not None
        self._history.note("stop", w=self.name, grace_s=grace_s)
        self.is_stopping = True
        self._context.run(self.stream.stop, grace_s)

    def kill(self, share: float) -> None:
        """Cancel one actor of its tree, with all that is below it."""
        assert self.stream is not None
        cells = _below(self.stream._root._cell)
        if cells:
            cell = cells[int(share * len(cells))]
            self._history.note("kill", w=self.name, actor=cell.path)
            self._context.run(cell.kill, "the plan says so")  # what follows from it ends with the worker

    def pause(self, for_s: float, *, with_clock: bool) -> None:
        """Run nothing of it for a while: a stopped process, or with its clock a frozen machine."""
        self.is_paused = True
        self._history.note("freeze" if with_clock else "pause", w=self.name, for_s=for_s)
        self._loop.pause(self.name)
        self._loop.call_later(for_s, self._resume, for_s, with_clock)

    def _resume(self, for_s: float, with_clock: bool) -> None:
        self.is_paused = False
        if with_clock:
            self.clock.offset_s -= for_s
            self._loop.postpone(self.name, for_s)
        self._history.note("thaw" if with_clock else "resume", w=self.name)
        self._loop.resume(self.name)


def _below(cell: Any) -> list[Any]:
    """Return the actors below one that are not gone, outermost first."""
    found: list[Any] = []
    for inner in cell._below():
        found += [inner, *_below(inner)]
    return found
