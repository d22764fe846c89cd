"""One subscription of a consumer to a shard: what SubscribeToShard pushes, as events to be asked for.

Nothing runs in here: whoever serves it asks ``event`` again and again. Times are Unix seconds.
"""

from collections.abc import Callable
from typing import Any

from kcl_py.local.errors import ModelError, in_use
from kcl_py.local.shard import EndShape, Shard

LIFE_S = 300.0
"""How long a subscription lasts. Source: Kinesis API reference, SubscribeToShard."""
HOLD_S = 5.0
"""How soon after a subscription another is refused; later it takes over. Source: the same."""
HEARTBEAT_S = 4.0
"""After how long an event without records comes: a little before the five seconds that AWS promises at most."""
POLL_S = 0.05
"""How often whoever serves a subscription that has nothing asks again."""
EVENT_BYTES = 1024 * 1024
"""Payloads and keys of one event, unless one record is greater: far below the 24 MB that botocore takes."""
EVENT_RECORDS = 10_000
BYTES_PER_S = 2 * 1024 * 1024
"""Source: Kinesis quotas, 2 MB a second for each consumer from each shard."""

Event = dict[str, Any]


class Subscription:
    """Events of one shard from ``position`` on, until ``is_over``.

    Args:
        find: returns the shard as it is at a time, or raises what ends the subscription: the stream is gone, say.
        end_shape: whether the children come with the last records or after them.
        is_paced: whether it gives no more than its share of each second.
    """

    def __init__(
        self, find: Callable[[], Shard], position: int, *, begun_s: float, end_shape: EndShape, is_paced: bool
    ) -> None:
        self._find, self._position, self.begun_s = find, position, begun_s
        self._end_shape, self._is_paced = end_shape, is_paced
        self._quiet_until_s, self._next_event_s = begun_s, begun_s
        self._is_taken_over = False
        self.is_over = False

    def take_over(self, now_s: float) -> None:
        """End in favour of another. Raises ResourceInUseException if it began less than five seconds ago."""
        if now_s - self.begun_s < HOLD_S:
            raise in_use("Another active subscription exists for this consumer and shard.")
        self._is_taken_over = True

    def event(self, now_s: float) -> Event | None:
        """Return the next event, or None if there is none yet or never will be (see ``is_over``).

        Raises:
            ModelError: what ends the stream of events in AWS's terms: ResourceInUseException after a takeover,
                ResourceNotFoundException, a KMS error.
        """
        if self.is_over:
            return None
        try:
            return self._event(now_s)
        except ModelError:
            self.is_over = True
            raise

    def _event(self, now_s: float) -> Event | None:
        if self._is_taken_over:
            raise in_use("Another subscription took over.")
        if now_s - self.begun_s >= LIFE_S:
            self.is_over = True
            return None
        shard = self._find()
        position = max(self._position, shard.start)
        records = shard.page(position, EVENT_RECORDS, EVENT_BYTES) if now_s >= self._next_event_s else []
        end = position + len(records)
        is_told = end == shard.end and (self._end_shape is EndShape.WITH_LAST or not records)
        if is_told and shard.closed_s is not None:
            self.is_over = True
            children = [child.describe_as_child() for child in shard.children]
            return {"Records": records, "MillisBehindLatest": 0, "ChildShards": children}
        if not records and now_s < self._quiet_until_s:
            return None
        self._position, self._quiet_until_s = end, now_s + HEARTBEAT_S
        if self._is_paced:
            self._next_event_s = now_s + shard.bytes_between(position, end) / BYTES_PER_S
        last = records[-1].sequence_number if records else shard.number_before(end, now_s)
        behind_ms = 0 if end == shard.end or not records else max(1, int((now_s - records[-1].arrived_s) * 1000))
        return {"Records": records, "ContinuationSequenceNumber": last, "MillisBehindLatest": behind_ms}
