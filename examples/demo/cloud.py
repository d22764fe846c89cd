"""What the demo itself asks of AWS: writing, splitting a shard, and reading the lease table.

The status is the object that ``kcl status --json`` prints. It is read here and not by that command, because a new
process each second would take half a processor away from what is to be shown.
"""

from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aioboto3

from actors.clock import SystemClock
from kcl_py.cli.status import read_status
from kcl_py.clients import connect_leases
from kcl_py.config import Config
from kcl_py.errors import LeaseTableError
from kcl_py.sources.kinesis.writer import StreamWriter


class Cloud:
    """Clients of the local AWS at ``url``; a block.

    Args:
        url: where it is.
        file: the workers' options.
    """

    def __init__(self, url: str, file: Path) -> None:
        self.url = url
        self._config = Config.load(file, {"KCL_AWS__ENDPOINT": url})
        self._clock = SystemClock()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._kinesis: Any = await stack.enter_async_context(
                aioboto3.Session().client("kinesis", endpoint_url=self.url)
            )
            self._leases = await stack.enter_async_context(connect_leases(self._config, clock=self._clock))
            self._stack = stack.pop_all()
        self.writer = StreamWriter(self._kinesis, self._config.stream, clock=self._clock)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def shards(self) -> list[dict[str, Any]]:
        """Return the shards as in ``kcl status --json``; none before a worker has made the lease table."""
        try:
            status = await read_status(self._leases, self._config, now_s=self._clock.time())
        except LeaseTableError:
            return []
        shards: list[dict[str, Any]] = status["shards"]
        return shards

    async def split(self) -> tuple[str, list[str]]:
        """Split the first open shard in the middle; returns it and its children."""
        before = await self._list_shards()
        shard = next(shard for shard in before if "EndingSequenceNumber" not in shard["SequenceNumberRange"])
        first, last = (int(shard["HashKeyRange"][key]) for key in ("StartingHashKey", "EndingHashKey"))
        await self._kinesis.split_shard(
            StreamName=self._config.stream,
            ShardToSplit=shard["ShardId"],
            NewStartingHashKey=str((first + last + 1) // 2),
        )
        await self._kinesis.get_waiter("stream_exists").wait(
            StreamName=self._config.stream, WaiterConfig={"Delay": 0.2}
        )
        children = [
            each["ShardId"] for each in await self._list_shards() if each.get("ParentShardId") == shard["ShardId"]
        ]
        return shard["ShardId"], children

    async def _list_shards(self) -> list[dict[str, Any]]:
        listing = await self._kinesis.list_shards(StreamName=self._config.stream)
        shards: list[dict[str, Any]] = listing["Shards"]
        return shards
