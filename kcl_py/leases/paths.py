"""Where the attributes of a lease row are, and the tests that most writes have in common. Pure."""

from kcl_py.leases import items
from kcl_py.leases.row import LeaseRow
from kcl_py.leases.store import Is, Path

COUNTER: Path = ("leaseCounter",)
OWNER: Path = ("leaseOwner",)
HOLDER: Path = ("checkpointOwner",)
SWITCHES: Path = ("ownerSwitchesSinceCheckpoint",)
CHECKPOINT: Path = ("checkpoint",)
SUB: Path = ("checkpointSubSequenceNumber",)
THROUGHPUT: Path = ("throughputKBps",)
CHILDREN: Path = ("childShardIds",)
NATIVE: Path = ("native",)
PENDING: tuple[Path, ...] = tuple((name,) for name in items.PENDING)
TRANSACTION: Path = ("native", "transaction")


def native(field: str) -> Path:
    """Return the path of a field of the ``native`` map."""
    return ("native", field)


TOKEN = native("token")
REQUEST = native("request")
REQUEST_ID = (*REQUEST, "id")
PAUSED = native("paused")
PAUSED_AT = (*PAUSED, "at")
VOLATILE = tuple(native(field) for field in ("lag_ms", "lag_at", "halted", "held_by", "fault", "quiet"))


def as_seen(row: LeaseRow) -> tuple[Is, ...]:
    """Test that nobody has written the row since, but for one who asks something of its holder."""
    return (Is(COUNTER, row.counter), Is(OWNER, row.owner), Is(HOLDER, row.checkpoint_owner))
