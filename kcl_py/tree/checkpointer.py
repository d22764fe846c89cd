"""The checkpointer that hooks receive: says what is finished, and has the Lease store it."""

from anyio.lowlevel import checkpoint

from actors import Ref
from actors.clock import move_on_after
from kcl_py.delivery.ledger import Ledger
from kcl_py.errors import CheckpointFailedError, LeaseLostError, PositionError
from kcl_py.leases.fence import Fence
from kcl_py.records import Record, RecordBatch, SequenceNumber
from kcl_py.tree.messages import Answer, Checkpoint, CheckpointOutcome
from kcl_py.tree.worker import Worker

IN_A_FAILOVER = 2
"""How many checkpoints can time out within F: fewer, and the lease would be lost before one has failed."""


class ShardCheckpointer:
    """The checkpointer of one ownership.

    Args:
        worker: gives the clock and F, the failover time.
        shard_id: the shard, to recognise batches of another one.
        ledger: what was handed over and what is finished.
        may_assert: whether the processor can say that records are finished which it has in hand.
        fence: whether this worker still holds the lease.
        lease: the only writer of the row.
    """

    def __init__(
        self,
        worker: Worker,
        shard_id: str,
        ledger: Ledger,
        *,
        may_assert: bool,
        fence: Fence,
        lease: Ref,
    ) -> None:
        self._clock, self._timeout_s = worker.clock, worker.config.leases.failover_s / IN_A_FAILOVER
        self._shard_id, self._ledger, self._may_assert = shard_id, ledger, may_assert
        self._fence, self._lease = fence, lease
        self._is_manual = worker.config.checkpoint.mode == "manual"  # then no more is stored than is asked for
        self._stored: SequenceNumber | None = None  # only the Lease knows whether the ledger's beginning is

    async def checkpoint(self, at: Record | RecordBatch | None = None) -> None:
        """Store the end of the finished records, or that everything up to ``at`` is finished."""
        tenure = self._fence.tenure
        if tenure is None or self._fence.is_over(self._clock.monotonic()):
            raise self._lost()
        position = None if at is None else self._position_of(at)
        if position is not None:
            self._ledger.finish_to(position)
        if position is None or not self._is_manual:
            position = self._ledger.prefix
        if position is None or (self._stored is not None and position <= self._stored):
            await checkpoint()  # a loop around this must not keep the event loop from everybody else
            return
        answer = Answer()
        self._lease.tell(Checkpoint(tenure.token, position, answer))
        with move_on_after(self._clock, self._timeout_s):
            await answer.arrived.wait()
        match answer.outcome:
            case CheckpointOutcome.STORED:
                self._stored = position
            case CheckpointOutcome.LOST:
                raise self._lost()
            case _:
                raise CheckpointFailedError(
                    f"cannot store checkpoint {position} of {self._shard_id!r}: expected an acknowledgement within "
                    f"{self._timeout_s:g} s, found none; the lease is still held, calling again may help"
                )

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
