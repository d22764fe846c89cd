"""The streams of one account in one region: found by name or ARN, created within the account's quota."""

from actors.clock import Clock
from kcl_py.local.errors import ModelError, in_use, invalid, not_found
from kcl_py.local.hashing import even_ranges
from kcl_py.local.requests import StreamRequest
from kcl_py.local.stream import ACCOUNT, Mode, Reshard, Stream

SHARD_QUOTA = 20_000
"""Open shards of the account. Source: Kinesis quotas, us-east-1."""


class Account:
    """Streams by name, each shown as it is at the clock's time: what was due has happened."""

    def __init__(self, clock: Clock, *, region: str) -> None:
        self._clock, self._region = clock, region
        self._streams: dict[str, Stream] = {}
        self._created: dict[str, int] = {}

    def create(self, name: str, shard_count: int, *, mode: Mode, delay_s: float) -> None:
        """Add a stream that is ACTIVE after ``delay_s``. Raises ResourceInUseException, LimitExceededException."""
        if self.find(name):
            raise in_use(f"Stream {name} under account {ACCOUNT} already exists.")
        self.check_quota(shard_count)
        now_s = self._clock.time()
        # Whole seconds, as on AWS, where no name comes back within one: so a later stream always differs.
        created_s = max(int(now_s), self._created.get(name, -1) + 1)
        change = Reshard(now_s + delay_s, (), even_ranges(shard_count))
        self._streams[name] = Stream(name, region=self._region, created_s=created_s, mode=mode, change=change)
        self._created[name] = created_s

    def check_quota(self, more: int) -> None:
        """Raise LimitExceededException if ``more`` shards are too many."""
        count = sum(len(stream.open_shards()) for stream in self.all())
        if count + more > SHARD_QUOTA:
            raise ModelError(
                "LimitExceededException",
                f"This request would exceed the shard limit for the account {ACCOUNT} in {self._region}. Current shard "
                f"count for the account: {count}. Limit: {SHARD_QUOTA}. Number of additional shards that would have "
                f"resulted from this request: {more}.",
            )

    def find(self, name: str) -> Stream | None:
        stream, now_s = self._streams.get(name), self._clock.time()
        if stream is None:
            return None
        if stream.gone_s is not None and stream.gone_s <= now_s:
            del self._streams[name]
            return None
        stream.settle(now_s)
        return stream

    def all(self) -> list[Stream]:
        """Return the streams in the order of their names."""
        return [stream for name in sorted(self._streams) if (stream := self.find(name))]

    def stream(self, request: StreamRequest) -> Stream:
        """Return the stream that ``request`` names. Raises ResourceNotFoundException, InvalidArgumentException."""
        name, arn = request.stream_name, request.stream_arn
        if name is None and arn is None:
            raise invalid("Either StreamName or StreamARN is needed.")
        owner, _, arn_name = (arn or f":{ACCOUNT}:stream/{name}").partition(":stream/")
        if name is not None and name != arn_name:
            raise invalid(f"StreamName {name} and StreamARN {arn} name different streams.")
        stream = self.find(arn_name) if owner.endswith(f":{ACCOUNT}") else None
        if stream is None:
            raise not_found(f"Stream {arn or name} under account {ACCOUNT} not found.")
        return stream

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
