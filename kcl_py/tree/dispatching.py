"""How the Dispatcher of an ownership is put together."""

from dataclasses import dataclass

from actors import Actor
from kcl_py.delivery.earlier import Earlier
from kcl_py.delivery.ledger import Ledger
from kcl_py.events import Events
from kcl_py.leases.fence import Fence
from kcl_py.leases.row import Later
from kcl_py.processor import Checkpointer, RecordProcessor
from kcl_py.tree.batches import Batches
from kcl_py.tree.dispatcher import Dispatcher
from kcl_py.tree.forms import Attempt, form_of
from kcl_py.tree.giving_up import GivingUp
from kcl_py.tree.worker import Worker


class FirstRecord:
    """Tells once, with the first hand-over of an ownership, how long that took."""

    def __init__(self, worker: Worker, log: Events) -> None:
        self._worker, self._log = worker, log
        self._has_told = False

    def __call__(self) -> None:
        if not self._has_told:
            self._has_told = True
            since_start_s = round(self._worker.clock.monotonic() - self._worker.started_at, 3)
            self._log.info("kcl_py.shard.first_record", since_start_s=since_start_s)


@dataclass(frozen=True, slots=True)
class Delivering:
    """What an ownership delivers with."""

    worker: Worker
    shard_id: str
    fence: Fence
    ledger: Ledger
    log: Events


def dispatcher_of(
    owner: Actor,
    with_: Delivering,
    processor: RecordProcessor,
    checkpointer: Checkpointer,
    first: FirstRecord,
    *,
    earlier: Earlier,
    later: tuple[Later, ...],
) -> Dispatcher:
    """Make the Dispatcher for one instance of the processor; tasks and timers are those of ``owner``."""
    worker, fence, ledger, log = with_.worker, with_.fence, with_.ledger, with_.log
    attempt = Attempt(worker, processor, ledger, earlier, first)
    giving_up = GivingUp(worker, with_.shard_id, processor, log)
    batches = Batches(worker, attempt, fence, giving_up, owner, log)
    form = form_of(worker, with_.shard_id, attempt, checkpointer, batches)
    return Dispatcher(worker, form, ledger, fence, giving_up, owner, batches, later, log)
