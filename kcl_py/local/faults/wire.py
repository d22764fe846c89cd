"""Faults on the way between a server and its callers: what is asked of the service, and how the answer arrives.

It knows requests as operation and body, and neither sockets nor aiohttp: whoever serves makes each ``Ending`` true.
A request that is held up goes on when its caller has left, and takes effect late.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, TypeAlias, TypeGuard

import msgspec

from actors.clock import Clock
from kcl_py.local.faults.fault import Fault, Kind
from kcl_py.local.faults.faults import Faults
from kcl_py.local.faults.operations import SUBSCRIBE, is_consistent, names
from kcl_py.local.faults.partial import part_of
from kcl_py.local.faults.past import Past
from kcl_py.local.faults.refusal import refusal
from kcl_py.local.http import HttpReply
from kcl_py.local.replies import refused_json, refused_s3
from kcl_py.local.requests import UNREADABLE
from kcl_py.local.subscription import Subscription

Reply: TypeAlias = HttpReply | Subscription
Answer: TypeAlias = Callable[[bytes], Awaitable[Reply]]
"""Has the service answer a body."""

_encode = msgspec.json.Encoder().encode


class Ending(Enum):
    """How a request ends for its caller."""

    WHOLE = auto()
    """With the reply."""
    CUT = auto()
    """In the middle of the reply's body."""
    CLOSED = auto()
    """The connection closes, and nothing was sent."""
    RESET = auto()
    """The connection is reset, and nothing was sent."""
    NEVER = auto()
    """Nothing is sent, and the connection stays."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: AWS's names of service and operation, and its whole body."""

    service: str
    operation: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """What comes of a request; the ``reply`` is there if anything of it is sent."""

    ending: Ending
    reply: Reply | None = None


class Wire:
    """Passes requests on to the services, but for those in which a fault happens.

    Args:
        faults: the rules.
        clock: for delays.
    """

    def __init__(self, faults: Faults, *, clock: Clock) -> None:
        self._faults, self._clock, self._past = faults, clock, Past[HttpReply]()

    async def outcome(self, ask: Ask, answer: Answer) -> Outcome:
        """Return what comes of a request that ``answer`` would answer."""
        if self._faults.is_idle or ask.operation not in names(ask.service):
            return Outcome(Ending.WHOLE, await answer(ask.body))
        can_be_stale = self._faults.reach(ask.service, ask.operation, Kind.STALE) and not _is_consistent(ask.body)
        request = f"{ask.operation} {ask.body!r}" if can_be_stale else ""
        without = () if request in self._past else (Kind.STALE,)
        fault = self._faults.draw(ask.service, ask.operation, without=without)
        outcome = await self._suffered(fault, ask, answer)
        if not can_be_stale or outcome.ending is not Ending.WHOLE or not _is_good(outcome.reply):
            return outcome
        before = self._past.exchange(request, outcome.reply)
        return Outcome(Ending.WHOLE, before) if fault is not None and fault.kind is Kind.STALE else outcome

    async def _suffered(self, fault: Fault | None, ask: Ask, answer: Answer) -> Outcome:
        """Answer with ``fault`` in it; a stale one as any other."""
        match fault:
            case None:
                pass
            case Fault(kind=Kind.DELAY):
                await self._clock.sleep(fault.delay_s)
            case Fault(kind=Kind.HANG):
                return Outcome(Ending.NEVER)
            case Fault(kind=Kind.ERROR | Kind.THROTTLE):
                return Outcome(Ending.WHOLE, _refused(fault, ask))
            case Fault(kind=Kind.RESET) if ask.operation != SUBSCRIBE:
                return Outcome(Ending.RESET)
            case Fault(kind=Kind.RESET | Kind.TRUNCATED):
                return Outcome(Ending.CUT, await answer(ask.body))
            case Fault(kind=Kind.LOST_REPLY):
                return await self._lost(fault, ask, answer)
            case Fault(kind=Kind.PARTIAL):
                return Outcome(Ending.WHOLE, await self._partial(fault, ask, answer))
        return Outcome(Ending.WHOLE, await answer(ask.body))

    async def _lost(self, fault: Fault, ask: Ask, answer: Answer) -> Outcome:
        await answer(ask.body)
        if fault.delay_s:
            await self._clock.sleep(fault.delay_s)
        return Outcome(Ending.WHOLE, _refused(fault, ask)) if fault.code else Outcome(Ending.CLOSED)

    async def _partial(self, fault: Fault, ask: Ask, answer: Answer) -> Reply:
        part = part_of(fault, ask.service, ask.operation, _decoded(ask.body), self._faults.random)
        if part is None:
            return await answer(ask.body)
        if part.params is None:
            return HTTPStatus.OK, {}, _encode(part.answer({}))
        reply = await answer(_encode(part.params))
        if not _is_good(reply):
            return reply
        status, headers, body = reply
        return status, headers, _encode(part.answer(_decoded(body)))


def _refused(fault: Fault, ask: Ask) -> HttpReply:
    error = refusal(fault, ask.service, ask.operation)
    return refused_s3(error) if ask.service == "s3" else refused_json(error)


def _is_good(reply: Reply | None) -> TypeGuard[HttpReply]:
    return isinstance(reply, tuple) and reply[0] == HTTPStatus.OK


def _is_consistent(body: bytes) -> bool:
    params = _decoded(body)
    return isinstance(params, dict) and is_consistent(params)


def _decoded(body: bytes) -> Any:
    """Return what is in a body; None if that is no JSON, which the service will say."""
    try:
        return msgspec.json.decode(body)
    except UNREADABLE:
        return None
