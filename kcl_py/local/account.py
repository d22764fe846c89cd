"""The streams of one account in one region: found by name or ARN, created within the account's quota."""

from collections.abc import Iterable

from actors.clock import Clock
from kcl_py.local.consumer import Consumer
from kcl_py.local.errors import in_use, invalid, limit_exceeded, not_found
from kcl_py.local.hashing import even_ranges
from kcl_py.local.requests import ConsumerRequest, StreamRequest
from kcl_py.local.stream import ACCOUNT, Change, Mode, Stream

SHARD_QUOTA = 20_000
"""Open shards of the account. Source: Kinesis quotas, us-east-1."""
ON_DEMAND_QUOTA = 50
"""ON_DEMAND streams of the account. Source: Kinesis quotas."""
CREATING_QUOTA = 5
"""Streams in CREATING at a time. Source: Kinesis API reference, CreateStream."""


class Account:
    """Streams by name, each shown as it is at the clock's time: what was due has happened."""

    def __init__(self, clock: Clock, *, region: str, delay_s: float) -> None:
        self._clock, self.region, self._delay_s = clock, region, delay_s
        self._streams: dict[str, Stream] = {}
        self._created: dict[str, int] = {}
        self.asked: Stream | None = None
        """The stream that was asked for last."""
        self.changed: dict[Stream, None] = {}
        """Streams of which anything but records is other than it was; whoever keeps them elsewhere clears it."""

    def now_s(self) -> float:
        return self._clock.time()

    def due_s(self) -> float:
        """Return when a change that begins now is done."""
        return self._clock.time() + self._delay_s

    def create(self, name: str, shard_count: int, *, mode: Mode, delay_s: float) -> Stream:
        """Add a stream that is ACTIVE after ``delay_s``. Raises ResourceInUseException, LimitExceededException."""
        if self.find(name):
            raise in_use(f"Stream {name} under account {ACCOUNT} already exists.")
        self.check_quota(shard_count)
        self._check_streams(mode, is_creating=delay_s > 0)
        now_s = self._clock.time()
        # Whole seconds, as on AWS, where no name comes back within one: so a later stream always differs.
        created_s = max(int(now_s), self._created.get(name, -1) + 1)
        change = Change(now_s + delay_s, even_ranges(shard_count))
        stream = Stream(name, region=self.region, created_s=created_s, mode=mode, change=change)
        self.adopt([stream])
        self.note(stream)
        return stream

    def note(self, stream: Stream | None) -> None:
        """Note that ``stream``, if it is one, has changed."""
        if stream is not None:
            self.changed[stream] = None

    def adopt(self, streams: Iterable[Stream]) -> None:
        """Add streams as they are."""
        for stream in streams:
            self._streams[stream.name], self._created[stream.name] = stream, stream.created_s

    def check_quota(self, more: int) -> None:
        """Raise LimitExceededException if ``more`` shards are too many."""
        count = self.shard_count()
        if count + more > SHARD_QUOTA:
            raise limit_exceeded(
                f"This request would exceed the shard limit for the account {ACCOUNT} in {self.region}. Current shard "
                f"count for the account: {count}. Limit: {SHARD_QUOTA}. Number of additional shards that would have "
                f"resulted from this request: {more}."
            )

    def _check_streams(self, mode: Mode, *, is_creating: bool) -> None:
        if mode is Mode.ON_DEMAND and self.on_demand_count() >= ON_DEMAND_QUOTA:
            raise limit_exceeded(f"Account {ACCOUNT} may have {ON_DEMAND_QUOTA} streams in ON_DEMAND mode.")
        if is_creating and sum(stream.status == "CREATING" for stream in self.all()) >= CREATING_QUOTA:
            raise limit_exceeded(f"Account {ACCOUNT} may have {CREATING_QUOTA} streams in state CREATING at a time.")

    def shard_count(self) -> int:
        """Return how many shards are open."""
        return sum(len(stream.open_shards()) for stream in self.all())

    def on_demand_count(self) -> int:
        return sum(stream.mode is Mode.ON_DEMAND for stream in self.all())

    def find(self, name: str) -> Stream | None:
        stream, now_s = self._streams.get(name), self._clock.time()
        if stream is None:
            return None
        if stream.gone_s is not None and stream.gone_s <= now_s:
            del self._streams[name]
            self.note(stream)
            return None
        if stream.settle(now_s):
            self.note(stream)
        return stream

    def all(self) -> list[Stream]:
        """Return the streams in the order of their names."""
        return [stream for name in sorted(self._streams) if (stream := self.find(name))]

    def stream(self, request: StreamRequest) -> Stream:
        """Return the stream that ``request`` names. Raises ResourceNotFoundException, InvalidArgumentException."""
        name, arn = request.stream_name, request.stream_arn
        if name is None and arn is None:
            raise invalid("Either StreamName or StreamARN is needed.")
        if name is not None and arn is not None and name != arn.partition(":stream/")[2]:
            raise invalid(f"StreamName {name} and StreamARN {arn} name different streams.")
        return self.by_arn(arn) if arn is not None else self._known(name or "")

    def by_arn(self, arn: str) -> Stream:
        """Return a stream by its ARN. Raises ResourceNotFoundException."""
        owner, _, name = arn.partition(":stream/")
        return self._known(name if owner.endswith(f":{ACCOUNT}") else arn)

    def usable(self, request: StreamRequest) -> Stream:
        """Return the stream, ready for records. Raises ResourceNotFoundException while it is created or deleted."""
        stream = self.stream(request)
        if not stream.is_usable:
            raise not_found(f"Stream {stream.name} under account {ACCOUNT} not found.")
        return stream

    def same(self, name: str, created_s: int) -> Stream:
        """Return the stream that a token was made for, ready for records. Raises ResourceNotFoundException."""
        stream = self.find(name)
        if stream is None or stream.created_s != created_s or not stream.is_usable:
            raise not_found(f"Stream {name} under account {ACCOUNT} not found.")
        return stream

    def consumers(self, stream: Stream) -> list[Consumer]:
        """Return the consumers of ``stream`` in the order of their names."""
        now_s = self._clock.time()
        gone = [name for name, consumer in stream.consumers.items() if consumer.is_gone(now_s)]
        for name in gone:
            del stream.consumers[name]
            self.note(stream)
        return [stream.consumers[name] for name in sorted(stream.consumers)]

    def consumer(self, arn: str) -> tuple[Stream, Consumer]:
        """Return a consumer by its ARN, with its stream. Raises ResourceNotFoundException."""
        stream_arn, _, name = arn.partition("/consumer/")
        stream = self.by_arn(stream_arn)
        for consumer in self.consumers(stream):
            if consumer.arn == arn:
                return stream, consumer
        raise not_found(f"Consumer {name.partition(':')[0]}, stream {stream.name} under account {ACCOUNT} not found.")

    def named_consumer(self, request: ConsumerRequest) -> Consumer:
        """Return the consumer that ``request`` names. Raises ResourceNotFoundException, InvalidArgumentException."""
        if request.consumer_arn is not None:
            return self.consumer(request.consumer_arn)[1]
        if request.stream_arn is None or request.consumer_name is None:
            raise invalid("Either ConsumerARN, or StreamARN and ConsumerName are needed.")
        stream = self.by_arn(request.stream_arn)
        for consumer in self.consumers(stream):
            if consumer.name == request.consumer_name:
                return consumer
        raise not_found(f"Consumer {request.consumer_name}, stream {stream.name} under account {ACCOUNT} not found.")

    def _known(self, name: str) -> Stream:
        stream = self.asked = self.find(name)
        if stream is None:
            raise not_found(f"Stream {name} under account {ACCOUNT} not found.")
        return stream
