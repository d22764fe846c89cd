"""The checkpointer that hooks receive: says what is finished, and has the Lease store it."""

from collections.abc import Sequence

from anyio.lowlevel import checkpoint

from actors import Ref
from actors.clock import move_on_after
from kcl_py.delivery.ledger import Ledger
from kcl_py.effects import Effect
from kcl_py.errors import CheckpointFailedError, EffectsRefusedError, LeaseLostError, PositionError
from kcl_py.leases import transactions
from kcl_py.leases.commits import STATE_BYTES
from kcl_py.leases.fence import Fence
from kcl_py.leases.row import Pending
from kcl_py.processor import is_in_order
from kcl_py.records import Record, RecordBatch, SequenceNumber
from kcl_py.tree.asking import Answer, Checkpoint, CheckpointOutcome, Prepare, Transact
from kcl_py.tree.worker import Worker

IN_A_FAILOVER = 2
"""How many checkpoints can time out within F: fewer, and the lease would be lost before one has failed."""


class Prepared:
    """A ``PreparedCheckpoint``; without a position there is nothing to commit."""

    def __init__(self, checkpointer: "ShardCheckpointer", position: SequenceNumber | None) -> None:
        self._checkpointer, self._position = checkpointer, position

    async def commit(self) -> None:
        if self._position is None:
            await checkpoint()
        else:
            await self._checkpointer.commit(self._position)


