"""Dead letters in an SQS queue: each a message."""

import re
from hashlib import sha256
from typing import Any, Protocol

from actors.clock import Clock
from kcl_py.aws import request
from kcl_py.dead_letters.address import Address
from kcl_py.dead_letters.attempt import LOOK_DEADLINE_S, attempt, too_large
from kcl_py.dead_letters.letter import DeadLetter

_GROUP = re.compile(r"[!-~]{1,128}")
"""Source: MessageGroupId in the API reference of SendMessage: letters, digits and punctuation of ASCII."""


class QueueClient(Protocol):
    """The requests that are made, as aiobotocore's client offers them; its own retries are off."""

    async def get_queue_attributes(self, **request: Any) -> Any: ...
    async def send_message(self, **request: Any) -> Any: ...


class SqsDeadLetters:
    """Implements ``DeadLetters``. A reply that is lost means that the letter is there twice.

    A FIFO queue drops the second one if it comes within five minutes.

    Args:
        client: the caller closes it.
        address: the queue.
        clock: for deadlines.
    """

    def __init__(self, client: QueueClient, address: Address, *, clock: Clock) -> None:
        self._client, self._address, self._clock = client, address, clock
        self._most_bytes = 0

    async def look(self) -> None:
        """Make sure that the queue is there, and see how large messages it takes. Raises RequestError."""
        with request("GetQueueAttributes", str(self._address), deadline_s=LOOK_DEADLINE_S, clock=self._clock):
            reply = await self._client.get_queue_attributes(
                QueueUrl=self._address.name, AttributeNames=["MaximumMessageSize"]
            )
        self._most_bytes = int(reply["Attributes"]["MaximumMessageSize"])

    async def store(self, letter: DeadLetter) -> None:
        """Send ``letter``; see ``DeadLetters``."""
        body = letter.encoded().decode("ascii")
        if len(body) > self._most_bytes:  # the limit can be raised meanwhile
            with attempt("GetQueueAttributes", letter, self._address, self._clock):
                await self.look()
        if len(body) > self._most_bytes:
            advice = "raise the queue's MaximumMessageSize (at most 1 MiB), or "
            raise too_large(letter, self._address, len(body), self._most_bytes, advice)
        with attempt("SendMessage", letter, self._address, self._clock):
            await self._client.send_message(QueueUrl=self._address.name, MessageBody=body, **self._order(letter))

    def _order(self, letter: DeadLetter) -> dict[str, str]:
        """Return what a FIFO queue wants to know besides; nothing for another."""
        if not self._address.name.endswith(".fifo"):
            return {}
        key = letter.record.partition_key
        group = key if _GROUP.fullmatch(key) else _hashed(key)
        return {"MessageGroupId": group, "MessageDeduplicationId": _hashed(letter.name)}


def _hashed(text: str) -> str:
    return sha256(text.encode()).hexdigest()
