"""What a service answered before, for reads that are to be stale. Bounded."""

from collections import OrderedDict
from typing import Generic, TypeVar

MOST_REPLIES = 1000
"""The one asked for longest ago is forgotten first."""

ReplyT = TypeVar("ReplyT")


class Past(Generic[ReplyT]):
    """The last reply to each request."""

    def __init__(self) -> None:
        self._replies: OrderedDict[str, ReplyT] = OrderedDict()

    def __contains__(self, request: str) -> bool:
        return request in self._replies

    def exchange(self, request: str, reply: ReplyT) -> ReplyT:
        """Remember ``reply`` and return the one before it, or itself if there is none."""
        before = self._replies.pop(request, reply)
        self._replies[request] = reply
        if len(self._replies) > MOST_REPLIES:
            self._replies.popitem(last=False)
        return before
