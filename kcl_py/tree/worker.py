"""What all actors of one worker share: the configuration, the way to AWS, time, chance and a few common limits.

Made once by ``Stream`` and passed whole. Holds no rules.
"""

import random
from collections.abc import Callable, Container
from dataclasses import dataclass, field

from actors import Clock
from kcl_py.config import Config
from kcl_py.dead_letters.destination import DeadLetters
from kcl_py.delivery.budget import Budget
from kcl_py.delivery.rate import Rate
from kcl_py.delivery.slots import Slots
from kcl_py.events import Events
from kcl_py.leases.fence import Pulse
from kcl_py.leases.gate import Gate
from kcl_py.leases.store import LeaseStore
from kcl_py.processor import RecordProcessor
from kcl_py.sources.kinesis.quota import Quota
from kcl_py.sources.source import Source, StreamInfo
from kcl_py.tree.halts import Halts

TOKEN_BITS = 128
"""As many random bits as a UUID, so that two takes never share a token."""


class Ids:
    """Names and chance, from one generator that a test or simulation can seed."""

    def __init__(self, generator: random.Random | None = None) -> None:
        self._generator = generator or random.SystemRandom()

    def token(self) -> str:
        """Return a fresh lease token."""
        return f"{self._generator.getrandbits(TOKEN_BITS):032x}"

    def incarnation(self) -> str:
        """Return eight hex digits that tell one run of a worker from the next."""
        return f"{self._generator.getrandbits(32):08x}"

    def jitter(self, low: float, high: float) -> float:
        """Return a number between ``low`` and ``high``."""
        return self._generator.uniform(low, high)


@dataclass(frozen=True, eq=False)
class Worker:
    """One running copy of the application."""

    config: Config
    owner: str
    """``<worker id>/<incarnation>``: the ``leaseOwner`` of what it holds."""
    stream: StreamInfo
    processor: type[RecordProcessor]
    source: Source
    store: LeaseStore
    clock: Clock
    ids: Ids
    log: Events
    """Bound to app, stream and worker."""
    gate: Gate
    budget: Budget
    slots: Slots
    pulse: Pulse
    started_at: float
    rate: Rate = field(default_factory=Rate)
    """Of ``delivery.rate``, or as it was set since."""
    is_left: Callable[[], bool] = lambda: False
    """Whether nobody is there any more who could be done with what is in ``process``; see ``Stream.records``."""
    halts: Halts = field(default_factory=Halts)
    dead_letters: DeadLetters | None = None
    """Where dead letters go; None: nowhere, ``delivery.dead_letter`` is not set."""
    _quotas: dict[str, Quota] = field(default_factory=dict)

    def quota(self, shard_id: str) -> Quota:
        """The read allowance of a shard; one and the same over all restarts of its reader."""
        return self._quotas.setdefault(shard_id, Quota())

    def keep_quotas(self, shard_ids: Container[str]) -> None:
        """Forget the allowances of all other shards: they have no rows any more."""
        for shard_id in [shard_id for shard_id in self._quotas if shard_id not in shard_ids]:
            del self._quotas[shard_id]
