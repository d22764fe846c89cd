"""Shard iterators and page tokens: opaque strings that carry their own state and a check sum.

The service remembers none of them. A token that was tampered with or made up is recognised. Times are Unix seconds.
"""

import base64
import binascii
import hashlib
from typing import Self, TypeVar

import msgspec

from kcl_py.local.errors import ModelError, invalid
from kcl_py.local.requests import ShardFilter

LIFE_S = 300.0
"""How long an iterator or a page token may be used. Source: Kinesis API reference, GetShardIterator, ListShards."""
_CHECK_BYTES = 8


class Token(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """What every token carries."""

    issued_s: float

    def seal(self) -> str:
        """Return the token as AWS would hand it out: printable, with no meaning to the holder."""
        body = msgspec.msgpack.encode(self)
        return base64.b64encode(_check(body) + body).decode()

    @classmethod
    def unseal(cls, text: str) -> Self | None:
        """Return the token in ``text``, or None if this service never issued it as one of this kind."""
        try:
            raw = base64.b64decode(text, validate=True)
            check, body = raw[:_CHECK_BYTES], raw[_CHECK_BYTES:]
            return msgspec.msgpack.decode(body, type=cls) if check == _check(body) else None
        except (binascii.Error, ValueError):
            return None

    def has_expired(self, now_s: float) -> bool:
        return now_s - self.issued_s > LIFE_S


class ShardIterator(Token, frozen=True, array_like=True, tag=True):
    """A place in a shard."""

    stream: str
    created_s: int
    """Tells the stream from an earlier one of the same name."""
    shard: int
    position: int
    """Index of the record to read next."""


class ShardPage(Token, frozen=True, array_like=True, tag=True):
    """Where the next ListShards page begins."""

    stream: str
    created_s: int
    after: str
    """The last shard id of the page before."""
    shard_filter: ShardFilter | None


class StreamPage(Token, frozen=True, array_like=True, tag=True):
    """Where the next ListStreams page begins."""

    after: str
    """The last stream name of the page before."""


class ConsumerPage(Token, frozen=True, array_like=True, tag=True):
    """Where the next ListStreamConsumers page begins."""

    stream: str
    after: str
    """The last consumer name of the page before."""


PageT = TypeVar("PageT", ShardPage, StreamPage, ConsumerPage)


def open_page(kind: type[PageT], text: str, now_s: float) -> PageT:
    """Return the page that a NextToken stands for. Raises InvalidArgumentException, ExpiredNextTokenException."""
    page = kind.unseal(text)
    if page is None:
        raise invalid("NextToken is invalid.")
    if page.has_expired(now_s):
        raise ModelError("ExpiredNextTokenException", "NextToken is older than 300 seconds.")
    return page


def _check(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECK_BYTES).digest()
