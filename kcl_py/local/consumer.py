"""One registered consumer of a stream: its life, and its subscription to each shard. Times are Unix seconds."""

from typing import Any

from kcl_py.local.subscription import Subscription


class Consumer:
    """CREATING until ``active_s``; DELETING, and then gone, once ``gone_s`` is set."""

    def __init__(self, name: str, *, stream_arn: str, created_s: int, active_s: float) -> None:
        self.name, self.stream_arn, self.created_s, self.active_s = name, stream_arn, created_s, active_s
        self.arn = f"{stream_arn}/consumer/{name}:{created_s}"
        self.gone_s: float | None = None
        self.tags: dict[str, str] = {}
        self.subscriptions: dict[int, Subscription] = {}
        """The newest to each shard, by the shard's number; it may be over."""

    def status(self, now_s: float) -> str:
        if self.gone_s is not None:
            return "DELETING"
        return "CREATING" if now_s < self.active_s else "ACTIVE"

    def is_gone(self, now_s: float) -> bool:
        return self.gone_s is not None and self.gone_s <= now_s

    def describe(self, now_s: float) -> dict[str, Any]:
        """Return the consumer as RegisterStreamConsumer and ListStreamConsumers show it."""
        return {
            "ConsumerName": self.name,
            "ConsumerARN": self.arn,
            "ConsumerStatus": self.status(now_s),
            "ConsumerCreationTimestamp": float(self.created_s),
        }
