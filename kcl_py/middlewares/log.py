"""A line in the log for each call of a processor, at debug."""

from kcl_py.batchers import Batched
from kcl_py.events import Events
from kcl_py.middleware import Middleware
from kcl_py.middlewares.outcome import word, word_of_record
from kcl_py.outcomes import BatchOutcome, RecordOutcome
from kcl_py.processor import OwnedShard
from kcl_py.records import Record, RecordBatch


class Log(Middleware):
    """Says how long each call took and what became of it; one for each shard."""

    def initialize(self, shard: OwnedShard) -> None:
        self._log = Events().bind(stream=shard.stream, shard_id=shard.shard_id, epoch=shard.epoch)

    def after_record(self, record: Record, outcome: RecordOutcome | BaseException, took_s: float) -> None:
        self._log.debug(
            "kcl_py.record.processed",
            sequence_number=record.sequence_number,
            outcome=word_of_record(outcome),
            took_s=round(took_s, 6),
        )

    def after_batch(self, batch: RecordBatch, outcome: BatchOutcome | BaseException, took_s: float) -> None:
        self._log.debug(
            "kcl_py.batch.processed",
            records=len(batch),
            lag_ms=batch.millis_behind_latest,
            outcome=word(outcome),
            took_s=round(took_s, 6),
        )

    def after_batched(self, batch: Batched, outcome: BatchOutcome | BaseException, took_s: float) -> None:
        self._log.debug(
            "kcl_py.batched.processed",
            batcher=batch.batcher,
            trigger=batch.trigger,
            records=len(batch),
            outcome=word(outcome),
            took_s=round(took_s, 6),
        )
