"""Transactions: all writes or none, and why not. Times are Unix seconds."""

from collections.abc import Mapping, Sequence
from typing import Any

from kcl_py.local.dynamo import writes
from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.catalog import Catalog
from kcl_py.local.dynamo.errors import Refusal, invalid
from kcl_py.local.dynamo.values import Item, item_bytes
from kcl_py.local.dynamo.writes import Write

TRANSACTION_BYTES = 4 * 1024 * 1024
TOKEN_LIFE_S = 600.0
"""Source: API reference, TransactWriteItems."""

_PREPARE = {"Put": writes.put, "Update": writes.update, "Delete": writes.delete, "ConditionCheck": writes.check}
_REASONS = {
    "ConditionalCheckFailedException": "ConditionalCheckFailed",
    "ProvisionedThroughputExceededException": "ProvisionedThroughputExceeded",
    "ThrottlingException": "ThrottlingError",
    "ValidationException": "ValidationError",
}


class Tokens:
    """Client request tokens: a transaction that comes again with the same one has happened already."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._seen: dict[str, tuple[float, Any]] = {}

    def is_repeated(self, token: str, content: Any) -> bool:
        """Tell whether it happened within the life of its token. Raises Refusal if it was another one."""
        now_s = self._behaviour.now_s()
        for old in [one for one, (seen_s, _) in self._seen.items() if seen_s + TOKEN_LIFE_S <= now_s]:
            del self._seen[old]
        if token not in self._seen:
            return False
        if self._seen[token][1] != content:
            raise Refusal(
                "IdempotentParameterMismatchException",
                "The request uses the same client token as a previous, but non-identical request. "
                "Do not reuse a client token with different requests, unless the requests are identical",
            )
        return True

    def remember(self, token: str, content: Any) -> None:
        self._seen[token] = (self._behaviour.now_s(), content)


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
