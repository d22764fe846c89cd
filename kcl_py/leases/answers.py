"""What became of a request to the holder of a shard, as the row tells it. Pure."""

from dataclasses import dataclass

from kcl_py.leases.repositioning import described
from kcl_py.leases.requests import SEEK
from kcl_py.leases.row import LeaseRow, Request


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of a request."""

    is_applied: bool
    what: str
    """In words."""


def answer(request: Request, before: LeaseRow, row: LeaseRow | None) -> Answer | None:
    """Tell from the row whether a request was carried out; None while it stands.

    A seek leaves a fresh token, a release another holder or none; both in the write that takes the request out.

    Args:
        request: one that stood in the row.
        before: the row when it was last seen there.
        row: as it is now; None if it is gone.
    """
    if row is None:
        return Answer(False, "not applied: the row is gone")
    asked = row.native.request
    if asked is not None and asked.id == request.id:
        return None
    if row.has_ended:
        return Answer(False, "not applied: it was read to its end before")
    is_new = row.native.token != before.native.token
    if is_new or (request.kind != SEEK and row.holder != before.holder):
        return Answer(True, f"applied; now {described(row)}, {f'held by {row.holder}' if row.holder else 'free'}")
    return Answer(False, "not applied: it was withdrawn, or refused by its holder, whose log says why")
