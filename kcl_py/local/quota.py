"""How fast the account and each shard may be used: AWS's rates. Pure; times are Unix seconds of the service's clock.

Every rate is counted in whole seconds. What one call takes above its second's share is taken from the seconds after it,
as AWS does: after 10 MB from one shard the next five seconds are refused.
"""

from collections import deque
from weakref import WeakKeyDictionary

from kcl_py.local import requests as ask
from kcl_py.local.errors import ModelError, limit_exceeded
from kcl_py.local.shard import Shard
from kcl_py.local.stream import Stream

MIB = 1024 * 1024
WRITES_PER_S, WRITTEN_BYTES_PER_S = 1000, MIB
"""Source: Kinesis quotas, 1,000 records and 1 MB a second into each shard; keys count."""
READS_PER_S, READ_BYTES_PER_S = 5, 2 * MIB
"""Source: Kinesis quotas, five GetRecords and 2 MB a second from each shard, for all who poll it together."""
ITERATORS_PER_S = 5
"""Source: Kinesis quotas, GetShardIterator, for each shard."""
CALLS_PER_S: dict[type[ask.Request], int] = {
    ask.AddTagsToStream: 5,
    ask.CreateStream: 5,
    ask.DecreaseStreamRetentionPeriod: 5,
    ask.DeleteStream: 5,
    ask.DescribeLimits: 1,
    ask.DescribeStream: 10,
    ask.DescribeStreamSummary: 20,
    ask.IncreaseStreamRetentionPeriod: 5,
    ask.ListStreams: 5,
    ask.ListTagsForStream: 5,
    ask.MergeShards: 5,
    ask.RegisterStreamConsumer: 5,
    ask.RemoveTagsFromStream: 5,
    ask.SplitShard: 5,
    ask.UpdateShardCount: 10,
}
"""Calls of the account. Source: Kinesis quotas, API limits; API reference, UpdateShardCount."""
STREAM_CALLS_PER_S: dict[type[ask.Request], int] = {
    ask.DeregisterStreamConsumer: 5,
    ask.DescribeStreamConsumer: 20,
    ask.ListShards: 1000,
    ask.ListStreamConsumers: 5,
}
"""Calls for each stream. Source: the same."""
SCALINGS, DAY_S = 10, 24 * 3600.0
"""UpdateShardCount for each stream, in any 24 hours. Source: API reference, UpdateShardCount."""


class Window:
    """What was used of one rate in the current second, and in advance."""

    def __init__(self, calls: int, size_bytes: float = float("inf")) -> None:
        self._most_calls, self._most_bytes = calls, size_bytes
        self._second, self._calls, self._bytes = 0, 0, 0.0

    def admits(self, size_bytes: int, now_s: float) -> bool:
        """Count a call that moves ``size_bytes`` and return True, or return False if it is one too many.

        A call greater than a whole second's share passes when nothing else was moved, and takes of the next seconds.
        """
        if (passed := int(now_s) - self._second) != 0:
            self._second, self._calls = int(now_s), 0
            self._bytes = max(0.0, self._bytes - self._most_bytes * passed) if passed > 0 and self._bytes else 0.0
        if self._calls >= self._most_calls or (self._bytes and self._bytes + size_bytes > self._most_bytes):
            return False
        self._calls += 1
        self._bytes += size_bytes
        return True

    def charge(self, size_bytes: int) -> None:
        """Count what a call that was admitted turned out to move."""
        self._bytes += size_bytes


class Quotas:
    """All rates of one account. Where rates are off there is no such object."""

    def __init__(self) -> None:
        self._calls: dict[type[ask.Request], Window] = {kind: Window(most) for kind, most in CALLS_PER_S.items()}
        self._second, self._stream_calls = 0, dict[tuple[type[ask.Request], str], Window]()
        self._scalings: WeakKeyDictionary[Stream, deque[float]] = WeakKeyDictionary()
        self._writes: WeakKeyDictionary[Shard, Window] = WeakKeyDictionary()
        self._reads: WeakKeyDictionary[Shard, Window] = WeakKeyDictionary()
        self._iterators: WeakKeyDictionary[Shard, Window] = WeakKeyDictionary()

    def call(self, request: ask.Request, now_s: float) -> None:
        """Count a call of the account, for its stream where rates are by stream. Raises LimitExceededException."""
        kind = type(request)
        window = self._calls.get(kind) or self._stream_window(request, now_s)
        if window is not None and not window.admits(0, now_s):
            most = CALLS_PER_S.get(kind) or STREAM_CALLS_PER_S[kind]
            raise limit_exceeded(f"Rate exceeded: {kind.__name__} may be called {most} times a second.")

    def _stream_window(self, request: ask.Request, now_s: float) -> Window | None:
        most = STREAM_CALLS_PER_S.get(type(request))
        if most is None:
            return None
        if int(now_s) != self._second:
            self._second = int(now_s)
            self._stream_calls.clear()
        return self._stream_calls.setdefault((type(request), _stream_name(request)), Window(most))

    def scale(self, stream: Stream, now_s: float) -> None:
        """Count an UpdateShardCount that is about to be done. Raises LimitExceededException."""
        times = self._scalings.setdefault(stream, deque())
        while times and times[0] <= now_s - DAY_S:
            times.popleft()
        if len(times) >= SCALINGS:
            raise limit_exceeded(f"Stream {stream.name} may be scaled {SCALINGS} times in 24 hours.")
        times.append(now_s)

    def write(self, shard: Shard, size_bytes: int, now_s: float) -> None:
        """Count a record. Raises ProvisionedThroughputExceededException."""
        if not self._writes.setdefault(shard, Window(WRITES_PER_S, WRITTEN_BYTES_PER_S)).admits(size_bytes, now_s):
            raise _too_fast(shard)

    def read(self, shard: Shard, now_s: float) -> Window:
        """Count a GetRecords, to be charged with its bytes. Raises ProvisionedThroughputExceededException."""
        window = self._reads.setdefault(shard, Window(READS_PER_S, READ_BYTES_PER_S))
        if not window.admits(1, now_s):
            raise _too_fast(shard)
        return window

    def iterator(self, shard: Shard, now_s: float) -> None:
        """Count a GetShardIterator. Raises ProvisionedThroughputExceededException."""
        if not self._iterators.setdefault(shard, Window(ITERATORS_PER_S)).admits(0, now_s):
            raise _too_fast(shard)


def _stream_name(request: ask.Request) -> str:
    """Return the name of the stream that a request is about; nothing if only a token says it."""
    named: str | None = getattr(request, "stream_name", None)
    arn = getattr(request, "consumer_arn", None) or getattr(request, "stream_arn", None) or ""
    return named or arn.partition(":stream/")[2].partition("/")[0]


def _too_fast(shard: Shard) -> ModelError:
    return ModelError(
        "ProvisionedThroughputExceededException", f"Rate exceeded for shard {shard.shard_id}; slow down and try again."
    )
