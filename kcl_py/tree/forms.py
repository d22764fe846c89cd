"""The two ways in which records reach the user's code, in batches or one by one: an attempt, and its verdicts."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kcl_py.delivery import verdicts
from kcl_py.delivery.earlier import Earlier
from kcl_py.delivery.hook import guarded, limited
from kcl_py.delivery.lanes import Item, Lanes
from kcl_py.delivery.ledger import Ledger, Range
from kcl_py.delivery.rate import Weight
from kcl_py.delivery.verdicts import Trouble
from kcl_py.executors.hosted import Hosted
from kcl_py.outcomes import ToBatch, Verdict
from kcl_py.processor import Checkpointer, RecordProcessor, has_lanes
from kcl_py.records import MAYBE, Record, RecordBatch
from kcl_py.tree.worker import Worker

if TYPE_CHECKING:
    from kcl_py.tree.batches import Batches


class Attempt:
    """How one ownership of a shard calls the user's code.

    Args:
        worker: gives the clock and how long an attempt may take.
        processor: the instance of this ownership.
        ledger: hears what is handed over.
        earlier: what may have been handed over before.
        on_call: called before each attempt.
    """

    def __init__(
        self,
        worker: Worker,
        processor: RecordProcessor,
        ledger: Ledger,
        earlier: Earlier,
        on_call: Callable[[], object],
    ) -> None:
        self._clock, self._timeout_s = worker.clock, worker.config.delivery.attempt_timeout_s
        self._type = worker.processor.__qualname__
        self.processor, self.ledger, self._earlier, self._on_call = processor, ledger, earlier, on_call

    def told(self, record: Record, trouble: Trouble | None, index: int) -> Record:
        """Return the record as it is handed over: one that comes again says so."""
        if trouble is not None and index in trouble.reasons:
            return replace(record, redelivery=trouble.redelivery(index))
        return replace(record, redelivery=MAYBE) if self._earlier.may_have_had(record) else record

    def all_told(self, entry: Range, left: Sequence[int], trouble: Trouble | None) -> list[Record]:
        """Return records as they are handed over."""
        if len(left) == len(entry.records) and trouble is None and not self._earlier.may_have_had_any(entry.records):
            return entry.records
        return [self.told(entry.records[index], trouble, index) for index in left]

    async def call(self, hook: str, work: Callable[[], Awaitable[object]]) -> object:
        """Return what the user's code returns, or the exception that it ends with."""
        self._on_call()
        name = f"{self._type}.{hook}"
        try:
            if self._timeout_s is None:
                return await guarded(name, work)
            if isinstance(self.processor, Hosted):
                await guarded(name, self.processor.ready)
            return await limited(name, work, clock=self._clock, limit_s=self._timeout_s)
        except Exception as error:
            return error


def form_of(
    worker: Worker, shard_id: str, attempt: Attempt, checkpointer: Checkpointer, batches: "Batches"
) -> "BatchForm | RecordForm":
    """Return the way to consume that the worker's processor has chosen."""
    if has_lanes(worker.processor):
        return RecordForm(attempt, batches)
    return BatchForm(attempt, worker.stream.name, shard_id, checkpointer)


