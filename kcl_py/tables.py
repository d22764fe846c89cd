"""Transactions in the DynamoDB that holds the leases, without the lease: for records that are in work side by side."""

from collections.abc import Sequence

from actors.clock import Clock
from kcl_py.delivery.retry import Backoff
from kcl_py.effects import Effect
from kcl_py.errors import RequestError
from kcl_py.leases import transactions
from kcl_py.leases.store import LeaseStore
from kcl_py.tree.worker import Ids

PAUSE_S = 0.1
PAUSE_MAX_S = 1.0
"""Between two tries; they double."""


class Tables:
    """What ``Once`` and ``Dedup`` write through.

    Args:
        store: the leases.
        clock: tells when a marker expires.
        ids: gives each transaction its token.
        timeout_s: after this there is no further try.
    """

    def __init__(self, store: LeaseStore, clock: Clock, ids: Ids, *, timeout_s: float) -> None:
        self._store, self._clock, self._ids, self._timeout_s = store, clock, ids, timeout_s

    def now_s(self) -> int:
        """Return the Unix time, in whole seconds."""
        return int(self._clock.time())

    async def apply(self, effects: Sequence[Effect]) -> None:
        """Apply effects, all or none; each try is the same request to DynamoDB, so that it is done once.

        Raises:
            EffectsRefusedError: DynamoDB does not take them; nothing was written.
            RequestError: there was no good answer in time; whether they are applied is not known.
        """
        items, token = transactions.wire(effects, most=transactions.MOST), self._ids.token()
        ends_at = self._clock.monotonic() + self._timeout_s
        backoff = Backoff(PAUSE_S, PAUSE_MAX_S, self._ids.jitter)
        while True:
            try:
                await self._store.transact(items, request_token=token)
            except RequestError as error:
                pause_s = backoff.next_s()
                if not error.retryable or self._clock.monotonic() + pause_s >= ends_at:
                    raise
            else:
                return
            await self._clock.sleep(pause_s)
