"""``kcl leases``: what an operator does to lease rows, and asks of the workers that hold them.

Shows what it will do. A row of a worker at work is never written here, but for a request to that worker.
"""

import json
import secrets
import signal
import sys
from base64 import b64encode
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import asdict
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import typer

from kcl_py.cli.asking import wait_for_answers
from kcl_py.cli.changing import carry_out
from kcl_py.cli.failure import WORKER_FAILED
from kcl_py.cli.loading import load_config
from kcl_py.cli.looking import looking
from kcl_py.cli.output import say
from kcl_py.cli.seen import Seen, compared, look, look_who_works, warn
from kcl_py.errors import ConfigError, KclError
from kcl_py.leases.control import chosen, is_to_be_asked, one_of, seek
from kcl_py.leases.places import find, parse_place, parse_position, service_ms
from kcl_py.leases.repositioning import Change, ask_to_let_go, begin_anew, in_one_line, let_go, withdraw
from kcl_py.leases.row import LeaseRow
from kcl_py.printable import counted, printable
from kcl_py.records import SequenceNumber
from kcl_py.sources.source import PositionKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from kcl_py.clients import Clients
    from kcl_py.config import Config

    Plan = Callable[[Clients, Seen], Awaitable[Sequence[Change]]]


class Watched(Enum):
    """Whom a change depends on: for them it is watched whether they are at work."""

    NOBODY = auto()
    HOLDERS = auto()
    """Those who hold the rows that are to be changed: if they are at work, they are asked."""
    ALL = auto()
    """All workers: nothing is changed while one is at work."""


def show_command(file: Path, *, as_json: bool) -> int:
    """Print each row as the table holds it, one a line."""
    rows = anyio.run(_show, load_config(file))
    for row in rows:
        say((json.dumps(asdict(row), default=_text) if as_json else printable(in_one_line(row))) + "\n")
    return 0


def _text(state: bytes) -> str:
    """Write the one value of a row that JSON has no form for: the state of a prepared checkpoint."""
    return b64encode(state).decode("ascii")


def reset_command(file: Path, start: str | None, *, is_sure: bool) -> int:
    """Have the stream be read anew from ``start``, or from the file's."""
    config = load_config(file)
    at = config.start if start is None else parse_position(start)

    async def plan(clients: "Clients", seen: Seen) -> Sequence[Change]:
        if seen.malformed:  # what a worker leaves alone it does not read
            items = counted(len(seen.malformed), "other item")
            raise KclError(
                f"cannot have {config.stream!r} be read anew: expected leases alone in {config.leases.table!r}, found "
                f"{items}: {seen.malformed[0]}; mend or delete what is none"
            )
        await service_ms(clients.source, at)
        listing = await clients.source.list_shards(at if at.kind is PositionKind.AT_TIMESTAMP else None)
        assert clients.stream is not None
        return begin_anew(seen.rows, listing, at, stream=clients.stream.identity)

    return _changed(config, plan, is_sure, Watched.ALL)


def set_command(file: Path, shards: Sequence[str], to: str, *, is_sure: bool) -> int:
    """Have shards, or all that are being read, be read from ``to`` on, or one after that sequence number."""
    config, place = load_config(file), parse_place(to)
    if isinstance(place, SequenceNumber) and len(shards) != 1:
        raise ConfigError(f"cannot move several shards to {place}: expected one --shard, found {len(shards)}")

    async def plan(clients: "Clients", seen: Seen) -> Sequence[Change]:
        rows = chosen(seen.rows, shards, config.leases.table, "move")
        now_ms = await service_ms(clients.source, place)
        for row in rows:
            await find(clients.source, row.key, place)
        return [seek(row, place, _key(), now_ms=now_ms, working=seen.working) for row in rows]

    return _changed(config, plan, is_sure, Watched.HOLDERS)


def release_command(file: Path, shards: Sequence[str], *, is_sure: bool) -> int:
    """Take the names of workers that are no more out of these rows, or of all; ask who works to let go of these."""
    config = load_config(file)

    async def plan(clients: "Clients", seen: Seen) -> Sequence[Change]:
        chosen = [one_of(seen.rows, shard, config.leases.table) for shard in dict.fromkeys(shards)]
        rows = chosen or [row for row in seen.rows.values() if row.holder not in seen.working]
        return [
            ask_to_let_go(row, _key()) if is_to_be_asked(row, seen.working) else let_go(row)
            for row in rows
            if row.holder is not None
        ]

    return _changed(config, plan, is_sure, Watched.HOLDERS)


