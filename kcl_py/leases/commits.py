"""The writes that store a checkpoint in two steps, or together with effects elsewhere; as ``leases/rules.py``. Pure."""

from dataclasses import replace
from hashlib import blake2b
from typing import Any

from kcl_py.leases.items import fields_from_pending
from kcl_py.leases.paths import CHECKPOINT, COUNTER, PENDING, SUB, SWITCHES, TRANSACTION
from kcl_py.leases.row import LeaseRow, Pending
from kcl_py.leases.rules import by_holder
from kcl_py.leases.store import Effects, Path, Write
from kcl_py.records import SequenceNumber

REQUEST_TOKEN_BYTES = 16
"""In hexadecimal, that is 32 characters. Source: TransactWriteItems in the API reference, ClientRequestToken: 36."""
STATE_BYTES = 1024
"""How long the state of a prepared checkpoint may be: each write of the row costs one write unit more meanwhile.
Source: DynamoDB, a write unit is 1 KB."""


def prepare(row: LeaseRow, *, owner: str, token: str, pending: Pending) -> Write:
    """Build the storing of a prepared checkpoint, in place of any before it; it renews."""
    held = by_holder(row, "prepare", owner=owner, token=token)
    fields: dict[Path, Any] = {(name,): value for name, value in fields_from_pending(pending).items()}
    return replace(
        held,
        set={COUNTER: row.counter + 1, **fields},
        remove=tuple(path for path in PENDING if path not in fields),
    )


def transact(
    row: LeaseRow, *, owner: str, token: str, position: SequenceNumber, effects: Effects, transaction: str
) -> Write:
    """Build a checkpoint that is stored together with effects elsewhere, or neither; it renews.

    ``transaction`` is the same for each try, and stays in the row: it tells that this one has taken effect. The request
    is the same for each try on one counter, of which one can succeed.
    """
    digest = blake2b(f"{transaction} {row.counter}".encode(), digest_size=REQUEST_TOKEN_BYTES)
    return replace(
        by_holder(row, "transact", owner=owner, token=token),
        set={
            COUNTER: row.counter + 1,
            CHECKPOINT: str(position),
            SUB: position.sub,
            SWITCHES: 0,
            TRANSACTION: transaction,
        },
        remove=PENDING,
        effects=effects,
        request_token=digest.hexdigest(),
    )
