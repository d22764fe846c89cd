"""How a worker comes to be: its way to AWS, its tables, its stream, and what its actors share."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack

import anyio
import structlog

from actors import Clock
from kcl_py.chain import surrounded
from kcl_py.clients import Clients, connect, reach, until_answered
from kcl_py.config import Config
from kcl_py.dead_letters.opening import opened
from kcl_py.delivery.budget import Budget
from kcl_py.delivery.rate import Rate
from kcl_py.delivery.slots import Slots
from kcl_py.errors import ConfigError, LeaseTableError, MissingError
from kcl_py.events import Events
from kcl_py.executors.choice import as_it_checkpoints
from kcl_py.leases import identity
from kcl_py.leases.fence import Pulse
from kcl_py.leases.gate import Gate
from kcl_py.leases.store import LeaseStore
from kcl_py.processor import RecordProcessor
from kcl_py.sources.source import StreamInfo
from kcl_py.tree.worker import Ids, Worker

GATE_SLOTS = 16
"""Lease writes of one worker on their way at once; half of them are kept for heartbeats."""


async def open_worker(
    config: Config,
    stack: AsyncExitStack,
    *,
    processor: type[RecordProcessor],
    host: Callable[[type[RecordProcessor], Config], type[RecordProcessor]],
    clients: Clients | None,
    clock: Clock,
    ids: Ids,
    rate: Rate,
    is_left: Callable[[], bool],
) -> Worker:
    """Make sure of all that a worker needs; what is opened for it is closed by ``stack``. Raises as ``Stream`` does."""
    if anyio.get_cancelled_exc_class() is not asyncio.CancelledError:
        raise ConfigError("cannot open a Stream here: expected an asyncio event loop, found that of trio")
    started_at = clock.monotonic()
    config = as_it_checkpoints(processor, config)
    hosted = surrounded(host(processor, config))
    worker_id = config.leases.worker_id or f"{socket.gethostname()}-{os.getpid()}-{ids.incarnation()}"
    owner = f"{worker_id}/{ids.incarnation()}"
    names = {"app": config.app, "stream": config.stream_name, "worker": owner}
    log = Events().bind(**names)
    with structlog.contextvars.bound_contextvars(**names):  # for what is logged below the tree
        if clients is None:
            clients = await stack.enter_async_context(connect(config, clock=clock))
        timeout_s = config.aws.start_timeout_s
        stream = clients.stream or await reach(clients.source, config.stream, timeout_s=timeout_s, clock=clock)
        dead_letters = clients.dead_letters or await stack.enter_async_context(opened(config, clock=clock))
        await _prepare(config, clients.leases, stream, clock, log)
    return Worker(
        config=config,
        owner=owner,
        stream=stream,
        processor=hosted,
        source=clients.source,
        store=clients.leases,
        clock=clock,
        ids=ids,
        log=log,
        gate=Gate(GATE_SLOTS),
        budget=Budget(config.fetch.budget_bytes, clock),
        slots=Slots(config.delivery.concurrency),
        pulse=Pulse(config.leases.margin_s / 2, clock.monotonic()),
        started_at=started_at,
        rate=rate,
        is_left=is_left,
        dead_letters=dead_letters,
    )


async def _prepare(config: Config, store: LeaseStore, stream: StreamInfo, clock: Clock, log: Events) -> None:
    """Make sure of the tables, and that their rows are this stream's."""
    leases, timeout_s = config.leases, config.aws.start_timeout_s
    what = f"cannot use lease table {leases.table!r}"

    async def settle() -> None:
        await identity.settle(store, stream, table=leases.table, on_recreated=leases.on_recreated, log=log)

    try:
        took_s = await until_answered(store.ensure, what, timeout_s=timeout_s, clock=clock)
        if took_s is None:
            await until_answered(settle, what, timeout_s=timeout_s, clock=clock)
        else:
            log.info("kcl_py.table.created", table=leases.table, took_s=round(took_s, 3))
    except MissingError as error:
        raise LeaseTableError(
            f"{what}: expected it to stay while the worker starts, found {error}; start again to make it anew"
        ) from error
