"""A Kinesis stream read by polling: the ``Source`` over GetRecords.

One request a call, except that a listing follows its pages. It never retries, never waits for a quota and keeps
nothing between calls: that is for whoever reads. Seconds end in ``_s``, AWS's milliseconds in ``_ms``.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Protocol

from actors.clock import Clock
from kcl_py.aws import request, server_time_s
from kcl_py.errors import RequestError
from kcl_py.records import Record
from kcl_py.sources.kinesis import decode
from kcl_py.sources.source import Fetched, Listing, Position, PositionKind, ShardInfo, StreamInfo

DEADLINE_S = 20.0
"""Total time of one request. GetRecords can answer 10 MB: this asks for half a megabyte a second of the network."""
SHORT_DEADLINE_S = 5.0
"""The same where answers are small: one that hangs is soon asked for again, such as the listing of a start."""
LISTINGS = 4
"""How often one listing is begun anew because its page token (which lives 5 minutes) expired."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EXPIRED_TOKEN = "ExpiredNextTokenException"

FILTERS = {
    PositionKind.TRIM_HORIZON: "AT_TRIM_HORIZON",
    PositionKind.LATEST: "AT_LATEST",
    PositionKind.AT_TIMESTAMP: "FROM_TIMESTAMP",
}
"""Source: the ListShards API reference, ShardFilterType. AT_TIMESTAMP would show nothing of a stream made later."""

_data = attrgetter("data")


class KinesisClient(Protocol):
    """What is used of an aiobotocore client, or of a model with the same face; arguments and replies are AWS's."""

    async def describe_stream_summary(self, **arguments: Any) -> Any: ...

    async def list_shards(self, **arguments: Any) -> Any: ...

    async def get_shard_iterator(self, **arguments: Any) -> Any: ...

    async def get_records(self, **arguments: Any) -> Any:
        """``Records`` of the reply are ``Record`` structs."""
        ...

    async def put_records(self, **arguments: Any) -> Any: ...

    async def close(self) -> None: ...


class KinesisSource:
    """One stream through one client, which it owns: ``aclose`` closes it.

    Args:
        client: made by aioboto3 or aiobotocore (SDK retries off; the decoder is installed here), or a model.
        stream: the stream's name or ARN.
        clock: tells the server's time where a reply has no Date header.
        deadline_s: total time of one request; of those with small answers at most 5 s.
    """

    def __init__(self, client: KinesisClient, stream: str, *, clock: Clock, deadline_s: float = DEADLINE_S) -> None:
        self._client = client
        self._stream = stream.rpartition("/")[2]
        self._arn = {"StreamARN": stream} if stream.startswith("arn:") else {}
        self._naming = self._arn or {"StreamName": stream}
        self._clock = clock
        self._deadline_s, self._short_deadline_s = deadline_s, min(deadline_s, SHORT_DEADLINE_S)
        if hasattr(client, "meta"):
            decode.install(client)

    async def describe(self) -> StreamInfo:
        with request("DescribeStreamSummary", self._stream, deadline_s=self._short_deadline_s, clock=self._clock):
            reply = await self._client.describe_stream_summary(**self._naming)
        summary = reply["StreamDescriptionSummary"]
        return StreamInfo(
            name=summary["StreamName"],
            arn=summary["StreamARN"],
            created_s=int(summary["StreamCreationTimestamp"].timestamp()),
            status=summary["StreamStatus"],
            server_time_s=self._server_time_s(reply),
        )

    async def list_shards(self, at: Position | None = None) -> Listing:
        for _ in range(LISTINGS - 1):
            try:
                return await self._list_shards(at)
            except RequestError as error:
                if error.code != EXPIRED_TOKEN:
                    raise
        return await self._list_shards(at)

    async def _list_shards(self, at: Position | None) -> Listing:
        page = await self._page(**self._naming, **({} if at is None else {"ShardFilter": _filter(at)}))
        server_time_s, shards = self._server_time_s(page), [_shard(shard) for shard in page["Shards"]]
        while token := page.get("NextToken"):
            page = await self._page(NextToken=token)
            shards += [_shard(shard) for shard in page["Shards"]]
        return Listing(tuple(shards), server_time_s)

    async def _page(self, **arguments: Any) -> Any:
        """One page; AWS refuses a token together with a name."""
        with request("ListShards", self._stream, deadline_s=self._short_deadline_s, clock=self._clock):
            return await self._client.list_shards(**arguments)

    async def open(self, shard_id: str, position: Position) -> str:
        arguments: dict[str, Any] = {**self._naming, "ShardId": shard_id, "ShardIteratorType": position.kind.value}
        match position.kind:
            case PositionKind.AT_TIMESTAMP:
                arguments["Timestamp"] = _instant(position.value)
            case PositionKind.AT | PositionKind.AFTER:
                arguments["StartingSequenceNumber"] = str(position.value)
        target, deadline_s = f"{self._stream}/{shard_id}", self._short_deadline_s
        with request("GetShardIterator", target, deadline_s=deadline_s, clock=self._clock):
            reply = await self._client.get_shard_iterator(**arguments)
        return str(reply["ShardIterator"])

    async def fetch(self, shard_id: str, iterator: str, *, limit: int) -> Fetched:
        with request("GetRecords", f"{self._stream}/{shard_id}", deadline_s=self._deadline_s, clock=self._clock):
            reply = await self._client.get_records(ShardIterator=iterator, Limit=limit, **self._arn)
        records: list[Record] = reply["Records"]
        return Fetched(
            records=records,
            next_iterator=reply.get("NextShardIterator") or None,
            children=tuple(_child(child) for child in reply.get("ChildShards") or ()),
            lag_ms=reply.get("MillisBehindLatest") or 0,
            size_bytes=sum(map(len, map(_data, records))),
        )

    async def aclose(self) -> None:
        await self._client.close()

    def _server_time_s(self, reply: Mapping[str, Any]) -> float:
        found = server_time_s(reply)
        return self._clock.time() if found is None else found


def _instant(at_ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=at_ms)


def _filter(at: Position) -> dict[str, Any]:
    if at.kind not in FILTERS:
        raise ValueError(f"cannot list shards at {at.kind}: expected one of {', '.join(FILTERS)}")
    chosen: dict[str, Any] = {"Type": FILTERS[at.kind]}
    return chosen | {"Timestamp": _instant(at.value)} if at.kind is PositionKind.AT_TIMESTAMP else chosen


def _shard(shard: Mapping[str, Any]) -> ShardInfo:
    numbers = shard["SequenceNumberRange"]
    parents = (shard.get("ParentShardId"), shard.get("AdjacentParentShardId"))
    return ShardInfo(
        shard_id=shard["ShardId"],
        parents=tuple(parent for parent in parents if parent),
        hash_range=_hash_range(shard),
        closed=bool(numbers.get("EndingSequenceNumber")),
        starts_at=int(numbers["StartingSequenceNumber"]),
    )


def _child(shard: Mapping[str, Any]) -> ShardInfo:
    """A child as GetRecords names it: its state and first number are not told."""
    return ShardInfo(shard_id=shard["ShardId"], parents=tuple(shard["ParentShards"]), hash_range=_hash_range(shard))


def _hash_range(shard: Mapping[str, Any]) -> tuple[int, int]:
    keys = shard["HashKeyRange"]
    return int(keys["StartingHashKey"]), int(keys["EndingHashKey"])
