"""The class a user writes, and what its hooks receive.

One instance serves one ownership of one shard, from the lease taken to the lease given up, over retries too. Its
hooks are called one after the other, never two at a time but for ``process``. One that is ``async def`` runs on the
worker's event loop: if it blocks the loop, it stops the heartbeats of every shard. One that is ``def`` runs in a thread
or in a child process, as ``delivery.executor`` says. To return is to say that the work is done.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

from kcl_py.batchers import Batched, Batcher
from kcl_py.effects import Effect
from kcl_py.middleware import Listed
from kcl_py.outcomes import BatchOutcome, RecordOutcome
from kcl_py.records import Identity, Record, RecordBatch, SequenceNumber

if TYPE_CHECKING:
    from kcl_py.tables import Tables


@dataclass(frozen=True, slots=True)
class OwnedShard:
    """The shard that a processor instance was made for."""

    stream: str
    shard_id: str
    epoch: int
    """Grows with each ownership of the shard: fences outside effects of an owner that is no more."""
    position: SequenceNumber | None
    """The checkpoint after which it begins; None if there is none yet."""
    parents: tuple[str, ...]
    """Shards that this one was split or merged from, as far as they are known; none, one or two."""
    checkpoint: str = "TRIM_HORIZON"
    """As the lease table had it: ``TRIM_HORIZON``, ``LATEST`` or ``AT_TIMESTAMP`` if ``position`` is None."""
    pending: SequenceNumber | None = None
    """A checkpoint that a processor before this one has prepared and not committed."""
    pending_state: bytes | None = None
    """What it has stored with that."""
    tables: "Tables | None" = field(default=None, repr=False, compare=False)
    """The DynamoDB that holds the leases, for ``Once`` and ``Dedup``."""
    checkpointer: "Checkpointer | None" = field(default=None, repr=False, compare=False)
    """Set where ``process`` gets one record after the other: with ``delivery.ordering: shard``, and no batchers."""

    def identity(self, record: Record) -> Identity:
        """Return what tells a record of this shard from all others, for ever."""
        return record.identity(self.stream, self.shard_id)


class PreparedCheckpoint(Protocol):
    """A checkpoint that is stored, but does not count yet."""

    async def commit(self) -> None:
        """Make it count; nothing to do if the stored checkpoint has come as far. Raises as ``checkpoint`` does."""
        ...


class Checkpointer(Protocol):
    """Stores how far a shard is finished. Given to the hooks that may move the checkpoint."""

    async def checkpoint(self, at: Record | RecordBatch | None = None) -> None:
        """Store that everything up to and including ``at`` is finished; returns once it is stored.

        Args:
            at: a record or batch that this processor was handed; older than the stored checkpoint means nothing to
                do. None: all finished records, which inside ``process_records`` leaves out the batch in hand.

        Raises:
            LeaseLostError: the shard is another worker's now, or may be; stop working on it.
            PositionError: ``at`` is nothing that was handed over: another shard's, say, or still to come.
            CheckpointFailedError: it could not be stored in time; calling again may help.
        """
        ...

    async def prepare(
        self, at: Record | RecordBatch | None = None, *, state: bytes | None = None
    ) -> PreparedCheckpoint:
        """Store a checkpoint that counts only when it is committed; returns once it is stored.

        Until then the shard begins before it again, and ``OwnedShard`` shows it, with its state, to the processor that
        begins there. It replaces one that was prepared before; any checkpoint that you store ends it.

        Args:
            at: as for ``checkpoint``; nothing is stored where the stored checkpoint has come as far.
            state: what is to be known of it, at most 1,024 bytes.

        Raises:
            ValueError: the state is longer.
            TypeError: it is no bytes.
            LeaseLostError, PositionError, CheckpointFailedError: as for ``checkpoint``.
        """
        ...

    async def once(self, effects: Sequence[Effect], *, at: Record | RecordBatch) -> bool:
        """Apply effects in DynamoDB and store that everything up to ``at`` is finished: in one transaction, or neither.

        The tables are in the account and region of the lease table.

        Args:
            effects: at most 99, of all records between the stored checkpoint and ``at``; on other items than one
                another's.
            at: a record or batch that this processor was handed.

        Returns:
            Whether this call has applied them. False: the stored checkpoint has come as far already, so nothing was
            applied.

        Raises:
            EffectsRefusedError: DynamoDB does not take them: a condition of theirs does not hold, say. Neither they nor
                the checkpoint are written, and the lease is still held.
            LeaseLostError: the shard is another worker's now, or may be. Either both are written, or neither.
            PositionError: as for ``checkpoint``.
            CheckpointFailedError: it could not be done in time, and is not; calling again may help. Or an attempt that
                was cut off has applied a part of it since: raise, the rest comes again.
        """
        ...


FailurePolicy = Literal["halt", "dead_letter", "skip"]
"""What happens with a record that is not tried again."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A record that is not tried again."""

    record: Record
    reason: str
    """What its last attempt ended with: the class and text of the exception, or what the processor said."""
    attempts: int
    first_failed_s: float
    """When the first attempt failed, in Unix seconds."""
    is_rejected: bool = False
    """Whether the processor has said ``Reject``; else its attempts are used up."""