class BatchForm:
    """``process_records``: a batch at a time, and nothing later until it is settled."""

    name = "process_records"
    is_serial = True

    def __init__(self, attempt: Attempt, stream: str, shard_id: str, checkpointer: Checkpointer) -> None:
        self._attempt, self._stream, self._shard_id, self._checkpointer = attempt, stream, shard_id, checkpointer

    def add(self, lanes: Lanes, entry: Range) -> None:
        lanes.add_whole(entry)

    async def attempt(self, item: Item, trouble: Trouble | None) -> Mapping[int, Verdict]:
        """Hand over what is not finished of a batch, and return what has failed of it."""
        entry, _ = item
        left = entry.left() if trouble is not None or entry.next else range(len(entry.records))
        if not left:
            return verdicts.DONE  # the processor has checkpointed all of it before it failed
        handed_over = self._attempt.all_told(entry, left, trouble)
        self._attempt.ledger.deliver(entry, len(entry.records) - 1)
        batch = RecordBatch(
            self._stream,
            self._shard_id,
            list(handed_over),  # theirs to change
            entry.cut.lag.lag_ms,
            None if trouble is None else trouble.redelivery(),
        )
        processor, checkpointer = self._attempt.processor, self._checkpointer
        answer = await self._attempt.call(self.name, lambda: processor.process_records(batch, checkpointer))
        return verdicts.of_batch(answer, left, handed_over)

    def finish(self, item: Item, failed: Mapping[int, Verdict]) -> Mapping[int, Verdict]:
        """Note what of an attempt is done; return what is not: a part that failed may have been checkpointed."""
        entry, _ = item
        if not failed:
            self._attempt.ledger.finish(entry)
            return failed
        left = entry.left()
        for index in left:
            if index not in failed:
                self._attempt.ledger.finish_record(entry, index)
        return {index: failed[index] for index in left if index in failed}

    def failed(self, item: Item, error: Exception) -> Mapping[int, Verdict]:
        """What an attempt has failed with that somebody has ended."""
        return dict.fromkeys(item[0].left(), error)

    def left(self, item: Item) -> list[int]:
        """The records of an item that are not finished."""
        return item[0].left()

    def first(self, item: Item) -> Record:
        """The first record that an item holds and that is not finished."""
        return item[0].records[item[0].next]

    def weight(self, item: Item) -> Weight:
        """How many records and bytes an item is; what comes again counts whole."""
        return len(item[0].records), item[0].cut.size_bytes

    def due_ms(self, item: Item, due_ms: dict[str, int]) -> int | None:
        """When the whole of an item is due, of these dates by sequence number."""
        found = [due_ms.pop(record.sequence_number) for record in item[0].records if record.sequence_number in due_ms]
        return max(found, default=None)


class RecordForm:
    """``process``: record by record, those of different lanes at the same time."""

    name = "process"
    is_serial = False

    def __init__(self, attempt: Attempt, batches: "Batches") -> None:
        self._attempt, self._batches = attempt, batches
        self._given_away: dict[Item, tuple[Record, ToBatch]] = {}

    def add(self, lanes: Lanes, entry: Range) -> None:
        lanes.add(entry)

    async def attempt(self, item: Item, trouble: Trouble | None) -> Mapping[int, Verdict]:
        """Hand over a record, and return whether it has failed."""
        entry, index = item
        record = self._attempt.told(entry.records[index], trouble, index)
        self._attempt.ledger.deliver(entry, index)
        answer = await self._attempt.call(self.name, lambda: self._attempt.processor.process(record))
        if not isinstance(answer, ToBatch):
            return verdicts.of_record(answer, index)
        if fault := self._batches.fault(answer):
            return {index: fault}
        self._given_away[item] = record, answer
        return verdicts.DONE

    def finish(self, item: Item, failed: Mapping[int, Verdict]) -> Mapping[int, Verdict]:
        """Note what of an attempt is done, or is a batcher's from now on; return what is not."""
        if item[0].is_finished(item[1]):
            return verdicts.DONE  # the processor has checkpointed it before it failed
        if given_away := self._given_away.pop(item, None):
            self._batches.put(item, *given_away)
        elif not failed:
            self._attempt.ledger.finish_record(*item)
        return failed

    def failed(self, item: Item, error: Exception) -> Mapping[int, Verdict]:
        """What an attempt has failed with that somebody has ended."""
        return {item[1]: error}

    def left(self, item: Item) -> list[int]:
        """The records of an item that are not finished."""
        return [] if item[0].is_finished(item[1]) else [item[1]]

    def first(self, item: Item) -> Record:
        """The record that an item is."""
        return item[0].records[item[1]]

    def weight(self, item: Item) -> Weight:
        """How many records and bytes an item is."""
        return 1, len(self.first(item).data)

    def due_ms(self, item: Item, due_ms: dict[str, int]) -> int | None:
        """When an item is due, of these dates by sequence number."""
        return due_ms.pop(self.first(item).sequence_number, None)
