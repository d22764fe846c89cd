"""``kcl status FILE``: who holds which shard, and how far behind it is."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import structlog

from actors.clock import SystemClock
from kcl_py.cli.loading import load_config
from kcl_py.errors import AwsSetupError, LeaseTableError, MissingError, RejectedError, RequestError
from kcl_py.leases.row import WorkerRow
from kcl_py.status import Report, report, text

if TYPE_CHECKING:
    from kcl_py.config import Config
    from kcl_py.leases.store import LeaseStore


def status_command(file: Path, *, as_json: bool) -> int:
    """Print the status as one JSON object or as text; return the exit code."""
    status = anyio.run(_read, load_config(file))
    sys.stdout.write((json.dumps(status) if as_json else text(status)) + "\n")
    return 0


async def _read(config: "Config") -> Report:
    from kcl_py.clients import connect_leases

    async with connect_leases(config) as store:
        return await read_status(store, config, now_s=SystemClock().time())


async def read_status(store: "LeaseStore", config: "Config", *, now_s: float) -> Report:
    """Read both tables.

    Raises:
        LeaseTableError: there is no lease table.
        AwsSetupError: it cannot be read.
    """
    what = f"cannot read lease table {config.leases.table!r}"
    try:
        scan = await store.scan()
        workers = await _workers(store)
    except MissingError as error:
        raise LeaseTableError(
            f"{what}: expected the table of a worker that has run, found none; check app, leases.table and the region"
        ) from error
    except RequestError as error:
        raise AwsSetupError(f"{what}: {error.code}" + (f": {error.detail}" if error.detail else "")) from error
    for fault in scan.malformed:
        structlog.get_logger().warning("kcl_py.lease.malformed", fault=fault)
    return report(config, scan.rows, workers, now_s)


async def _workers(store: "LeaseStore") -> tuple[WorkerRow, ...]:
    try:
        return await store.workers()
    except (MissingError, RejectedError):  # the table of workers is a help, not a need
        return ()
