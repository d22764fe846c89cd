"""Client request tokens: a transaction that comes again with the same one has happened already.

Times are Unix seconds.
"""

from collections.abc import Iterator
from hashlib import blake2b
from itertools import takewhile
from typing import Any

import msgspec

from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.changes import TokenUsed
from kcl_py.local.dynamo.errors import Refusal

LIFE_S = 600.0
"""How long a token counts. Source: API reference, TransactWriteItems."""


class ClientTokens:
    """Those that were used within their life, in the order of their use."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._used: dict[str, TokenUsed] = {}

    def __iter__(self) -> Iterator[TokenUsed]:
        return iter(self._used.values())

    def is_repeated(self, token: str, content: Any) -> bool:
        """Tell whether it happened within the life of its token. Raises Refusal if it was another one."""
        horizon_s = self._behaviour.now_s() - LIFE_S
        for used in [*takewhile(lambda used: used.used_s <= horizon_s, self)]:
            del self._used[used.token]
        if token not in self._used:
            return False
        if self._used[token].digest != _digest(content):
            raise Refusal(
                "IdempotentParameterMismatchException",
                "The request uses the same client token as a previous, but non-identical request. "
                "Do not reuse a client token with different requests, unless the requests are identical",
            )
        return True

    def use(self, token: str, content: Any) -> TokenUsed:
        """Remember what was done under a token, and return that."""
        used = TokenUsed(token, self._behaviour.now_s(), _digest(content))
        self.restore(used)
        return used

    def restore(self, used: TokenUsed) -> None:
        """Remember what was done in an earlier run."""
        self._used.pop(used.token, None)
        self._used[used.token] = used


def _digest(content: Any) -> bytes:
    return blake2b(msgspec.json.encode(content, order="deterministic"), digest_size=16).digest()