class RecordProcessor:
    """What happens with the records of a shard; subclass it and override ``process_records`` or ``process``.

    Needs a constructor without arguments. Hooks are ``async def``; with ``delivery.executor`` they may be ``def``, and
    then receive a ``kcl_py.executors.checkpointer.SyncCheckpointer``.
    """

    batchers: ClassVar[Mapping[str, Batcher]] = {}
    """Where ``process`` can give records to, by name; see ``ToBatch``."""

    middlewares: ClassVar[Sequence[Listed]] = ()
    """What hears of each call of a hook that gets records; see ``kcl_py.Middleware``."""

    async def initialize(self, shard: OwnedShard) -> None:
        """Prepare for ``shard``: open files, load state.

        Called once per ownership, before any record. If it raises, it is called again with backoff, up to
        ``delivery.retries`` times, then the shard halts.
        """

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> BatchOutcome:
        """Process ``batch``: 1 to ``delivery.batch.max_records`` records of the shard, in sequence order.

        Called for each batch in order, and for the next one only when this one is settled. Returning None means that
        all its records are finished and may be checkpointed. A mapping names those that are not, each with an
        exception, ``Retry`` or ``Reject``; the others are finished. What is not finished comes again with
        ``redelivery`` set, with backoff, up to ``delivery.retries`` times; then ``delivery.on_failure`` says what
        happens. To raise is to say that of all of them.
        """
        raise NotImplementedError

    async def process(self, record: Record) -> RecordOutcome:
        """Process one record; override this instead of ``process_records`` to have many in work at a time.

        Called for records of the same partition key one after the other, in sequence order; for others at the same
        time, up to ``delivery.concurrency`` in the whole worker. ``delivery.ordering`` changes that. Returning None
        means that the record is finished; ``ToBatch``, that it is once ``handle_batch`` has returned for it. If it
        raises or returns ``Retry``, the record comes again with ``record.redelivery`` set, and those behind it wait, as
        the ordering says; after ``Reject``, or when it has been tried ``delivery.retries`` times more,
        ``delivery.on_failure`` says what happens.
        """
        raise NotImplementedError

    async def handle_batch(self, batch: Batched) -> BatchOutcome:
        """Process records of one of ``batchers`` together, that ``process`` has given to it with ``ToBatch``.

        Those of one key come in order, a batch after the other. What is returned or raised means for each record the
        same as in ``process_records``; what is not finished comes again, together, with its attempts counted anew.
        """
        raise NotImplementedError

    async def handle_failed(self, failure: Failure) -> FailurePolicy | None:
        """Hear of a record that is not tried again, before anything happens to it.

        Returns what is to happen to this one; None: what ``delivery.on_failure`` says. If it raises, that is logged, no
        more.
        """
        return None

    async def lease_lost(self) -> None:
        """Let go: another worker owns the shard now, or may. Nothing can be checkpointed any more.

        Called at most once, as the last hook of the ownership. If it raises, that is logged, no more.
        """

    async def shard_ended(self, checkpointer: Checkpointer) -> None:
        """Finish with a shard whose last record has been processed; its children follow.

        Called once per ownership, after the last batch. Needs no call of ``checkpointer``: returning completes the
        shard. If it raises, it is called again with backoff, up to ``delivery.retries`` times, then the shard halts.
        """

    async def shutdown_requested(self, checkpointer: Checkpointer) -> None:
        """Wrap up: the worker stops or hands the shard over, and the lease is still held.

        Called at most once, after the running batch, as the last hook of the ownership. With ``checkpoint.mode: auto``
        all finished records are checkpointed afterwards; with ``manual`` this is the last chance to do so. If it
        raises, that is logged and stopping goes on.
        """


FORMS = ("process_records", "process")
"""The two ways to consume; a processor has one of them."""
HOOKS = ("initialize", *FORMS, "handle_batch", "handle_failed", "lease_lost", "shard_ended", "shutdown_requested")


Executor = Literal["thread", "process"]
"""Where hooks run that are ``def``."""


class Records(RecordProcessor):
    """Stands where a processor is named, and says that ``Stream.records`` is what takes the records.

    A worker without such a loop, as ``kcl run`` is, refuses it.
    """


def has_lanes(processor: type[RecordProcessor]) -> bool:
    """Tell whether a processor takes records one by one, rather than in batches."""
    return processor.process is not RecordProcessor.process


def is_in_order(processor: type[RecordProcessor], ordering: str) -> bool:
    """Tell whether a processor that has a record in hand has finished all before it."""
    return not has_lanes(processor) or (ordering == "shard" and not processor.batchers)


def preferred_executor(processor: type[RecordProcessor]) -> Executor | None:
    """Return where hooks run if ``delivery.executor`` says nothing."""
    return getattr(processor, "preferred_executor", None)
