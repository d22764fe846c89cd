"""What happens with a record that is not tried again: it halts its shard, becomes a dead letter, or is passed over."""

from typing import Any, get_args

from kcl_py.config import Delivery as Options
from kcl_py.dead_letters.letter import DeadLetter
from kcl_py.delivery.retry import Backoff, brief
from kcl_py.errors import KclError
from kcl_py.processor import Failure, FailurePolicy, RecordProcessor
from kcl_py.tree.worker import Worker


class GivingUp:
    """The failure policy of one ownership.

    Args:
        worker: gives options, time, chance and where dead letters go.
        shard_id: the shard.
        processor: hears of each record first.
        log: bound to the shard.
    """

    def __init__(self, worker: Worker, shard_id: str, processor: RecordProcessor, log: Any) -> None:
        self._worker, self._shard_id, self._processor, self._log = worker, shard_id, processor, log
        self._options: Options = worker.config.delivery

    async def settle(self, failure: Failure) -> str | None:
        """Do what is to be done; return None once the record counts as finished, else why its shard halts."""
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
                return failure.reason

    async def _policy(self, failure: Failure) -> FailurePolicy:
        try:
            chosen = await self._processor.handle_failed(failure)
        except (Exception, SystemExit) as error:
            self._log.error("kcl_py.processor.failed", hook="handle_failed", error=brief(error))
            return self._options.on_failure
        if chosen is None:
            return self._options.on_failure
        if chosen in get_args(FailurePolicy):
            return chosen
        self._log.error(
            "kcl_py.processor.failed",
            hook="handle_failed",
            error=f"expected halt, dead_letter, skip or None, found {type(chosen).__name__}",
        )
        return self._options.on_failure

    async def _store(self, failure: Failure) -> str | None:
        """Store the dead letter, however long that takes to succeed: only then the record is finished.

        Returns why the shard halts where no other try can help.
        """
        worker, options, letters = self._worker, self._options, self._worker.dead_letters
        if letters is None:
            return f"no delivery.dead_letter is set for what handle_failed sends there: {failure.reason}"
        letter = DeadLetter.of(
            failure,
            stream=worker.stream.name,
            shard_id=self._shard_id,
            failed_s=worker.clock.time(),
            app=worker.config.app,
            worker=worker.owner,
        )
        backoff = Backoff(options.backoff_s, options.backoff_max_s, worker.ids.jitter)
        while True:
            try:
                await letters.store(letter)
            except Exception as error:  # also of a destination of the user's own
                is_final = isinstance(error, KclError) and not error.retryable
                pause_s = None if is_final else backoff.next_s()
                self._log.error(
                    "kcl_py.record.dead_letter_failed",
                    position=failure.record.sequence_number,
                    retry_in_s=pause_s,
                    error=brief(error),
                )
                if pause_s is None:
                    return brief(error)
                await worker.clock.sleep(pause_s)
            else:
                self._log.error(
                    "kcl_py.record.dead_lettered",
                    position=failure.record.sequence_number,
                    attempts=failure.attempts,
                    error=failure.reason,
                )
                return None