class ShardCheckpointer:
    """The checkpointer of one ownership.

    Args:
        worker: gives the clock and F, the failover time.
        shard_id: the shard, to recognise batches of another one.
        ledger: what was handed over and what is finished.
        fence: whether this worker still holds the lease.
        lease: the only writer of the row.
    """

    def __init__(
        self,
        worker: Worker,
        shard_id: str,
        ledger: Ledger,
        *,
        fence: Fence,
        lease: Ref,
    ) -> None:
        self._clock, self._timeout_s = worker.clock, worker.config.leases.failover_s / IN_A_FAILOVER
        self._shard_id, self._ledger = shard_id, ledger
        self._may_assert = is_in_order(worker.processor, worker.config.delivery.ordering)
        """Whether the processor can say that records are finished which it has in hand."""
        self._fence, self._lease = fence, lease
        self._is_manual = worker.config.checkpoint.mode == "manual"  # then no more is stored than is asked for
        self._fresh = worker.ids.token
        self._stored: SequenceNumber | None = None  # only the Lease knows whether the ledger's beginning is
        self._given_up: Transact | None = None
        """A transaction of which nobody has heard yet what became."""

    async def checkpoint(self, at: Record | RecordBatch | None = None) -> None:
        """Store the end of the finished records, or that everything up to ``at`` is finished."""
        token = self._token()
        position = None if at is None else self._position_of(at)
        if position is not None:
            self._ledger.finish_to(position)
        await self._store(token, position)

    async def _store(self, token: str, asked: SequenceNumber | None) -> None:
        """Store what is asked for, or how far all is finished."""
        position = asked if asked is not None and self._is_manual else self._ledger.prefix
        if await self._is_stored(position) or position is None:
            return
        await self._ask(Checkpoint(token, position, Answer()), f"store checkpoint {position}")
        self._stored = position

    async def prepare(self, at: Record | RecordBatch | None = None, *, state: bytes | None = None) -> Prepared:
        """Store the end of the finished records, or ``at``, as a checkpoint that does not count yet."""
        token = self._token()
        if state is not None and not isinstance(state, bytes):
            raise TypeError(
                f"cannot prepare a checkpoint of {self._shard_id!r}: expected its state in bytes, "
                f"found {type(state).__name__}; encode it"
            )
        if state is not None and len(state) > STATE_BYTES:
            raise ValueError(
                f"cannot prepare a checkpoint of {self._shard_id!r}: expected at most {STATE_BYTES} bytes of state, "
                f"found {len(state)}; keep it elsewhere, and its place here"
            )
        position = self._ledger.prefix if at is None else self._position_of(at)
        if await self._is_stored(position) or position is None:
            return Prepared(self, None)
        asked = Prepare(token, Pending(position, state), Answer())
        await self._ask(asked, f"prepare checkpoint {position}")
        return Prepared(self, position)

    async def commit(self, position: SequenceNumber) -> None:
        """Store a position that was prepared."""
        token = self._token()
        self._ledger.finish_to(position)
        await self._store(token, position)

    async def once(self, effects: Sequence[Effect], *, at: Record | RecordBatch) -> bool:
        """Apply effects and store that everything up to ``at`` is finished, or neither; True if this call did."""
        token, items = self._token(), transactions.wire(effects, most=transactions.MOST - 1)
        position = self._position_of(at)
        await self._settle_given_up(position)
        if await self._is_stored(position):
            return False
        asked = Transact(token, position, items, self._fresh(), Answer())
        self._lease.tell(asked)
        outcome = await self._outcome(asked)
        if outcome is None:
            raise self._failed(f"store checkpoint {position} with {len(items)} effects")
        self._ledger.finish_to(position)
        self._stored = position
        return outcome is CheckpointOutcome.APPLIED

    async def _outcome(self, asked: Transact) -> CheckpointOutcome | None:
        """Wait until it is sure what became of a transaction; None if it has had no effect in time.

        At the latest, that is when the lease is lost.
        """
        answer, self._given_up = asked.answer, asked
        try:
            with move_on_after(self._clock, self._timeout_s):
                await answer.arrived.wait()
            answer.is_withdrawn = True
            with move_on_after(self._clock, self._timeout_s * IN_A_FAILOVER):
                await answer.arrived.wait()
        finally:
            answer.is_withdrawn = True
        self._given_up = None
        match answer.outcome:
            case CheckpointOutcome.REFUSED if answer.error is not None:
                raise answer.error
            case CheckpointOutcome.WITHDRAWN:
                return None
            case CheckpointOutcome.STORED | CheckpointOutcome.APPLIED as outcome:
                return outcome
        raise self._lost()

    async def _settle_given_up(self, position: SequenceNumber) -> None:
        """Wait for what became of a transaction whose caller was cancelled: it may have finished part of a batch."""
        before = self._given_up
        if before is None:
            return
        try:
            outcome = await self._outcome(before)
        except EffectsRefusedError:
            return  # told nobody, and nothing was written
        if outcome is None:
            return
        self._ledger.finish_to(before.position)
        self._stored = before.position
        if position > before.position:
            raise CheckpointFailedError(
                f"cannot store checkpoint {position} of {self._shard_id!r} with these effects: expected the checkpoint "
                f"to be where the batch begins, found that an attempt which was cut off has stored {before.position} "
                "with its own; raise, and what is left of the batch comes again"
            )

    async def _is_stored(self, position: SequenceNumber | None) -> bool:
        if position is not None and (self._stored is None or position > self._stored):
            return False
        await checkpoint()  # a loop around this must not keep the event loop from everybody else
        return True

    async def _ask(self, asked: Checkpoint | Prepare, what: str) -> None:
        """Have the Lease write, and wait until it has."""
        self._lease.tell(asked)
        with move_on_after(self._clock, self._timeout_s):
            await asked.answer.arrived.wait()
        match asked.answer.outcome:
            case CheckpointOutcome.STORED:
                return
            case CheckpointOutcome.LOST:
                raise self._lost()
        raise self._failed(what)

    def _failed(self, what: str) -> CheckpointFailedError:
        return CheckpointFailedError(
            f"cannot {what} of {self._shard_id!r}: expected an acknowledgement within "
            f"{self._timeout_s:g} s, found none; the lease is still held, calling again may help"
        )

    def _token(self) -> str:
        """Return the token of this ownership, while it lasts."""
        tenure = self._fence.tenure
        if tenure is None or self._fence.is_over(self._clock.monotonic()):
            raise self._lost()
        return tenure.token

    def _position_of(self, at: Record | RecordBatch) -> SequenceNumber:
        if isinstance(at, RecordBatch):
            if at.shard_id != self._shard_id:
                raise PositionError(
                    f"cannot checkpoint a batch of {at.shard_id!r}: expected one of {self._shard_id!r}; "
                    "use the checkpointer that came with it"
                )
            position = at.last
        elif isinstance(at, Record):
            position = at.position
        else:
            raise PositionError(
                f"cannot checkpoint {type(at).__name__} of {self._shard_id!r}: expected a record or batch that was "
                "handed over, or nothing"
            )
        delivered = self._ledger.delivered
        if delivered is None or position > delivered:
            raise PositionError(
                f"cannot checkpoint {position} of {self._shard_id!r}: expected a position that was handed over, "
                f"found one beyond {delivered}"
            )
        prefix = self._ledger.prefix
        if prefix is not None and position <= prefix:
            return position
        if not self._may_assert:
            raise PositionError(
                f"cannot checkpoint {position} of {self._shard_id!r}: expected a position that is finished, up to "
                f"{prefix}, found a later one; a record of process() is finished when that returns"
            )
        if not self._ledger.has(position):
            raise PositionError(
                f"cannot checkpoint {position} of {self._shard_id!r}: expected a record of the batch in hand, found "
                "none at that position; it may be another shard's"
            )
        return position

    def _lost(self) -> LeaseLostError:
        return LeaseLostError(
            f"cannot checkpoint {self._shard_id!r}: expected to hold its lease, found the ownership over; "
            "another worker continues from the stored checkpoint"
        )
