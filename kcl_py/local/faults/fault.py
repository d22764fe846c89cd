"""One rule of a bad day: what goes wrong, in which calls, how often.

Rules come from tests and from files, so a rule that makes no sense is told of at once. Pure. Durations are seconds.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from math import isfinite
from types import NoneType

from kcl_py.aws import THROTTLES
from kcl_py.errors import ConfigError
from kcl_py.local.faults import operations

MOST_DELAY_S = 3600.0
"""Longer is a hang."""
PARTIAL_CODES = ("ProvisionedThroughputExceededException", "InternalFailure")
"""What a record of PutRecords can fail with. Source: Kinesis API reference, PutRecordsResultEntry."""
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9.]{0,99}")


class Kind(StrEnum):
    """What goes wrong."""

    ERROR = "error"
    """The service fails, before any effect."""
    LOST_REPLY = "lost_reply"
    """The request takes effect; then the connection closes without a reply, or with ``code`` an error comes."""
    DELAY = "delay"
    """The request arrives late, by ``delay_s``."""
    HANG = "hang"
    """The request never arrives, and nothing ever comes back."""
    THROTTLE = "throttle"
    """The service refuses for the rate, before any effect."""
    PARTIAL = "partial"
    """Some of a batch fail: records of PutRecords, items of BatchWriteItem, keys of BatchGetItem."""
    STALE = "stale"
    """A read that AWS does not promise to be current answers as it would have at the same call before."""
    RESET = "reset"
    """The connection is reset before any effect; that of a subscription in the middle."""
    TRUNCATED = "truncated"
    """The request takes effect, and the reply's body is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong, and in which calls.

    Without ``calls``, ``probability`` and ``times`` that is every call that ``service`` and ``operation`` name and in
    which this kind can happen.

    Raises:
        ConfigError: it makes no sense; one sentence for each field.
    """

    kind: Kind
    service: str = ""
    """``kinesis``, ``dynamodb``, ``s3`` or ``sqs``; empty: any."""
    operation: str = ""
    """AWS's name, such as ``PutRecords``; empty: any."""
    calls: tuple[int, ...] = ()
    """The numbers, from 1, of those calls in which it happens; empty: all."""
    probability: float = 1.0
    """Of happening in such a call."""
    times: int | None = None
    """How often it happens at most; None: without end."""
    code: str = ""
    """AWS's error code, for ``error``, ``throttle``, ``lost_reply`` and ``partial``; empty: the service's usual one."""
    delay_s: float = 0.0
    """Of a ``delay``: by how much the request is late. Of a ``lost_reply``: how long after the effect the caller sees
    that no reply comes."""

    def __post_init__(self) -> None:
        if found := list(_faults(self)):
            raise ConfigError(*found)

    def reaches(self, service: str, operation: str) -> bool:
        """Return whether it is about such calls, and this kind can happen in them."""
        return self.service in ("", service) and self.operation in ("", operation) and _fits(self.kind, operation)


def _faults(fault: Fault) -> Iterator[str]:
    kind: object = fault.kind
    if not isinstance(kind, Kind):  # a bare word would seem to happen, and do nothing
        yield f"kind: expected a member of Kind, such as Kind.THROTTLE, found {kind!r}"
        return
    if wrong := list(_type_faults(fault)):
        yield from wrong
        return
    if fault.service not in ("", *operations.SERVICES):
        yield f"service: expected {_either(operations.SERVICES)}, found {fault.service!r}"
    elif fault.service in ("s3", "sqs") and fault.kind in (Kind.PARTIAL, Kind.STALE):
        yield f"service: expected kinesis or dynamodb for kind {fault.kind}, found {fault.service!r}"
    elif fault.operation:
        yield from _operation_faults(fault)
    if any(call < 1 for call in fault.calls):
        yield f"calls: expected numbers of calls from 1 on, found {min(fault.calls)}"
    if not 0 <= fault.probability <= 1:
        yield f"probability: expected 0 to 1, found {fault.probability:g}"
    if fault.times is not None and fault.times < 1:
        yield f"times: expected 1 or more, found {fault.times}"
    yield from _code_faults(fault)
    yield from _delay_faults(fault)


def _type_faults(fault: Fault) -> Iterator[str]:
    """Name the fields that are no values of their type, which a type checker would have done."""
    for name in ("service", "operation", "code"):
        if not isinstance(value := getattr(fault, name), str):
            yield f"{name}: expected text, found {value!r}"
    calls: object = fault.calls
    if not (isinstance(calls, (tuple, list)) and all(isinstance(call, int) for call in calls)):
        yield f"calls: expected numbers of calls, such as (3, 4), found {calls!r}"
    for name, types, expected in (
        ("probability", (int, float), "a number from 0 to 1"),
        ("times", (int, NoneType), "a whole number"),
        ("delay_s", (int, float), "a number of seconds"),
    ):
        if not isinstance(value := getattr(fault, name), types):
            yield f"{name}: expected {expected}, found {value!r}"


def _operation_faults(fault: Fault) -> Iterator[str]:
    services = (fault.service,) if fault.service else operations.SERVICES
    known = [name for service in services for name in operations.names(service)]
    if fault.operation not in known:
        near = get_close_matches(fault.operation, known, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        yield f"operation: expected an operation of {_either(services)}, found {fault.operation!r}{meant}"
    elif not _fits(fault.kind, fault.operation):
        fitting = _PARTS if fault.kind is Kind.PARTIAL else _STALE
        yield f"operation: expected {_either(fitting)} for kind {fault.kind}, found {fault.operation!r}"


def _code_faults(fault: Fault) -> Iterator[str]:
    if not fault.code:
        return
    expected = ""
    match fault.kind:
        case Kind.ERROR | Kind.LOST_REPLY:
            expected = "" if _CODE.fullmatch(fault.code) else "an error code of AWS's, such as InternalFailure"
        case Kind.THROTTLE:
            expected = "" if fault.code in THROTTLES else "a throttling code of AWS's, such as ThrottlingException"
        case Kind.PARTIAL:
            is_known = fault.code in PARTIAL_CODES and fault.operation in ("", operations.PUT_RECORDS)
            expected = "" if is_known else f"{_either(PARTIAL_CODES)} for PutRecords, none for others"
        case _:
            expected = f"none for kind {fault.kind}"
    if expected:
        yield f"code: expected {expected}, found {fault.code!r}"


def _delay_faults(fault: Fault) -> Iterator[str]:
    delay_s = fault.delay_s
    if fault.kind not in (Kind.DELAY, Kind.LOST_REPLY):
        if delay_s:
            yield f"delay_s: expected none for kind {fault.kind}, found {delay_s:g}"
    elif not (isfinite(delay_s) and 0 <= delay_s <= MOST_DELAY_S) or (fault.kind is Kind.DELAY and not delay_s):
        yield f"delay_s: expected seconds, at most {MOST_DELAY_S:g}, for kind {fault.kind}, found {delay_s:g}"


_PARTS = sorted(operations.PARTS)
_STALE = sorted(operations.STALE_READS)


def _fits(kind: Kind, operation: str) -> bool:
    if kind is Kind.PARTIAL:
        return operation in operations.PARTS
    return kind is not Kind.STALE or operation in operations.STALE_READS


def _either(words: tuple[str, ...] | list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
