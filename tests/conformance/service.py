"""A Kinesis as the conformance cases see it, without an SDK's opinions: names, dicts and AWS's error codes."""

import http.client
import json
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec
from botocore.eventstream import EventStreamBuffer

from kcl_py.local import cbor
from kcl_py.local.errors import ModelError
from kcl_py.local.subscription import Subscription
from kcl_py.local.tongues import CBOR
from tests.kcl_py.local.world import World

TIMEOUT_S = 60.0
CHANGE_S = 1.0
"""How long creating, splitting and the like take, where ours is asked with a clock that can be moved."""
_JSON = "application/x-amz-json-1.1"
_HEADERS = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/kinesis/aws4_request, "
    "SignedHeaders=host;x-amz-date;x-amz-target, Signature=0",
    "X-Amz-Date": "20260101T000000Z",
}

Answer = dict[str, Any]
Events = Iterator[tuple[str, Answer]]
"""Types of events, exceptions as ``:CODE``, with payloads."""


class RefusedError(Exception):
    """A call was answered with an error."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Service(Protocol):
    """What a case needs. ``Data`` is bytes on the way in and out."""

    def call(self, operation: str, **params: Any) -> Answer:
        """Return the answer. Raises RefusedError."""
        ...

    def events(self, within_s: float, **params: Any) -> Events:
        """Subscribe and yield what comes within a time."""
        ...

    def now_s(self) -> float: ...

    def wait(self, pause_s: float) -> None: ...


class InMemory:
    """The model, called directly."""

    def __init__(self, *, with_rates: bool = False) -> None:
        self._world = World(delay_s=CHANGE_S, limit_rates=with_rates)

    def call(self, operation: str, **params: Any) -> Answer:
        try:
            answer = self._world.call(operation, **params)
        except ModelError as refusal:
            raise RefusedError(refusal.code) from refusal
        return _plain(answer)

    def events(self, within_s: float, **params: Any) -> Events:
        try:
            subscription: Subscription = self._world.call("SubscribeToShard", **params)["EventStream"]
            until_s = self.now_s() + within_s
            while not subscription.is_over and self.now_s() < until_s:
                event = subscription.event(self.now_s())
                if event is None:
                    self.wait(0.05)
                else:
                    yield "SubscribeToShardEvent", _plain(event)
        except ModelError as refusal:
            raise RefusedError(refusal.code) from refusal

    def now_s(self) -> float:
        return self._world.clock.now_s

    def wait(self, pause_s: float) -> None:
        self._world.clock.now_s += pause_s


class OverHttp:
    """A server; ``now_s`` and ``wait`` are the machine's unless it has a clock of its own."""

    def __init__(
        self, url: str, now_s: Callable[[], float] = time.time, wait: Callable[[float], None] = time.sleep
    ) -> None:
        self._netloc, self._now_s, self._wait = urlsplit(url).netloc, now_s, wait

    def call(self, operation: str, **params: Any) -> Answer:
        with self._sent(operation, json.dumps(params, default=_base64).encode(), _JSON) as reply:
            return _parsed(reply.read())

    def call_in_cbor(self, operation: str, **params: Any) -> Answer:
        """Ask and be answered in CBOR."""
        with self._sent(operation, cbor.encode(params), CBOR) as reply:
            answer: Answer = cbor.decode(reply.read())
        return answer

    def events(self, within_s: float, **params: Any) -> Events:
        buffer, until_s = EventStreamBuffer(), self._now_s() + within_s
        with self._sent("SubscribeToShard", json.dumps(params).encode(), _JSON) as reply:
            while self._now_s() < until_s and (chunk := reply.read1(1 << 16)):
                buffer.add_data(chunk)
                for message in buffer:
                    headers: Any = message.headers
                    kind = headers.get(":event-type") or f":{headers[':exception-type']}"
                    yield str(kind), _parsed(message.payload)

    def now_s(self) -> float:
        return self._now_s()

    def wait(self, pause_s: float) -> None:
        self._wait(pause_s)

    @contextmanager
    def _sent(self, operation: str, body: bytes, kind: str) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(self._netloc, timeout=TIMEOUT_S)
        try:
            headers = _HEADERS | {"X-Amz-Target": f"Kinesis_20131202.{operation}", "Content-Type": kind}
            connection.request("POST", "/", body, headers)
            reply = connection.getresponse()
            if reply.status != 200:
                raise RefusedError(_code(reply.status, reply.read()))
            yield reply
        except TimeoutError:
            raise RefusedError("no answer") from None
        finally:
            connection.close()


