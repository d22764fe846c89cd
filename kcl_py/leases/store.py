"""The face of a lease store, and conditional writes as plain data.

A ``Write`` says what a row must look like and what becomes of it; ``leases/rules.py`` makes them, every store carries
them out, and one contract suite holds the stores to the same meaning. Stores do not retry and do not decide.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kcl_py.leases.capacity import Capacity
from kcl_py.leases.row import LeaseRow, WorkerRow

Effects = tuple[Mapping[str, Any], ...]
"""Items of a TransactWriteItems request, as DynamoDB has them."""
Path = tuple[str, ...]
"""An attribute, or a field of the native map: ``("leaseOwner",)``, ``("native", "token")``."""
MALFORMED = "MalformedRow"
"""The code of the ``RejectedError`` for a single row that is no lease; a scan names such rows beside the others."""


@dataclass(frozen=True, slots=True)
class Is:
    """The attribute is there and equals ``value``; with None, it is absent."""

    path: Path
    value: str | int | None


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of the tests holds."""

    tests: tuple[Is, ...]


Test = Is | AnyOf


@dataclass(frozen=True, slots=True)
class Write:
    """One conditional update of an existing lease row; it never creates one.

    ``set`` and ``add`` values are plain (see ``row.Item``); ``add`` sums onto a number. Attributes not named stay as
    they are. Setting a field of ``native`` needs the map to be there: rules set the whole map on rows without it.
    """

    operation: str
    """For errors and logs: take, heartbeat, …"""
    key: str
    tests: tuple[Test, ...]
    set: Mapping[Path, Any] = field(default_factory=dict)
    remove: tuple[Path, ...] = ()
    add: Mapping[Path, int] = field(default_factory=dict)
    owner: str = ""
    """Who makes this write; with ``token`` it lets a later read decide whether the write took effect."""
    token: str | None = None
    """The token that this write tests or, for a take, writes."""
    effects: Effects = ()
    """What is written elsewhere in the same transaction."""
    request_token: str = ""
    """Set for a transaction, also one without effects: the same for each try."""


@dataclass(frozen=True, slots=True)
class Scan:
    """All rows of the lease table (eventually consistent), as far as they are leases."""

    rows: tuple[LeaseRow, ...]
    malformed: tuple[str, ...] = ()
    """One sentence for each item that could not be read as a lease; never fatal."""


class LeaseStore(Protocol):
    """Lease rows and worker rows.

    All methods raise ``ThrottledError`` (no effect), ``MissingError`` (no table), ``RejectedError`` or a plain
    ``RequestError`` whose outcome is unknown. Each has a total deadline, so none hangs.
    """

    async def ensure(self) -> float | None:
        """Make sure that both tables can be used, creating what is missing and waiting until it is ACTIVE.

        An existing table is used as it is, whatever its billing mode. Returns the seconds that creating took, or None
        if the lease table was there. Raises ``LeaseTableError``: wrong key schema (expected and found), no permission,
        or missing while ``leases.create`` is false. A worker table that cannot be created is not an error:
        see ``has_workers``.
        """
        ...

    @property
    def has_workers(self) -> bool:
        """Whether the worker table can be used."""
        ...

    @property
    def capacity(self) -> tuple[Capacity | None, Capacity | None]:
        """What the lease table and the worker table had when ``ensure`` found them; None: no limit is known."""
        ...

    async def scan(self, *, consistent: bool = False) -> Scan:
        """Read all rows; those that were just written may be missing or old unless ``consistent``."""
        ...

    async def read(self, key: str) -> LeaseRow | None:
        """Read one row, consistently; None if it does not exist."""
        ...

    async def create(self, row: LeaseRow, *, parent: Write | None = None) -> bool:
        """Put ``row`` unless it exists; True if this call created it.

        With ``parent`` (only its key and tests count) both happen in one transaction: ``ConditionFailedError`` if the
        parent row is not as tested, even when the child exists.
        """
        ...

    async def write(self, write: Write) -> LeaseRow:
        """Carry out one conditional write and return the row as it then is.

        Raises ``ConditionFailedError`` if a test does not hold or the row does not exist.
        """
        ...

    async def transact(self, effects: Effects, *, request_token: str, write: Write | None = None) -> None:
        """Carry out writes elsewhere, and ``write`` if there is one, all or none; its row is not returned.

        Raises ``EffectsRefusedError`` if they cannot be carried out as they are (nothing was written), and
        ``ConditionFailedError`` if a test of ``write`` does not hold.
        """
        ...

    async def delete(self, write: Write) -> None:
        """Delete the row if the tests of ``write`` hold; else ``ConditionFailedError``."""
        ...

    async def workers(self) -> tuple[WorkerRow, ...]:
        """Read all worker rows, consistently."""
        ...

    async def put_worker(self, row: WorkerRow) -> None:
        """Create or replace the worker's row; attributes we do not write stay."""
        ...

    async def delete_worker(self, worker: str) -> None:
        """Delete the row; no error if it is gone."""
        ...

    async def aclose(self) -> None:
        """Close connections; idempotent."""
        ...
