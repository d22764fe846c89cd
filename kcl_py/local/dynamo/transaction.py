"""Transactions: all writes or none, and why not. Sizes are bytes."""

from collections.abc import Mapping, Sequence
from typing import Any

from kcl_py.local.dynamo import writes
from kcl_py.local.dynamo.catalog import Catalog
from kcl_py.local.dynamo.errors import Refusal, invalid
from kcl_py.local.dynamo.values import Item, item_bytes
from kcl_py.local.dynamo.writes import Write

TRANSACTION_BYTES = 4 * 1024 * 1024

_PREPARE = {"Put": writes.put, "Update": writes.update, "Delete": writes.delete, "ConditionCheck": writes.check}
_REASONS = {
    "ConditionalCheckFailedException": "ConditionalCheckFailed",
    "ProvisionedThroughputExceededException": "ProvisionedThroughputExceeded",
    "ThrottlingException": "ThrottlingError",
    "ValidationException": "ValidationError",
}


def prepare(catalog: Catalog, items: Sequence[Mapping[str, Any]]) -> list[Write]:
    """Read the writes of a transaction. Raises Refusal."""
    prepared: list[Write] = []
    for item in items:
        given = [(kind, request) for kind, request in item.items() if request is not None and kind in _PREPARE]
        if len(given) != 1:
            raise invalid("TransactItems can only contain one of Check, Put, Update or Delete")
        [(kind, request)] = given
        prepared.append(_PREPARE[kind](catalog.usable(request["TableName"]), request))
    if len({(write.table.name, write.place) for write in prepared}) < len(prepared):
        raise invalid("Transaction request cannot include multiple operations on one item")
    return prepared


def commit(prepared: Sequence[Write]) -> dict[str, float]:
    """Write all; returns the units that each table's writes cost. Raises Refusal, and writes nothing."""
    outcomes: list[tuple[Item | None, Item | None]] = []
    reasons: list[dict[str, Any]] = []
    for write in prepared:
        reason: dict[str, Any] = {"Code": "None"}
        try:
            write.table.admit_write()
            outcomes.append(write.outcome())
        except Refusal as refusal:
            reason = {"Code": _REASONS[refusal.code], "Message": refusal.message, **refusal.more}
        reasons.append(reason)
    if len(outcomes) < len(prepared):
        raise cancelled(reasons)
    if sum(item_bytes(new) for _, new in outcomes if new) > TRANSACTION_BYTES:
        raise invalid("The aggregate size of the items in the transaction exceeds the limit of 4 MB")
    units: dict[str, float] = {}
    for write, (old, new) in zip(prepared, outcomes, strict=True):
        cost = write.table.write(write.place, old, new)
        write.table.capacity.writes.take(cost)  # the second of the two writes that a transaction makes
        units[write.table.name] = units.get(write.table.name, 0.0) + 2 * cost
    return units


def cancelled(reasons: list[dict[str, Any]]) -> Refusal:
    """Return a transaction's refusal, one reason for each of its items."""
    codes = ", ".join(str(reason["Code"]) for reason in reasons)
    return Refusal(
        "TransactionCanceledException",
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]",
        {"CancellationReasons": reasons},
    )
