"""Carries out what ``kcl leases`` is to change, row by row, and says how far it was where it cannot go on."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio

from actors.clock import SystemClock
from kcl_py.cli.asking import Asked
from kcl_py.cli.failure import print_error
from kcl_py.cli.output import say
from kcl_py.errors import ConditionFailedError, KclError, RequestError
from kcl_py.leases.making import make
from kcl_py.leases.repositioning import Change
from kcl_py.printable import counted

if TYPE_CHECKING:
    from kcl_py.leases.store import LeaseStore


async def carry_out(store: "LeaseStore", changes: Sequence[Change], *, patience_s: float) -> Asked:
    """Make the changes in their order; stop at the first row that somebody else has written. Return what is asked."""
    asked: Asked = {}
    for done, change in enumerate(changes):
        made = f"made {done} of {counted(len(changes), 'change')} before"
        try:
            row = await make(store, change, SystemClock(), patience_s=patience_s)
        except ConditionFailedError as error:
            raise KclError(
                f"cannot change {change.key!r}: expected the row as it was seen, found another; {made}; do it again"
            ) from error
        except RequestError as error:
            raise KclError(f"cannot change {change.key!r}: {error}; {made}; do it again") from error
        except anyio.get_cancelled_exc_class():
            print_error(f"cut off while it changed {change.key!r}: {made}; do it again")
            raise
        if change.request is not None and row is not None:
            asked[change.key] = change.request, row
    if len(asked) < len(changes):
        say(f"{counted(len(changes) - len(asked), 'change')} made\n")
    return asked
