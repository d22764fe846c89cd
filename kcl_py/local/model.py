"""A Kinesis in memory that behaves as AWS documents it: one method for each operation, in families.

It does no I/O, starts no task and takes the time only from its clock, so it serves a simulation as well as a socket.
It is not thread-safe. Answers have AWS's shape, with records as ``Record`` structs and times as Unix seconds.
A refusal is a ``ModelError`` with AWS's code. Limits of size and number hold always, rates only where asked for.

Source of every rule: the Kinesis API reference; where it is silent, what kinesalite found on the real service.
"""

from collections.abc import Mapping
from typing import Any

from actors.clock import Clock
from kcl_py.local import requests as ask
from kcl_py.local.account import Account
from kcl_py.local.archive import Archive
from kcl_py.local.consumers import Consumers
from kcl_py.local.errors import not_kept
from kcl_py.local.gets import Gets
from kcl_py.local.operations import Answer, Family, Operations
from kcl_py.local.puts import Puts
from kcl_py.local.quota import Quotas
from kcl_py.local.settings import Settings
from kcl_py.local.shard import EndShape
from kcl_py.local.shards import Shards
from kcl_py.local.stream import Mode, Stream
from kcl_py.local.streams import Streams
from kcl_py.local.tags import Tags

__all__ = ["EndShape", "Kinesis"]

_LOOKS = ("Describe", "Get", "List", "Put", "Subscribe")
"""What the names of operations begin with that leave everything but records as it is."""
_CHANGES = frozenset(kind for kind in ask.KINDS if not kind.__name__.startswith(_LOOKS))


class Kinesis:
    """All streams of one account in one region.

    Args:
        clock: the service's clock; only ``time`` is used.
        region: the region in the ARNs.
        delay_s: how long creating, deleting, splitting and merging take.
        end_shape: how a closed shard's end is told.
        limit_rates: whether calls, reads and writes above AWS's rates are refused.
        archive: told of all that is to be kept.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        region: str = "us-east-1",
        delay_s: float = 0.05,
        end_shape: EndShape = EndShape.WITH_LAST,
        limit_rates: bool = False,
        archive: Archive | None = None,
    ) -> None:
        self._account = Account(clock, region=region, delay_s=delay_s)
        self._quotas, self._archive = Quotas() if limit_rates else None, archive
        families: tuple[Family, ...] = (
            Streams(self._account),
            Settings(self._account),
            Tags(self._account),
            Shards(self._account, self._quotas),
            Puts(self._account, self._quotas, archive),
            Gets(self._account, self._quotas, end_shape),
            Consumers(self._account, end_shape, is_paced=limit_rates, keep=self._save),
        )
        self._operations: Operations = {
            kind: operation for family in families for kind, operation in family.operations().items()
        }

    def operations(self) -> list[str]:
        """Return AWS's names of all operations that are answered."""
        return sorted(kind.__name__ for kind in self._operations)

    def call(self, operation: str, params: Mapping[str, Any]) -> Answer:
        """Answer ``operation`` (AWS's name) with ``params`` (AWS's names; Data bytes, times Unix seconds)."""
        return self.answer(ask.read(operation, params))

    def answer(self, request: ask.Request) -> Answer:
        """Answer a request that was read before; the one door that all operations go through.

        Raises:
            ModelError: a refusal; InternalFailureException while something that changed cannot be kept.
        """
        self._save()
        if self._quotas is not None:
            self._quotas.call(request, self._account.now_s())
        self._account.asked = None
        answer = self._operations[type(request)](request)
        if type(request) in _CHANGES:
            self._account.note(self._account.asked)
        self._save()
        return answer

    def add_stream(self, name: str, shard_count: int) -> None:
        """Create a stream that is ACTIVE at once."""
        self._account.create(name, shard_count, mode=Mode.PROVISIONED, delay_s=0.0)
        self._save()

    def has_stream(self, name: str) -> bool:
        return self._account.find(name) is not None

    def open_shards(self) -> dict[str, int]:
        """Return how many open shards each stream has, by its name."""
        return {stream.name: len(stream.open_shards()) for stream in self._account.all()}

    def adopt(self, streams: list[Stream]) -> None:
        """Take streams as an earlier run left them."""
        self._account.adopt(streams)

    def _save(self) -> None:
        changed = self._account.changed
        if self._archive is not None and changed:
            try:
                self._archive.save(changed, self._account.now_s())
            except OSError as error:
                raise not_kept(error) from error
        changed.clear()
