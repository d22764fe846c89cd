"""Enhanced fan-out: consumers registered with a stream, and their subscriptions to its shards."""

from collections.abc import Callable

from kcl_py.local import requests as ask
from kcl_py.local.account import Account
from kcl_py.local.consumer import Consumer
from kcl_py.local.encryption import check_key
from kcl_py.local.errors import in_use, limit_exceeded, not_found
from kcl_py.local.iterators import start_position
from kcl_py.local.operations import Answer, Operations
from kcl_py.local.shard import EndShape, Shard
from kcl_py.local.stream import ACCOUNT, Stream
from kcl_py.local.subscription import Subscription
from kcl_py.local.tokens import ConsumerPage, open_page

MOST_CONSUMERS = 20
"""Of a stream. Source: Kinesis API reference, RegisterStreamConsumer."""
MOST_CREATING = 5
"""Consumers in CREATING at a time. Source: the same."""
_LIST_PAGE = 100


class Consumers:
    """The operations on consumers within ``account``.

    Args:
        account: its streams have the consumers.
        end_shape: how a closed shard's end is told.
        is_paced: whether a subscription gives no more than 2 MB a second.
        keep: keeps what changed before a subscription shows it. Raises ModelError if that cannot be.
    """

    def __init__(self, account: Account, end_shape: EndShape, *, is_paced: bool, keep: Callable[[], None]) -> None:
        self._account, self._end_shape, self._is_paced, self._keep = account, end_shape, is_paced, keep

    def operations(self) -> Operations:
        return {
            ask.DeregisterStreamConsumer: self.deregister,
            ask.DescribeStreamConsumer: self.describe,
            ask.ListStreamConsumers: self.list_consumers,
            ask.RegisterStreamConsumer: self.register,
            ask.SubscribeToShard: self.subscribe,
        }

    def register(self, request: ask.RegisterStreamConsumer) -> Answer:
        stream, name, now_s = self._account.usable(request), request.consumer_name, self._account.now_s()
        registered = self._account.consumers(stream)
        if name in stream.consumers:
            raise in_use(f"Consumer {name} under stream {stream.name} already exists for account {ACCOUNT}.")
        if len(registered) >= MOST_CONSUMERS:
            raise limit_exceeded(f"Stream {stream.name} may have {MOST_CONSUMERS} consumers.")
        if sum(consumer.status(now_s) == "CREATING" for consumer in registered) >= MOST_CREATING:
            raise limit_exceeded(f"Stream {stream.name} may have {MOST_CREATING} consumers in CREATING at a time.")
        created_s = max([int(now_s), *(consumer.created_s + 1 for consumer in registered)])
        consumer = Consumer(name, stream_arn=stream.arn, created_s=created_s, active_s=self._account.due_s())
        consumer.tags |= request.tags or {}
        stream.consumers[name] = consumer
        return {"Consumer": consumer.describe(now_s)}

    def deregister(self, request: ask.DeregisterStreamConsumer) -> Answer:
        consumer = self._account.named_consumer(request)
        if consumer.gone_s is None:
            consumer.gone_s = self._account.due_s()
        return {}

    def describe(self, request: ask.DescribeStreamConsumer) -> Answer:
        consumer = self._account.named_consumer(request)
        return {
            "ConsumerDescription": consumer.describe(self._account.now_s()) | {"StreamARN": consumer.stream_arn},
        }

    def list_consumers(self, request: ask.ListStreamConsumers) -> Answer:
        stream, now_s, after = self._account.stream(request), self._account.now_s(), ""
        if request.next_token is not None:
            after = open_page(ConsumerPage, request.next_token, now_s).after
        rest = [consumer for consumer in self._account.consumers(stream) if consumer.name > after]
        page = rest[: min(request.max_results, _LIST_PAGE)]
        answer: Answer = {"Consumers": [consumer.describe(now_s) for consumer in page]}
        if len(page) < len(rest):
            answer["NextToken"] = ConsumerPage(now_s, stream.name, page[-1].name).seal()
        return answer

    def subscribe(self, request: ask.SubscribeToShard) -> Answer:
        """Return the ``Subscription`` as its EventStream."""
        stream, consumer = self._account.consumer(request.consumer_arn)
        now_s = self._account.now_s()
        if consumer.status(now_s) != "ACTIVE" or not stream.is_usable:
            raise in_use(f"Consumer {consumer.name} of stream {stream.name} is not ACTIVE.")
        shard, start = stream.shard(request.shard_id, now_s), request.starting_position
        position = start_position(
            shard, start.type, number=start.sequence_number, time_s=start.timestamp, stream=stream.name, now_s=now_s
        )
        before = consumer.subscriptions.get(shard.index)
        if before is not None:
            before.take_over(now_s)
        subscription = Subscription(
            lambda: self._find(stream, consumer, shard.index),
            position,
            begun_s=now_s,
            end_shape=self._end_shape,
            is_paced=self._is_paced,
        )
        consumer.subscriptions[shard.index] = subscription
        return {"EventStream": subscription}

    def _find(self, stream: Stream, consumer: Consumer, index: int) -> Shard:
        """Return a subscription's shard as it is now, or raise what ends the subscription."""
        found = self._account.same(stream.name, stream.created_s)
        if consumer not in self._account.consumers(found) or consumer.gone_s is not None:
            raise not_found(f"Consumer {consumer.name}, stream {stream.name} under account {ACCOUNT} not found.")
        check_key(found)
        self._keep()
        return found.shard_at(index, self._account.now_s())
