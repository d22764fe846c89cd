"""``kcl leases``: what an operator does to lease rows, and asks of the workers that hold them.

Shows what it will do. A row of a worker at work is never written here, but for a request to that worker.
"""

import json
import secrets
import signal
import sys
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import structlog
import typer

from actors.clock import SystemClock
from kcl_py.cli.asking import HOW_ON, Asked, wait_for_answers
from kcl_py.cli.failure import WORKER_FAILED, print_error
from kcl_py.cli.loading import load_config
from kcl_py.cli.looking import looking
from kcl_py.cli.output import say
from kcl_py.cli.signals import leaving
from kcl_py.clients import RETRY_MAX_S, RETRY_S, looking_at
from kcl_py.config import parse_start
from kcl_py.errors import (
    ConditionFailedError,
    ConfigError,
    KclError,
    MissingError,
    RejectedError,
    RequestError,
    ThrottledError,
)
from kcl_py.leases.identity import mismatch, strangers
from kcl_py.leases.repositioning import (
    Change,
    ask_to_begin_at,
    ask_to_let_go,
    begin_anew,
    begin_at,
    described,
    let_go,
    moving,
    place_of,
    withdraw,
)
from kcl_py.leases.requests import in_words
from kcl_py.leases.row import LeaseRow, WorkerRow
from kcl_py.printable import instant, printable
from kcl_py.records import SequenceNumber, is_number
from kcl_py.sources.source import Position, PositionKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from kcl_py.clients import Clients
    from kcl_py.config import Config
    from kcl_py.leases.store import LeaseStore

SLACK_S = 0.5
"""Beside the failover time: for how long it is watched whether a worker runs."""
DATE_MS = 1000
"""So much later than AWS says it may be already: it tells whole seconds."""


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


def show_command(file: Path, *, as_json: bool) -> int:
    """Print each row as the table holds it, one a line."""
    rows = anyio.run(_show, load_config(file))
    for row in rows:
        say((json.dumps(asdict(row)) if as_json else _line(row)) + "\n")
    return 0


def reset_command(file: Path, start: str | None, *, is_sure: bool) -> int:
    """Have the stream be read anew from ``start``, or from the file's."""
    config = load_config(file)
    at = config.start if start is None else _position(start)

    async def plan(clients: "Clients", seen: Seen) -> Sequence[Change]:
        if seen.malformed:  # what a worker leaves alone it does not read
            raise KclError(
                f"cannot have {config.stream!r} be read anew: expected leases alone in {config.leases.table!r}, found "
                f"{len(seen.malformed)} items that are none: {seen.malformed[0]}; mend or delete them"
            )
        await _now_ms(clients, at)
        listing = await clients.source.list_shards(at if at.kind is PositionKind.AT_TIMESTAMP else None)
        assert clients.stream is not None
        return begin_anew(seen.rows, listing, at, stream=clients.stream.identity)

    return anyio.run(_change, config, plan, is_sure)


def set_command(file: Path, shard: str, to: str, *, is_sure: bool) -> int:
    """Have one shard be read from ``to`` on, or after that sequence number."""
    config = load_config(file)
    place = _place(to)

    async def plan(clients: "Clients", seen: Seen) -> Sequence[Change]:
        row = _of(seen.rows, shard, config)
        if row.has_ended:
            raise KclError(
                f"cannot move {shard!r}: expected a shard that is being read, found one that was read to its end; "
                "its children go on already; to read all again, use kcl leases reset"
            )
        now_ms = await _now_ms(clients, place)
        if isinstance(place, SequenceNumber):
            await _find(clients, shard, place)
        to = place_of(row, place, now_ms=now_ms)
        return [ask_to_begin_at(row, to, _key()) if _is_to_be_asked(row, seen) else begin_at(row, to)]

    return anyio.run(_change, config, plan, is_sure, _who_works)


def release_command(file: Path, shards: Sequence[str], *, is_sure: bool) -> int:
    """Take the names of workers that are no more out of these rows, or of all; ask who works to let go of these."""
    config = load_config(file)

    async def plan(clients: "Clients", seen: Seen) -> Sequence[Change]:
        chosen = [_of(seen.rows, shard, config) for shard in dict.fromkeys(shards)]
        rows = chosen or [row for row in seen.rows.values() if row.holder not in seen.working]
        return [
            ask_to_let_go(row, _key()) if _is_to_be_asked(row, seen) else let_go(row)
            for row in rows
            if row.holder is not None
        ]

    return anyio.run(_change, config, plan, is_sure, _who_works)


