"""What a consistent read says about a write of a worker whose outcome is unknown. Pure."""

from collections.abc import Mapping
from typing import Any, Literal

from kcl_py.leases.items import item_from_row
from kcl_py.leases.paths import TOKEN, TRANSACTION
from kcl_py.leases.row import LeaseRow
from kcl_py.leases.store import Is, Path, Write

Outcome = Literal["succeeded", "lost", "again"]


def decide(write: Write, found: LeaseRow | None) -> Outcome:
    """Say what a consistent read tells about a write that failed its condition or had no reply.

    Args:
        write: the write in question, as built here.
        found: the row as read after it, or None if there is no row.

    Returns:
        "succeeded": the row is as the write leaves it (transfer, release, let go: we are no longer named).
        "again": it has not taken effect, but the row still names us under this token; go on from ``found``.
        "lost": neither; for a take or a request, it was not granted.

    A holder's cancel must also have raised the counter: the receiver's own cancel leaves the same owners and renews
    nothing. A seek or a resume has taken effect iff the token is the one that it wrote, as with a take.
    """
    if found is None:
        return "lost"
    named = write.owner in (found.owner, found.checkpoint_owner)
    mine = write.token is None or found.native.token == write.token
    match write.operation:
        case "transfer" | "release" | "let go":
            succeeded = not named
        case "take":
            return "succeeded" if named and mine else "lost"
        case "start handoff":
            return "succeeded" if _has_fields(write, found) else "lost"
        case "transact":
            succeeded = named and mine and found.native.transaction == write.set[TRANSACTION]
        case "seek" | "resume":
            succeeded = named and mine
            mine = Is(TOKEN, found.native.token) in write.tests
        case "complete" | "cancel handoff by receiver":
            succeeded = mine and _has_fields(write, found)
        case _:
            succeeded = named and mine and _has_fields(write, found)
    if succeeded:
        return "succeeded"
    return "again" if named and mine else "lost"


def _has_fields(write: Write, found: LeaseRow) -> bool:
    item = item_from_row(found)
    return all(_value(item, path) == value for path, value in write.set.items()) and all(
        _value(item, path) is None for path in write.remove
    )


def _value(item: Mapping[str, Any], path: Path) -> Any:
    value: Any = item
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
