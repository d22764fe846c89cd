"""What a processor can have DynamoDB do in one transaction: a few words for TransactWriteItems, with plain values.

Expressions are DynamoDB's own; ``names`` and ``values`` are what they call ``#name`` and ``:value``. Values are str,
int, float, Decimal, bool, None, bytes, sets of one kind, lists and maps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Put:
    """Put an item, in place of what is there."""

    table: str
    item: Fields = field(repr=False)
    condition: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    values: Fields = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Update:
    """Change an item, or make it: ``Update("totals", {"k": "a"}, "ADD n :n", values={":n": 3})``."""

    table: str
    key: Fields = field(repr=False)
    update: str
    condition: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    values: Fields = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an item."""

    table: str
    key: Fields = field(repr=False)
    condition: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    values: Fields = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ConditionCheck:
    """Write nothing unless a condition holds on an item."""

    table: str
    key: Fields = field(repr=False)
    condition: str
    names: Mapping[str, str] = field(default_factory=dict)
    values: Fields = field(default_factory=dict, repr=False)


Effect = Put | Update | Delete | ConditionCheck
"""One item of a transaction."""