def withdraw_command(file: Path, shards: Sequence[str], *, is_sure: bool) -> int:
    """Take back what is asked of the holders of these shards, or of all."""
    config = load_config(file)

    async def plan(clients: "Clients", seen: Seen) -> Sequence[Change]:
        chosen = [_of(seen.rows, shard, config) for shard in dict.fromkeys(shards)] or list(seen.rows.values())
        return [withdraw(row, row.native.request) for row in chosen if row.native.request is not None]

    return anyio.run(_change, config, plan, is_sure, _look)


def _key() -> str:
    return secrets.token_hex(4)


def _is_to_be_asked(row: LeaseRow, seen: Seen) -> bool:
    """Whether a row is its holder's to write; raises ``KclError`` if that one cannot be asked now."""
    if row.holder is None or row.holder not in seen.working:
        return False
    if row.native.token is None or not row.native_is_current:
        raise KclError(
            f"cannot ask {row.holder} about {row.key!r}: expected a kcl_py worker to hold it, found another; stop it"
        )
    if (request := row.native.request) is not None:
        raise KclError(
            f"cannot ask {row.holder} about {row.key!r}: expected that nothing is asked of it, found a request to "
            f"{in_words(request)} ({request.id}); wait until it is answered; {HOW_ON}"
        )
    return True


def _place(text: str) -> Position | SequenceNumber:
    return SequenceNumber(int(text)) if is_number(text) else _position(text)


def _position(text: str) -> Position:
    try:
        return parse_start(text)
    except ValueError:
        raise ConfigError(
            f"cannot begin at {text!r}: expected trim_horizon, latest, an ISO-8601 time with its zone such as "
            "2026-01-31T09:00:00Z, or for one shard a sequence number"
        ) from None


async def _now_ms(clients: "Clients", place: Position | SequenceNumber) -> int:
    """Return the service's time; raises ``ConfigError`` if ``place`` is a time to come, where AWS begins no reading."""
    now_ms = int((await clients.source.describe()).server_time_s * 1000)
    if isinstance(place, Position) and place.value >= now_ms + DATE_MS:
        raise ConfigError(
            f"cannot begin at a time to come: expected one before AWS's {instant(now_ms)}, found {instant(place.value)}"
        )
    return now_ms


async def _find(clients: "Clients", shard: str, number: SequenceNumber) -> None:
    """Make sure that AWS can read on after ``number``: no worker could, else."""
    try:
        await clients.source.open(shard, Position(PositionKind.AFTER, number.value))
    except (MissingError, RejectedError) as error:
        raise KclError(
            f"cannot move {shard!r} after {number}: expected a number of that shard, found {error.code}: {error.detail}"
        ) from error


def _of(rows: dict[str, LeaseRow], shard: str, config: "Config") -> LeaseRow:
    if shard not in rows:
        raise KclError(
            f"cannot change {shard!r}: expected a shard with a row in {config.leases.table!r}, found {len(rows)} "
            "others; kcl leases show lists them"
        )
    return rows[shard]


async def _show(config: "Config") -> list[LeaseRow]:
    async with looking(config) as clients:
        seen = await _look(clients, config)
    _warn(seen)
    return list(seen.rows.values())


def _warn(seen: Seen) -> None:
    for sentence in seen.malformed:
        structlog.get_logger().warning("kcl_py.table.malformed_row", error=sentence)


async def _look(clients: "Clients", config: "Config") -> Seen:
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


async def _change(
    config: "Config",
    plan: "Callable[[Clients, Seen], Awaitable[Sequence[Change]]]",
    is_sure: bool,
    see: "Callable[[Clients, Config], Awaitable[Seen]] | None" = None,
) -> int:
    """Make a plan and carry it out; without ``see`` only while nobody works."""
    async with looking(config) as clients:
        seen = await (see or _that_nobody_works)(clients, config)
        _warn(seen)
        changes = await plan(clients, seen)
        if not changes:
            say("nothing to do\n")
            return 0
        for change in changes:
            say(f"{printable(change.key)}: {printable(change.what)}\n")
        if not is_sure and not _confirmed(len(changes)):
            return WORKER_FAILED
        if see is None:
            _check_that_nobody_works(_compared(seen, await _look(clients, config)), config)  # an answer can take hours
        asked = await carry_out(clients.leases, changes, patience_s=config.aws.start_timeout_s)
        if not asked:
            return 0
        patience_s = config.leases.failover_s + config.leases.handoff_timeout_s
        with _progress(f"waiting for up to {patience_s:g} s until {len(asked)} shards are answered for"):
            return await wait_for_answers(clients.leases, asked, patience_s=patience_s)


