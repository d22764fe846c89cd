"""What comes after an attempt that has failed: another one after a pause, or the failure policy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from kcl_py.delivery import verdicts
from kcl_py.delivery.verdicts import Trouble
from kcl_py.events import Events
from kcl_py.leases.fence import Fence
from kcl_py.log import may_show_tracebacks
from kcl_py.outcomes import Reject, Verdict
from kcl_py.processor import Failure
from kcl_py.records import Record
from kcl_py.tree.giving_up import GivingUp, Stop, Wait
from kcl_py.tree.work import Stuck
from kcl_py.tree.worker import Worker


@dataclass(frozen=True, slots=True)
class Again:
    """Another attempt, after a pause."""

    pause_s: float
    owed: Mapping[int, Verdict] = field(default_factory=dict)
    """Records that are given up and have to be settled before that."""
    due_at: float = 0.0
    """When the others are due, once those are settled; monotonic seconds."""


class Sequel:
    """The decision, of one hook of one ownership.

    Args:
        worker: gives options and chance.
        hook: what was called.
        giving_up: settles records that are not tried again.
        fence: asked before that, since the processor hears of it.
        is_over: whether nothing is tried again any more.
        log: bound to the shard.
    """

    def __init__(
        self, worker: Worker, hook: str, giving_up: GivingUp, fence: Fence, is_over: Callable[[], bool], log: Events
    ) -> None:
        self._options, self._jitter, self._clock = worker.config.delivery, worker.ids.jitter, worker.clock
        self._hook, self._giving_up, self._fence, self._is_over, self._log = hook, giving_up, fence, is_over, log

    async def of(
        self,
        trouble: Trouble,
        failed: Mapping[int, Verdict],
        record_of: Callable[[int], Record],
        finish: Callable[[int], object],
    ) -> Again | Stuck | None:
        """Decide about records that are not finished, and settle those that are not tried again.

        Args:
            trouble: of the attempts so far, this one too.
            failed: what the last one has ended with, by index.
            record_of: finds a record.
            finish: called for each record that counts as finished.

        Returns:
            What comes next; None: nothing, since all are finished or it is over.
        """
        began_at = self._clock.monotonic()
        pauses = {
            index: verdicts.pause_s(verdict, trouble.attempts, self._options, self._jitter)
            for index, verdict in sorted(failed.items())
        }
        again = [] if self._is_over() else [pause_s for pause_s in pauses.values() if pause_s is not None]
        self.note(trouble, failed, max(again, default=None))
        given_up = {index: failed[index] for index, pause_s in pauses.items() if pause_s is None}
        sequel = await self.give_up(trouble, given_up, record_of, finish)
        if isinstance(sequel, Again) and again:
            return replace(sequel, due_at=began_at + max(again))
        if sequel is not None:
            return sequel
        return Again(max(again)) if again and not self._is_over() else None

    async def give_up(
        self,
        trouble: Trouble,
        failed: Mapping[int, Verdict],
        record_of: Callable[[int], Record],
        finish: Callable[[int], object],
    ) -> Again | Stuck | None:
        """Settle records that are not tried again; the arguments and what is returned are as of ``of``.

        When others of the same attempt are due, its caller knows.
        """
        for index, verdict in failed.items():
            if self._is_over():
                return None
            if not self._fence.allows(self._clock.monotonic()):
                return Again(0.0, _from(index, failed))
            record, is_rejected = record_of(index), isinstance(verdict, Reject)
            failure = Failure(record, trouble.reasons[index], trouble.attempts, trouble.first_failed_s, is_rejected)
            match await self._giving_up.settle(failure):
                case None:
                    finish(index)
                case Stop(reason):
                    return Stuck(reason, trouble.attempts, record.sequence_number)
                case Wait(pause_s):
                    return None if self._is_over() else Again(pause_s, _from(index, failed))
        return None

    def note(self, trouble: Trouble, failed: Mapping[int, Verdict], pause_s: float | None) -> None:
        """Log that an attempt has failed."""
        first = min(failed)
        self._log.warning(
            "kcl_py.batch.failed",
            attempt=trouble.attempts,
            retry_in_s=pause_s,
            error=trouble.reasons[first],
            hook=self._hook,
            records=len(failed),
        )
        error = failed[first]
        if isinstance(error, Exception) and may_show_tracebacks():
            self._log.debug("kcl_py.batch.traceback", exc_info=error)


def _from(first: int, failed: Mapping[int, Verdict]) -> Mapping[int, Verdict]:
    return {index: verdict for index, verdict in failed.items() if index >= first}