class Stream:
    """A stream of its own for one case, and short words for what cases do with it."""

    _numbers = count()

    def __init__(self, service: Service, shards: int = 1, **more: Any) -> None:
        self.service, self.name = service, f"case-{next(self._numbers)}-{int(service.now_s() * 1000)}"
        try:
            service.call("CreateStream", StreamName=self.name, ShardCount=shards, **more)
            self.settle()
            self.arn: str = self.summary()["StreamARN"]
        except RefusedError as error:
            raise RefusedError(f"no stream: {error.code}") from error

    def call(self, operation: str, **params: Any) -> Answer:
        return self.service.call(operation, StreamName=self.name, **params)

    def summary(self) -> Answer:
        found: Answer = self.call("DescribeStreamSummary")["StreamDescriptionSummary"]
        return found

    def settle(self) -> None:
        """Wait until it is ACTIVE."""
        for _ in range(100):
            self.service.wait(0.06)
            if self.summary()["StreamStatus"] == "ACTIVE":
                return
        raise RefusedError("never ACTIVE")

    def shards(self, **more: Any) -> list[Answer]:
        found: list[Answer] = self.call("ListShards", **more)["Shards"]
        return found

    def filtered(self, kind: str, **more: Any) -> str:
        """Return the numbers of the shards that a filter lets through."""
        return numbers(self.shards(ShardFilter={"Type": kind, **more}))

    def open_shards(self) -> list[Answer]:
        """Return the shards that have no end, in the order of the ring."""
        found = [shard for shard in self.shards() if not shard["SequenceNumberRange"].get("EndingSequenceNumber")]
        return sorted(found, key=lambda shard: int(shard["HashKeyRange"]["StartingHashKey"]))

    def put(self, data: bytes = b"x", key: str = "k", **more: Any) -> str:
        found: str = self.call("PutRecord", Data=data, PartitionKey=key, **more)["SequenceNumber"]
        return found

    def split(self, shard_id: str = "shardId-000000000000") -> None:
        """Split a shard in the middle and wait for it."""
        [ends] = [shard["HashKeyRange"] for shard in self.shards() if shard["ShardId"] == shard_id]
        middle = (int(ends["StartingHashKey"]) + int(ends["EndingHashKey"]) + 1) // 2
        self.call("SplitShard", ShardToSplit=shard_id, NewStartingHashKey=str(middle))
        self.settle()

    def iterator(self, kind: str = "TRIM_HORIZON", shard_id: str = "shardId-000000000000", **more: Any) -> str:
        found: str = self.call("GetShardIterator", ShardId=shard_id, ShardIteratorType=kind, **more)["ShardIterator"]
        return found

    def get(self, iterator: str, **more: Any) -> Answer:
        return self.service.call("GetRecords", ShardIterator=iterator, **more)

    def data(self, kind: str = "TRIM_HORIZON", **more: Any) -> str:
        """Return the payloads of the first page from a place."""
        return b" ".join(record["Data"] for record in self.get(self.iterator(kind, **more))["Records"]).decode()

    def pages(self, operation: str, items: str, limit: str, token: str, **params: Any) -> str:
        """Return the numbers of items on each page of a listing of one item at a time."""
        counts, more = [], dict(params)
        for _ in range(10):
            page = self.service.call(operation, **more, **{limit: 1})
            counts.append(str(len(page[items])))
            if not page.get(token):
                break
            more = params | {token: page[token]}
        return " ".join(counts)

    def consumer(self, name: str = "c") -> str:
        """Register a consumer and wait for it; return its ARN."""
        params = {"StreamARN": self.arn, "ConsumerName": name}
        arn: str = self.service.call("RegisterStreamConsumer", **params)["Consumer"]["ConsumerARN"]
        for _ in range(100):
            self.service.wait(0.06)
            found = self.service.call("DescribeStreamConsumer", ConsumerARN=arn)["ConsumerDescription"]
            if found["ConsumerStatus"] == "ACTIVE":
                return arn
        raise RefusedError("consumer never ACTIVE")


def numbers(shards: list[Answer]) -> str:
    """Return the numbers in the shards' ids."""
    return " ".join(str(int(shard["ShardId"][-12:])) for shard in shards)


def refusal(call: Callable[[], object]) -> str:
    """Return the code that a call is refused with, or ``taken``."""
    try:
        call()
    except RefusedError as error:
        return error.code
    return "taken"


def is_refused(call: Callable[[], object]) -> str:
    """Return ``refused``, whatever the code, or ``taken``."""
    code = refusal(call)
    return "refused" if code.endswith("Exception") else code


def _plain(answer: Answer) -> Answer:
    """Return an answer of the model as a client sees it."""
    found: Answer = msgspec.to_builtins(answer, builtin_types=(bytes,), enc_hook=lambda value: value)
    return found


def _parsed(body: bytes) -> Answer:
    answer: Answer = json.loads(body or b"{}")
    for record in answer.get("Records", []):
        if "Data" in record:
            record["Data"] = b64decode(record["Data"])
    return answer


def _base64(value: bytes) -> str:
    return b64encode(value).decode()


def _code(status: int, body: bytes) -> str:
    try:
        return str(json.loads(body)["__type"]).rpartition("#")[2]
    except (ValueError, KeyError, TypeError):
        return f"HTTP {status}"
