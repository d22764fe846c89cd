"""What happens with a record that is not tried again: it halts its shard, becomes a dead letter, or is passed over."""

from dataclasses import dataclass
from typing import cast, get_args

from kcl_py.config import Delivery as Options
from kcl_py.dead_letters.letter import DeadLetter
from kcl_py.delivery.hook import guarded
from kcl_py.delivery.retry import Backoff, brief
from kcl_py.errors import KclError, ProcessorError
from kcl_py.events import Events
from kcl_py.processor import Failure, FailurePolicy, RecordProcessor
from kcl_py.records import Record
from kcl_py.tree.worker import Worker


@dataclass(frozen=True, slots=True)
class Wait:
    """The record is not finished yet: try again after a pause."""

    pause_s: float


@dataclass(frozen=True, slots=True)
class Stop:
    """The record can be neither finished nor passed over: its shard halts."""

    reason: str


class GivingUp:
    """The failure policy of one ownership.

    Args:
        worker: gives options, time, chance and where dead letters go.
        shard_id: the shard.
        processor: hears of each record first.
        log: bound to the shard.
    """

    def __init__(self, worker: Worker, shard_id: str, processor: RecordProcessor, log: Events) -> None:
        self._worker, self._shard_id, self._processor, self._log = worker, shard_id, processor, log
        self._options: Options = worker.config.delivery
        self._letters: dict[Record, tuple[DeadLetter, Backoff]] = {}
        """Those that could not be stored yet."""

    async def settle(self, failure: Failure) -> Wait | Stop | None:
        """Do what is to be done; return None once the record counts as finished."""
        if failure.record in self._letters:
            return await self._store(failure)
        match await self._policy(failure):
            case "skip":
                self._log.error(
                    "kcl_py.record.skipped",
                    position=failure.record.sequence_number,
                    attempts=failure.attempts,
                    error=failure.reason,
                    size_bytes=len(failure.record.data),
                )
                return None
            case "dead_letter":
                return await self._store(failure)
            case _:
                return Stop(failure.reason)

    async def _policy(self, failure: Failure) -> FailurePolicy:
        try:
            chosen: object = await guarded("handle_failed", lambda: self._processor.handle_failed(failure))
        except Exception as error:
            self._log.error("kcl_py.processor.failed", hook="handle_failed", error=brief(error))
            return self._options.on_failure
        if chosen is None:
            return self._options.on_failure
        if isinstance(chosen, str) and chosen in get_args(FailurePolicy):
            return cast("FailurePolicy", chosen)
        self._log.error(
            "kcl_py.processor.failed",
            hook="handle_failed",
            error=f"expected halt, dead_letter, skip or None, found {type(chosen).__name__}",
        )
        return self._options.on_failure

    async def _store(self, failure: Failure) -> Wait | Stop | None:
        letters = self._worker.dead_letters
        if letters is None:
            return Stop(f"no delivery.dead_letter is set for what handle_failed sends there: {failure.reason}")
        letter, backoff = self._letters.get(failure.record) or self._letter(failure)
        try:
            await guarded(f"{type(letters).__name__}.store", lambda: letters.store(letter))
        except Exception as error:  # also of a destination of the user's own
            is_final = isinstance(error, KclError) and not (error.retryable or isinstance(error, ProcessorError))
            pause_s = None if is_final else round(backoff.next_s(), 3)
            self._letters[failure.record] = letter, backoff
            self._log.error(
                "kcl_py.record.dead_letter_failed",
                position=failure.record.sequence_number,
                retry_in_s=pause_s,
                error=brief(error),
            )
            return Stop(brief(error)) if pause_s is None else Wait(pause_s)
        self._letters.pop(failure.record, None)
        self._log.error(
            "kcl_py.record.dead_lettered",
            position=failure.record.sequence_number,
            attempts=failure.attempts,
            error=failure.reason,
        )
        return None

    def _letter(self, failure: Failure) -> tuple[DeadLetter, Backoff]:
        worker = self._worker
        letter = DeadLetter.of(
            failure,
            stream=worker.stream.name,
            shard_id=self._shard_id,
            failed_s=worker.clock.time(),
            app=worker.config.app,
            worker=worker.owner,
        )
        return letter, Backoff(self._options.backoff_s, self._options.backoff_max_s, worker.ids.jitter)