def withdraw_command(file: Path, shards: Sequence[str], *, is_sure: bool) -> int:
    """Take back what is asked of the holders of these shards, or of all."""
    config = load_config(file)

    async def plan(clients: "Clients", seen: Seen) -> Sequence[Change]:
        chosen = [one_of(seen.rows, shard, config.leases.table) for shard in dict.fromkeys(shards)] or list(
            seen.rows.values()
        )
        return [withdraw(row, row.native.request) for row in chosen if row.native.request is not None]

    return _changed(config, plan, is_sure, Watched.NOBODY)


def _key() -> str:
    return secrets.token_hex(4)


async def _show(config: "Config") -> list[LeaseRow]:
    async with looking(config) as clients:
        seen = await look(clients, config)
    warn(seen)
    return list(seen.rows.values())


def _changed(config: "Config", plan: "Plan", is_sure: bool, watched: Watched) -> int:
    if not is_sure and not sys.stdin.isatty():
        raise ConfigError(
            f"cannot ask whether to change leases of {config.app!r}: expected --yes or a terminal, found neither"
        )
    return anyio.run(_change, config, plan, is_sure, watched)


async def _change(config: "Config", plan: "Plan", is_sure: bool, watched: Watched) -> int:
    """Make a plan and carry it out."""
    async with looking(config) as clients:
        with _told_that_nothing_changed():
            seen, changes = await _planned(clients, config, plan, watched)
            for change in changes:
                say(f"{printable(change.key)}: {printable(change.what)}\n")
            if not changes or not (is_sure or _confirmed(len(changes))):
                say("nothing changed\n" if changes else "nothing to do\n")
                return WORKER_FAILED if changes else 0
            if watched is Watched.ALL:  # an answer can take hours
                _check_that_nobody_works(compared(seen, await look(clients, config)), config)
        asked = await carry_out(clients.leases, changes, patience_s=config.aws.start_timeout_s)
        patience_s = config.leases.failover_s + config.leases.handoff_timeout_s
        return await wait_for_answers(clients.leases, asked, patience_s=patience_s) if asked else 0


async def _planned(
    clients: "Clients", config: "Config", plan: "Plan", watched: Watched
) -> tuple[Seen, Sequence[Change]]:
    """Make a plan of what can be known at once, and another of what shows with time where that may differ."""
    seen = await look(clients, config)
    warn(seen)
    changes = await plan(clients, seen)
    rows = seen.rows if watched is Watched.ALL else {change.key: seen.rows[change.key] for change in changes}
    holders = {row.holder for row in rows.values() if row.holder is not None}
    is_alone = not holders and not (watched is Watched.ALL and seen.workers)
    if not changes or is_alone or watched is Watched.NOBODY:
        return seen, changes
    is_enough = bool if watched is Watched.ALL else holders.issubset
    seen = await look_who_works(clients, config, seen, is_enough)
    if watched is Watched.ALL:
        _check_that_nobody_works(seen, config)
    return seen, await plan(clients, seen)


def _check_that_nobody_works(seen: Seen, config: "Config") -> None:
    if seen.working:
        raise KclError(
            f"cannot change leases of {config.app!r}: expected that no worker runs, found {', '.join(seen.working)} at "
            "work; stop them first, or move single shards with kcl leases set"
        )


@contextmanager
def _told_that_nothing_changed() -> "Iterator[None]":
    """Say so if the command is cut off, by Ctrl-C or SIGTERM."""
    try:
        yield
    except (anyio.get_cancelled_exc_class(), typer.Abort, SystemExit) as cut:
        if isinstance(cut, typer.Abort):  # the question stands on the line
            typer.echo(err=True)
        say("nothing changed\n")
        raise


def _confirmed(changes: int) -> bool:
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio's waits for the loop, which waits here
    try:
        return typer.confirm(f"make {counted(changes, 'change')}?", err=True)
    finally:
        signal.signal(signal.SIGINT, handler)