async def _who_works(clients: "Clients", config: "Config") -> Seen:
    """Watch for long enough that a worker at work would show; return what there is then."""
    before = await _look(clients, config)
    if not before.workers and all(row.holder is None for row in before.rows.values()):
        return before
    watch_s = config.leases.failover_s + SLACK_S
    with _progress(f"watching for {watch_s:g} s whether a worker runs"):
        await SystemClock().sleep(watch_s)
    return _compared(before, await _look(clients, config))


async def _that_nobody_works(clients: "Clients", config: "Config") -> Seen:
    """Watch as long; raises ``KclError`` if one is at work."""
    seen = await _who_works(clients, config)
    _check_that_nobody_works(seen, config)
    return seen


def _compared(before: Seen, after: Seen) -> Seen:
    return replace(after, working=tuple(moving(before.rows, after.rows, (before.workers, after.workers))))


def _check_that_nobody_works(seen: Seen, config: "Config") -> None:
    if seen.working:
        raise KclError(
            f"cannot change leases of {config.app!r}: expected that no worker runs, found {', '.join(seen.working)} at "
            "work; stop them first, or move single shards with kcl leases set"
        )


@contextmanager
def _progress(text: str) -> "Iterator[None]":
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with leaving(), Console(stderr=True).status(text):
        yield


def _confirmed(changes: int) -> bool:
    if not sys.stdin.isatty():
        raise ConfigError(f"cannot ask whether to make {changes} changes: expected --yes or a terminal, found neither")
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio's waits for the loop, which waits here
    try:
        return typer.confirm(f"make {changes} changes?", err=True)
    finally:
        signal.signal(signal.SIGINT, handler)


async def carry_out(store: "LeaseStore", changes: Sequence[Change], *, patience_s: float) -> Asked:
    """Make the changes in their order; stop at the first row that somebody else has written. Return what is asked."""
    asked: Asked = {}
    for done, change in enumerate(changes):
        made = f"{done} of {len(changes)} changes are made"
        try:
            row = await _make(store, change, patience_s)
        except ConditionFailedError as error:
            raise KclError(
                f"cannot change {change.key!r}: expected the row as it was seen, found another; {made}; do it again"
            ) from error
        except RequestError as error:
            raise KclError(f"cannot change {change.key!r}: {error}; {made} before; do it again") from error
        except anyio.get_cancelled_exc_class():
            print_error(f"cut off while it changed {change.key!r}: {made} before; do it again")
            raise
        if change.request is not None and row is not None:
            asked[change.key] = change.request, row
    if len(asked) < len(changes):
        say(f"{len(changes) - len(asked)} changes made\n")
    return asked


async def _make(store: "LeaseStore", change: Change, patience_s: float) -> LeaseRow | None:
    """Make one change; while it is throttled, which has no effect, once more. Return the row that a write leaves."""
    clock = SystemClock()
    ends_at, pause_s = clock.monotonic() + patience_s, RETRY_S
    while True:
        try:
            return await _make_once(store, change)
        except ThrottledError:
            if clock.monotonic() + pause_s >= ends_at:
                raise
        await clock.sleep(pause_s)
        pause_s = min(2 * pause_s, RETRY_MAX_S)


async def _make_once(store: "LeaseStore", change: Change) -> LeaseRow | None:
    if change.write is not None:
        return await store.write(change.write)
    if change.removal is not None:
        await store.delete(change.removal)
    elif change.row is not None and not await store.create(change.row):
        raise ConditionFailedError("create", change.key, "it is there")
    return None


def _line(row: LeaseRow) -> str:
    named = f"held by {row.holder}" if row.holder else "free"
    asked = f", asked for by {row.owner}" if row.in_handoff else ""
    request = row.native.request
    wanted = f", asked to {in_words(request)} ({request.id})" if request is not None else ""
    family = f", after {' and '.join(row.parents)}" if row.parents else ""
    return printable(f"{row.key}: {described(row)}, {named}{asked}{wanted}, counter {row.counter}{family}")
