"""``kcl status FILE``: who holds which shard, and how far behind it is."""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import anyio

from actors.clock import SystemClock
from kcl_py.cli.loading import load_config
from kcl_py.cli.looking import looking
from kcl_py.cli.output import say
from kcl_py.clients import looking_at
from kcl_py.errors import MissingError, RejectedError
from kcl_py.events import Events
from kcl_py.leases.identity import mismatch, strangers
from kcl_py.leases.row import WorkerRow
from kcl_py.status import Report, report, text

if TYPE_CHECKING:
    from kcl_py.cli.screen import Look
    from kcl_py.config import Config
    from kcl_py.leases.store import LeaseStore
    from kcl_py.sources.source import StreamInfo


def status_command(file: Path, *, as_json: bool, watching: bool) -> int:
    """Print the status as one JSON object or as text, once or until Ctrl-C; return the exit code."""
    config = load_config(file)
    if watching:
        from kcl_py.cli.watch import watch

        with suppress(KeyboardInterrupt):  # the way to end it
            anyio.run(partial(watch, config, as_json=as_json))
        return 0
    status = anyio.run(_read, config)
    if as_json or not sys.stdout.isatty():
        say((json.dumps(status) if as_json else text(status)) + "\n")
    else:
        from kcl_py.cli.screen import Look

        say(on_terminal(Look(status), SystemClock().time()))
    return 0


def on_terminal(look: "Look", now_s: float) -> str:
    """Write a look for the terminal that stdout is, however many lines it takes."""
    from rich.console import Console

    from kcl_py.cli.screen import screen

    console = Console(width=get_terminal_size().columns)  # rich takes a dumb terminal for 80 wide
    with console.capture() as written:
        console.print(screen(look, now_s, console.width))
    return written.get()


async def _read(config: "Config") -> Report:
    async with looking(config) as clients:
        return await read_status(clients.leases, config, stream=clients.stream, now_s=SystemClock().time())


def _warn(malformed: str) -> None:
    Events().warning("kcl_py.table.malformed_row", error=malformed)


async def read_status(
    store: "LeaseStore",
    config: "Config",
    *,
    stream: "StreamInfo | None" = None,
    now_s: float,
    warn: Callable[[str], None] = _warn,
) -> Report:
    """Read both tables.

    Args:
        store: where the rows are.
        config: for the names of app, stream and table, and the failover time.
        stream: whose rows they must be; None: that is not looked at.
        now_s: Unix seconds.
        warn: is told of each item that is no lease.

    Raises:
        LeaseTableError: there is no lease table.
        StreamIdentityError: it holds rows of another stream.
        AwsSetupError: it cannot be read.
    """
    with looking_at(config.leases.table):
        scan = await store.scan()
        workers = await _workers(store)
    if stream is not None and (others := strangers(scan.rows, stream)):
        raise mismatch(others[0], stream, config.leases.table)
    for sentence in scan.malformed:
        warn(sentence)
    return report(config, scan.rows, workers, now_s)


async def _workers(store: "LeaseStore") -> tuple[WorkerRow, ...]:
    try:
        return await store.workers()
    except (MissingError, RejectedError):  # the table of workers is a help, not a need
        return ()
