"""Effects as DynamoDB has them, and what its refusal of a transaction says. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from kcl_py.effects import ConditionCheck, Delete, Effect, Put, Update
from kcl_py.errors import EffectsRefusedError, MissingError, RejectedError, RequestError, ThrottledError
from kcl_py.leases.attributes import encode_item
from kcl_py.leases.store import Effects

MOST = 100
"""Items of a transaction. Source: TransactWriteItems in the API reference."""
FAILED = "ConditionalCheckFailed"
"""The reason that a cancelled transaction gives for an item."""
_PASSING = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})
"""Reasons that may be gone next time. Source: TransactWriteItems in the API reference, CancellationReasons."""


def wire(effects: Sequence[Effect], *, most: int) -> Effects:
    """Return effects as items of a request.

    Raises:
        EffectsRefusedError: they are more than ``most``, or one of them is none, or holds what DynamoDB cannot.
    """
    if len(effects) > most:
        raise EffectsRefusedError(
            f"cannot apply {len(effects)} effects: expected {most} at most, as DynamoDB takes {MOST} in one "
            "transaction and some are kcl_py's; do less at a time"
        )
    items = []
    for index, effect in enumerate(effects):
        try:
            items.append(_item(effect))
        except (TypeError, AttributeError, ValueError) as error:
            raise EffectsRefusedError(
                f"cannot apply effect {index}: expected a Put, Update, Delete or ConditionCheck of plain values, found "
                f"{type(effect).__name__}: {error}"
            ) from error
    return tuple(items)


def _item(effect: Effect) -> dict[str, Any]:
    match effect:
        case Put():
            said: dict[str, Any] = {"Item": encode_item(effect.item)}
        case Update():
            said = {"Key": encode_item(effect.key), "UpdateExpression": effect.update}
        case Delete() | ConditionCheck():
            said = {"Key": encode_item(effect.key)}
        case _:
            raise TypeError("it is none of these")
    if effect.condition is not None:
        said["ConditionExpression"] = effect.condition
    if effect.names:
        said["ExpressionAttributeNames"] = dict(effect.names)
    if effect.values:
        said["ExpressionAttributeValues"] = encode_item(effect.values)
    return {type(effect).__name__: {"TableName": effect.table, **said}}


def judge(error: RequestError, effects: Effects, *, with_lease: bool) -> Exception:
    """Say what the failure of a transaction means; the lease row comes first in it.

    Returns:
        EffectsRefusedError: it cannot be carried out as it is.
        ThrottledError: it was cancelled for a reason that may pass, and had no effect.
        the error itself: the row is not as tested, or nothing is known.
    """
    reasons = [str(reason.get("Code") or "None") for reason in reasons_of(error)]
    if not reasons:
        return refused(effects, {}, error) if isinstance(error, RejectedError | MissingError) else error
    lease, own = (reasons[0], reasons[1:]) if with_lease else ("None", reasons)
    if lease == FAILED:
        return error
    lasting = {index: code for index, code in enumerate(own) if code != "None" and code not in _PASSING}
    if lasting:
        return refused(effects, lasting, error)
    return ThrottledError(error.operation, error.target, next(code for code in reasons if code != "None"), error.detail)


def refused(effects: Effects, reasons: Mapping[int, str], error: RequestError) -> EffectsRefusedError:
    """Return the error that names the effects at fault."""
    places = ", ".join(f"{code} for {_name(effects[index])}, number {index}" for index, code in reasons.items())
    tables = ", ".join(sorted({repr(_said(effect)["TableName"]) for effect in effects}))
    found = places or f"{error.code}: {error.detail}, for one of the tables {tables}"
    return EffectsRefusedError(
        f"cannot apply {len(effects)} effects in one transaction: expected DynamoDB to take them all, found {found}; "
        "nothing was written, and the lease is still held",
        reasons,
    )


def _name(effect: Mapping[str, Any]) -> str:
    [kind] = effect
    return f"the {kind} in table {_said(effect)['TableName']!r}"


def _said(effect: Mapping[str, Any]) -> Mapping[str, Any]:
    said: Mapping[str, Any]
    [said] = effect.values()
    return said


def reasons_of(error: RequestError) -> Sequence[Mapping[str, Any]]:
    """Return why a transaction was cancelled, item by item; nothing if DynamoDB has not answered.

    What botocore raises then has no ``response``, or one that is None.
    """
    response = getattr(error.__cause__, "response", None) or {}
    found: Sequence[Mapping[str, Any]] = response.get("CancellationReasons") or ()
    return found
