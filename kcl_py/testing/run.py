"""What one worker did in a test, from its start to its end."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from kcl_py.batchers import Batched
from kcl_py.delivery import verdicts
from kcl_py.delivery.retry import brief
from kcl_py.errors import ProcessorError
from kcl_py.leases.row import SENTINELS, SHARD_END, TEXT_CHARACTERS
from kcl_py.outcomes import BatchOutcome, RecordOutcome
from kcl_py.processor import RecordProcessor
from kcl_py.records import Record, RecordBatch, SequenceNumber
from kcl_py.testing.entry import as_payloads
from kcl_py.testing.stream import FakeStream
from kcl_py.tree.stream import Outcome

P = TypeVar("P", bound=RecordProcessor)


@dataclass(slots=True)
class HookCall(Generic[P]):
    """One call of a hook."""

    hook: str
    """Its name: ``initialize``, ``process_records``, ``process``, ``handle_batch``, ``handle_failed``, ``lease_lost``,
    ``shard_ended`` or ``shutdown_requested``."""
    shard_id: str
    processor: P | None
    """The instance whose hook it is; None if its constructor raised, which is called for ``initialize``."""
    batch: RecordBatch | None = None
    """What ``process_records`` was given."""
    record: Record | None = None
    """What ``process`` was given, or what ``handle_failed`` was told of."""
    batched: Batched | None = None
    """What ``handle_batch`` was given: records that had been handed over before, to ``process``."""
    outcome: RecordOutcome | BatchOutcome = None
    """What ``process``, ``process_records`` or ``handle_batch`` returned."""
    has_returned: bool = False
    """Whether it returned: it is finished. Also False if the worker crashed right after it."""
    error: BaseException | None = None
    """What it raised, or was cut off with."""

    @property
    def is_running(self) -> bool:
        """Whether it has neither returned nor raised, or the worker crashed at its end."""
        return not self.has_returned and self.error is None

    @property
    def records(self) -> Sequence[Record]:
        """The records that were handed over with it."""
        if self.hook == "process" and self.record is not None:
            return (self.record,)
        return tuple(self.batch or ())

    @property
    def finished(self) -> Sequence[Record]:
        """The records that it has finished, by what it returned."""
        if not self.has_returned:
            return ()
        if self.hook == "process":
            return () if verdicts.of_record(self.outcome, 0) else self.records
        given = self.records if self.batched is None else [record for record, _ in self.batched]
        failed = verdicts.of_batch(self.outcome, range(len(given)), given)
        return tuple(record for index, record in enumerate(given) if index not in failed)


@dataclass(frozen=True, slots=True)
class Run(Generic[P]):
    """What ``run_processor`` saw. Lists of payloads are ordered by time, or by place where they say so."""

    stream: FakeStream
    """The stream and its leases, as the worker left them; hand it to the next run."""
    calls: tuple[HookCall[P], ...]
    """Every call of a hook, in the order in which they began."""
    records: Mapping[str, Sequence[Record]]
    """All records of the stream, by shard, in order."""
    checkpoints: Mapping[str, str]
    """What is stored for each shard: a sequence number in digits, ``TRIM_HORIZON`` or ``SHARD_END``."""
    halted: Mapping[str, str]
    """The shards that stand still because a hook failed to the last retry, each with the sequence number of the first
    record that is not finished, or the checkpoint where no record is concerned."""
    outcome: Outcome | None
    """How the worker ended; None if it crashed or failed."""
    failure: Exception | None = None
    """What the worker as a whole failed with."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why the shards that stand still do, as their rows say."""

    @property
    def hooks(self) -> list[str]:
        """The names of the hooks that were called, in order."""
        return [call.hook for call in self.calls]

    @property
    def processors(self) -> list[P]:
        """The instances that were made, in order: one for each ownership of a shard."""
        made = {id(call.processor): call.processor for call in self.calls if call.processor is not None}
        return list(made.values())

    @property
    def batches(self) -> list[RecordBatch]:
        """What ``process_records`` was given, in order, repetitions included."""
        return [call.batch for call in self.calls if call.batch is not None]

    @property
    def delivered(self) -> list[bytes]:
        """The payloads that were handed over, in order, repetitions included."""
        return _payloads(record for call in self.calls for record in call.records)

    @property
    def redelivered(self) -> list[bytes]:
        """The payloads that were handed over more often than they are on the stream, each once."""
        surplus = Counter(self.delivered) - Counter(_payloads(self._all()))
        return list(surplus)

    @property
    def finished(self) -> list[bytes]:
        """The payloads that a hook has finished, by what it returned, in order."""
        return _payloads(record for call in self.calls for record in call.finished)

    @property
    def acknowledged(self) -> list[bytes]:
        """The payloads that the stored checkpoints cover, in the order of shards: they never come again."""
        return _payloads(record for shard_id, record in self._placed() if self._is_covered(shard_id, record))

    @property
    def unacknowledged(self) -> list[bytes]:
        """The payloads on the stream that no stored checkpoint covers, in the order of shards: they come (again)."""
        return _payloads(record for shard_id, record in self._placed() if not self._is_covered(shard_id, record))

    @property
    def error(self) -> BaseException | None:
        """What the worker failed with, or else what halted a shard; None if all went well.

        That is what a hook has raised, or a ``ProcessorError`` that says what it has returned.
        """
        halts = [self._halt(shard_id, reason) for shard_id, reason in self.reasons.items()]
        return self.failure or next(iter(halts), None)

    def _halt(self, shard_id: str, reason: str) -> BaseException:
        raised = [call.error for call in self.calls if call.shard_id == shard_id and isinstance(call.error, Exception)]
        same = [error for error in raised if brief(error)[:TEXT_CHARACTERS] == reason]
        at = self.halted[shard_id]
        return same[-1] if same else ProcessorError(f"cannot pass over {at} of {shard_id}, which is not done: {reason}")

    def of(self, shard_id: str) -> "Run[P]":
        """Return what concerns one shard. Raises KeyError if there is no such shard."""
        return replace(
            self,
            calls=tuple(call for call in self.calls if call.shard_id == shard_id),
            records={shard_id: self.records[shard_id]},
            checkpoints={key: value for key, value in self.checkpoints.items() if key == shard_id},
            halted={key: value for key, value in self.halted.items() if key == shard_id},
            reasons={key: value for key, value in self.reasons.items() if key == shard_id},
        )

    def assert_nothing_lost(self, seen: Iterable[str | bytes]) -> None:
        """Check that all that is acknowledged is in ``seen``: it never comes again, so it has to be kept by now.

        Args:
            seen: the payloads that have reached their goal, such as a database, in any order, as text or bytes.

        Raises:
            AssertionError: some have not; they are named by shard and sequence number.
            TypeError: ``seen`` are no payloads, but records or rows.
        """
        kept = set(as_payloads(seen, "check what is lost"))
        covered = [(key, each) for key, each in self._placed() if self._is_covered(key, each)]
        lost = [f"{key}/{each.sequence_number}" for key, each in covered if each.data not in kept]
        if lost:
            raise AssertionError(f"{len(lost)} of {len(covered)} acknowledged records are lost: {', '.join(lost)}")

    def assert_key_order(self, seen: Iterable[str | bytes]) -> None:
        """Check that the records of each partition key came in the order of the stream; repetitions do not count.

        Args:
            seen: payloads in the order in which they reached their goal; what is not on the stream is passed over.
                Text or bytes.

        Raises:
            AssertionError: two of a key came in another order; they are named by shard and sequence number.
            TypeError: ``seen`` are no payloads, but records or rows.
        """
        payloads = as_payloads(seen, "check the order of keys")
        places = {each.data: (index, key, each) for index, (key, each) in reversed(list(enumerate(self._placed())))}
        newest: dict[str, tuple[int, str]] = {}
        for index, shard_id, each in (places[data] for data in dict.fromkeys(payloads) if data in places):
            name = f"{shard_id}/{each.sequence_number}"
            before = newest.get(each.partition_key, (-1, ""))
            if index < before[0]:
                raise AssertionError(f"two records of one partition key came out of order: {before[1]} before {name}")
            newest[each.partition_key] = (index, name)

    def _all(self) -> list[Record]:
        return [record for _, record in self._placed()]

    def _placed(self) -> list[tuple[str, Record]]:
        return [(shard_id, record) for shard_id, records in self.records.items() for record in records]

    def _is_covered(self, shard_id: str, record: Record) -> bool:
        return covers(self.checkpoints.get(shard_id), record)


def covers(checkpoint: str | None, record: Record) -> bool:
    """Tell whether a stored checkpoint, if there is one, says that ``record`` is finished."""
    if checkpoint is None or checkpoint in SENTINELS:
        return checkpoint == SHARD_END
    return record.position <= SequenceNumber(int(checkpoint), record.sub_sequence_number)


def _payloads(records: Iterable[Record]) -> list[bytes]:
    return [record.data for record in records]
