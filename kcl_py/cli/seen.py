"""What ``kcl leases`` sees: the rows of both tables, and after a while who is at work."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from actors.clock import SystemClock
from kcl_py.cli.countdown import Countdown
from kcl_py.clients import looking_at
from kcl_py.errors import MissingError, RejectedError, RequestError
from kcl_py.events import Events
from kcl_py.leases.identity import mismatch, strangers
from kcl_py.leases.repositioning import moving
from kcl_py.leases.row import LeaseRow, WorkerRow

if TYPE_CHECKING:
    from kcl_py.clients import Clients
    from kcl_py.config import Config

SLACK_S = 0.5
"""Beside the failover time: for how long it is watched whether a worker runs."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Both tables, at one look."""

    rows: dict[str, LeaseRow]
    """By key, in the order of keys."""
    malformed: tuple[str, ...]
    """One sentence for each item of the lease table that is no lease."""
    workers: tuple[WorkerRow, ...] = ()
    working: tuple[str, ...] = ()
    """Who was seen at work, if it was watched for that."""


async def look(clients: "Clients", config: "Config") -> Seen:
    """Read both tables; raises ``AwsSetupError`` if they cannot be read or are another stream's."""
    with looking_at(config.leases.table):
        scan = await clients.leases.scan(consistent=True)
    if clients.stream is not None and (others := strangers(scan.rows, clients.stream)):
        raise mismatch(others[0], clients.stream, config.leases.table)
    rows = {row.key: row for row in sorted(scan.rows, key=lambda row: row.key)}
    return Seen(rows, scan.malformed, await _workers(clients))


async def _workers(clients: "Clients") -> tuple[WorkerRow, ...]:
    try:
        return await clients.leases.workers()
    except (MissingError, RejectedError):  # then the lease rows alone tell
        return ()


def warn(seen: Seen) -> None:
    """Log each item that is no lease."""
    for sentence in seen.malformed:
        Events().warning("kcl_py.table.malformed_row", error=sentence)


async def look_who_works(
    clients: "Clients", config: "Config", before: Seen, is_enough: Callable[[set[str]], bool]
) -> Seen:
    """Watch for so long that a worker at work would show, or until it ``is_enough``; return what there is then.

    Args:
        clients: where the tables are.
        config: for their names and the failover time.
        before: a look that was just taken.
        is_enough: is given the workers that have shown so far.
    """
    clock, watch_s = SystemClock(), config.leases.failover_s + SLACK_S
    ends_at = clock.monotonic() + watch_s
    with Countdown("watching for up to {} whether a worker runs", watch_s):
        while (left_s := ends_at - clock.monotonic()) > 0 and not is_enough(await _shown(clients, before)):
            await clock.sleep(min(left_s, config.leases.tick_s))
    return compared(before, await look(clients, config))


async def _shown(clients: "Clients", before: Seen) -> set[str]:
    """Name the workers whose own rows have moved; none while they cannot be read, which the last look tells."""
    try:
        workers = await _workers(clients)
    except RequestError:
        return set()
    return set(moving(before.rows, before.rows, (before.workers, workers)))


def compared(before: Seen, after: Seen) -> Seen:
    """Return the later look, with who was seen at work between the two."""
    return replace(after, working=tuple(moving(before.rows, after.rows, (before.workers, after.workers))))
