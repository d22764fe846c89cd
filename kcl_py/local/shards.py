"""The shards of a stream: listed, split, merged, counted anew."""

from kcl_py.local import requests as ask
from kcl_py.local.account import Account
from kcl_py.local.errors import in_use, invalid, limit_exceeded, not_found, not_valid
from kcl_py.local.hashing import even_ranges
from kcl_py.local.listing import filter_shards
from kcl_py.local.operations import Answer, Operations
from kcl_py.local.quota import Quotas
from kcl_py.local.shard import Shard
from kcl_py.local.stream import ACCOUNT, Change, Mode, Stream
from kcl_py.local.tokens import ShardPage, open_page

MOST_SHARDS = 10_000
"""Of a stream, by UpdateShardCount. Source: Kinesis API reference, UpdateShardCount."""
_LIST_PAGE = 1000


class Shards:
    """The operations on shards within ``account``; ``quotas`` where there are any."""

    def __init__(self, account: Account, quotas: Quotas | None) -> None:
        self._account, self._quotas = account, quotas

    def operations(self) -> Operations:
        return {
            ask.ListShards: self.list_shards,
            ask.MergeShards: self.merge_shards,
            ask.SplitShard: self.split_shard,
            ask.UpdateShardCount: self.update_shard_count,
        }

    def list_shards(self, request: ask.ListShards) -> Answer:
        stream, after, wanted = self._first_page(request) if request.next_token is None else self._next_page(request)
        if not stream.is_usable:
            raise in_use(f"Stream {stream.name} under account {ACCOUNT} is in state {stream.status}")
        now_s = self._account.now_s()
        horizon_s = max(stream.opened_s, now_s - stream.retention_s)
        shards = filter_shards(stream.shards(now_s), wanted, horizon_s=horizon_s)
        rest = [shard for shard in shards if shard.shard_id > after]
        page = rest[: min(request.max_results, _LIST_PAGE)]
        answer: Answer = {"Shards": [shard.describe() for shard in page]}
        if len(page) < len(rest):
            answer["NextToken"] = ShardPage(now_s, stream.name, stream.created_s, page[-1].shard_id, wanted).seal()
        return answer

    def split_shard(self, request: ask.SplitShard) -> Answer:
        stream = self._provisioned(request)
        [shard] = self._eligible(stream, request.shard_to_split)
        first, last = shard.hash_range
        cut = int(request.new_starting_hash_key)
        if not first + 1 < cut < last:
            raise invalid(
                f"NewStartingHashKey {cut} used in SplitShard() on shard {shard.shard_id} in stream {stream.name} "
                f"under account {ACCOUNT} is not both greater than one plus the shard's StartingHashKey {first} and "
                f"less than the shard's EndingHashKey {last}."
            )
        self._account.check_quota(1)
        stream.begin(Change(self._account.due_s(), cuts=(cut,)))
        return {}

    def merge_shards(self, request: ask.MergeShards) -> Answer:
        stream = self._provisioned(request)
        lower, upper = self._eligible(stream, request.shard_to_merge, request.adjacent_shard_to_merge)
        if lower.hash_range[1] + 1 != upper.hash_range[0]:
            raise invalid(
                f"Shards {lower.shard_id} and {upper.shard_id} in stream {stream.name} under account {ACCOUNT} are not "
                "an adjacent pair of shards eligible for merging"
            )
        stream.begin(Change(self._account.due_s(), joins=(upper.hash_range[0],)))
        return {}

    def update_shard_count(self, request: ask.UpdateShardCount) -> Answer:
        stream, target = self._provisioned(request), request.target_shard_count
        stream.check_active()
        starts = [shard.hash_range[0] for shard in stream.open_shards()]
        self._check_target(len(starts), target)
        wanted = [first for first, _ in even_ranges(target)]
        cuts = tuple(sorted(set(wanted).difference(starts)))
        joins = tuple(sorted(set(starts).difference(wanted)))
        if self._quotas is not None:
            self._quotas.scale(stream, self._account.now_s())
        stream.begin(Change(self._account.due_s(), cuts=cuts, joins=joins))
        return {
            "StreamName": stream.name,
            "StreamARN": stream.arn,
            "CurrentShardCount": len(starts),
            "TargetShardCount": target,
        }

    def _check_target(self, current: int, target: int) -> None:
        if target > MOST_SHARDS:
            raise limit_exceeded(f"UpdateShardCount cannot give a stream more than {MOST_SHARDS} shards.")
        for word, is_beyond in (("up over double", target > 2 * current), ("down below half", 2 * target < current)):
            if is_beyond:
                raise invalid(
                    f"UpdateShardCount cannot scale {word} your current open shard count. Current open shard count: "
                    f"{current} Target shard count: {target}"
                )
        self._account.check_quota(target - current)

    def _eligible(self, stream: Stream, *shard_ids: str) -> list[Shard]:
        """Return open shards of a stream that is ACTIVE. Raises ResourceInUseException, ResourceNotFoundException."""
        shards = [stream.shard(shard_id, self._account.now_s()) for shard_id in shard_ids]
        stream.check_active()
        for shard in shards:
            if shard.closed_s is not None:
                raise in_use(
                    f"Shard {shard.shard_id} in stream {stream.name} under account {ACCOUNT} has already been merged "
                    "or split, and thus is not eligible for merging or splitting."
                )
        return shards

    def _provisioned(self, request: ask.StreamRequest) -> Stream:
        stream = self._account.stream(request)
        if stream.mode is not Mode.PROVISIONED:
            raise not_valid(f"Stream {stream.name} is in mode {stream.mode}, not PROVISIONED.")
        return stream

    def _first_page(self, request: ask.ListShards) -> tuple[Stream, str, ask.ShardFilter | None]:
        stream, created_s = self._account.stream(request), request.stream_creation_timestamp
        if created_s is not None and int(created_s) != stream.created_s:
            raise not_found(f"Stream {stream.name} under account {ACCOUNT} of another time not found.")
        return stream, request.exclusive_start_shard_id or "", request.shard_filter

    def _next_page(self, request: ask.ListShards) -> tuple[Stream, str, ask.ShardFilter | None]:
        """Return what the token stands for: the stream, the shard to go on after, the filter."""
        others = (
            request.stream_name,
            request.stream_creation_timestamp,
            request.exclusive_start_shard_id,
            request.shard_filter,
        )
        if any(other is not None for other in others):
            raise invalid("NextToken and StreamName, or another choice of shards, cannot be provided together.")
        page = open_page(ShardPage, request.next_token or "", self._account.now_s())
        return self._account.same(page.stream, page.created_s), page.after, page.shard_filter
