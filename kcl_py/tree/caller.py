"""Calls the hooks of a processor that no records go through, one at a time, each in a task of the Pipeline."""

from collections.abc import Awaitable, Callable

from actors import Actor, OwnedTask, Ref, Timer
from kcl_py.delivery.hook import ABANDON_S, Hook, Raised, TryAgain
from kcl_py.events import Events
from kcl_py.leases.fence import Fence
from kcl_py.log import may_show_tracebacks
from kcl_py.tree.messages import Confirm
from kcl_py.tree.steering import Brake
from kcl_py.tree.worker import Worker


class Caller:
    """The hook in hand.

    Args:
        worker: gives options, clock and chance.
        owner: the actor that tasks and timers are of; hears ``Returned``, ``HeldBack``, ``Raised`` and ``TryAgain``.
    """

    def __init__(self, worker: Worker, owner: Actor) -> None:
        self._worker, self._owner = worker, owner
        self._running: OwnedTask | None = None
        self._pause: Timer | None = None
        self.hook: Hook | None = None
        self.brake = Brake()
        self.ending: list[OwnedTask] = []
        """What was cancelled and may still clean up."""
        self.is_held_back = False

    def begin(self, fence: Fence, lease: Ref, log: Events) -> None:
        """Call for another ownership from now on."""
        self._fence, self._lease, self._log = fence, lease, log

    @property
    def is_running(self) -> bool:
        return self._running is not None

    @property
    def is_saying_goodbye(self) -> bool:
        """Whether the hook in hand ends the ownership."""
        return self.hook is not None and self.hook.is_last

    def call(self, name: str, call: Callable[[], Awaitable[None]], on_return: Callable[[], None]) -> None:
        """Take a hook in hand, and call it."""
        self.hook = Hook(name, call, on_return)
        self.run()

    def run(self) -> None:
        """Call the hook in hand, unless a pause or the fence holds it back: then the Lease is to confirm."""
        assert self.hook is not None
        self._pause, hook = None, self.hook
        is_paused = self.brake.holds_back(hook.name)
        self.is_held_back = is_paused or not self._may_call(hook)
        if self.is_held_back and not is_paused:
            self._lease.tell(Confirm())
        elif not self.is_held_back:
            work = hook.work(self._worker.processor, lambda: self._may_call(hook), self.ending)
            self._running = self._owner.run_task(work, done=lambda said: said, failed=Raised, abandon_s=ABANDON_S)
            self.ending = []

    def ended(self) -> Hook:
        """Note that the call has ended, in whatever way; return the hook."""
        assert self.hook is not None
        self._running = None
        return self.hook

    def fail(self, error: Exception, *, is_last: bool) -> float | None:
        """Note that the attempt has raised; return the pause before the next one, None if there is none."""
        hook = self.ended()
        pause_s = hook.fail(error, self._worker.config.delivery, self._worker.ids.jitter, is_last=is_last)
        self._log.warning(
            "kcl_py.batch.failed",
            attempt=hook.attempt,
            retry_in_s=pause_s,
            error=hook.last_failure,
            hook=hook.name,
            records=0,
        )
        if may_show_tracebacks():
            self._log.debug("kcl_py.batch.traceback", exc_info=error)
        return pause_s

    def try_again(self, pause_s: float) -> None:
        """Make the next attempt after a pause."""
        assert self.hook is not None
        self.hook.attempt += 1
        self._pause = self._owner.send_after(pause_s, TryAgain())

    def stop_trying(self) -> None:
        """Make no further attempt."""
        if self._pause is not None:
            self._pause.cancel()

    def cancel(self) -> None:
        """End the hook in hand."""
        self.stop_trying()
        if self._running is not None:
            self._running.cancel()
            self.ending.append(self._running)
        self.is_held_back = False
        self._running = self._pause = None

    def cut_off(self) -> bool:
        """Name the hook that still runs although its time is over; return whether no other is to be called."""
        hook = self.hook
        if hook is not None and hook.has_begun and self.is_running:
            self._log.warning("kcl_py.processor.cut_off", hook=hook.name)
        return hook is not None and (
            hook.name == "lease_lost" or (hook.name == "shutdown_requested" and hook.has_begun)
        )

    async def all_ended(self) -> None:
        """Wait until nothing runs any more that was cancelled."""
        for task in list(self.ending):
            await task.ended()

    def _may_call(self, hook: Hook) -> bool:
        now = self._worker.clock.monotonic()
        if hook.is_last:
            return hook.name == "lease_lost" or not self._fence.is_over(now)
        return self._fence.allows(now)
