"""Waits until the holders of shards have answered what ``kcl leases`` asks of them, and says what became of it."""

from typing import TYPE_CHECKING

from anyio import get_cancelled_exc_class

from actors.clock import SystemClock, move_on_after
from kcl_py.cli.countdown import Countdown
from kcl_py.cli.failure import WORKER_FAILED, print_error
from kcl_py.cli.output import say
from kcl_py.errors import MissingError, RequestError
from kcl_py.leases.answers import answer
from kcl_py.leases.control import HOW_ON
from kcl_py.leases.row import LeaseRow, Request
from kcl_py.printable import counted, printable

if TYPE_CHECKING:
    from kcl_py.leases.store import LeaseStore

LOOK_S = 0.5
"""Between two looks at the rows; a holder sees a request with its next heartbeat."""

Asked = dict[str, tuple[Request, LeaseRow]]
"""By shard: what was asked, and the row when that was last seen to stand."""


async def wait_for_answers(store: "LeaseStore", asked: Asked, *, patience_s: float) -> int:
    """Look until no request stands, or for so long; return 0 if all were carried out."""
    clock, failed, trouble = SystemClock(), 0, ""
    try:
        waiting = Countdown(f"waiting for up to {{}} for answers about {counted(len(asked), 'shard')}", patience_s)
        with waiting, move_on_after(clock, patience_s):
            while asked:
                await clock.sleep(LOOK_S)
                for key in list(asked):
                    try:
                        failed += await _look(store, asked, key, waiting)
                    except RequestError as error:  # the next look may get through
                        trouble = f"; a look failed: {error}"
    except get_cancelled_exc_class():
        print_error(f"cut off before {counted(len(asked), 'request')} had an answer; {HOW_ON}")
        raise
    if asked:
        print_error(
            f"no answer within {patience_s:g} s about {', '.join(map(printable, asked))}: what is asked stands, and "
            f"whoever holds the shard next carries it out; {HOW_ON}{trouble}"
        )
    elif failed:
        print_error(f"{counted(failed, 'request')} not applied")
    return WORKER_FAILED if asked or failed else 0


async def _look(store: "LeaseStore", asked: Asked, key: str, waiting: Countdown) -> bool:
    """Look at one row, and tell of it once there is an answer; True if that is no good one.

    Raises:
        RequestError: it could not be read.
    """
    request, before = asked[key]
    try:
        row = await store.read(key)
    except MissingError:
        row = None
    found = answer(request, before, row)
    if found is None:
        assert row is not None
        asked[key] = request, row
        return False
    del asked[key]
    with waiting.aside():
        say(f"{printable(key)}: {printable(found.what)}\n")
    return not found.is_applied
