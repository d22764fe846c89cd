"""A client of AWS in which things go wrong by rules; the caller sees what aiobotocore would raise.

It stands around any client with aiobotocore's face: a real one, or one of the models in memory. It starts no task and
opens no socket; time is only the clock's, chance only the rules'. Paginators, waiters and transfers of a real client go
past it.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from copy import deepcopy
from email.utils import formatdate
from itertools import count
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.lowlevel import checkpoint
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError

from actors.clock import Clock
from kcl_py.local.errors import ModelError
from kcl_py.local.faults.fault import Fault, Kind
from kcl_py.local.faults.faults import Faults
from kcl_py.local.faults.operations import GET_OBJECT, SUBSCRIBE, is_consistent, methods
from kcl_py.local.faults.partial import part_of
from kcl_py.local.faults.past import Past
from kcl_py.local.faults.refusal import refusal
from kcl_py.local.faults.torn import TornBody, TornEvents

Reply = dict[str, Any]
Method = Callable[..., Awaitable[Reply]]


class FaultyClient:
    """Passes everything on to ``client`` but the calls in which a fault happens.

    A request that is held up or hangs ends with its caller: cancelled, it has had no effect.

    Args:
        client: whatever has aiobotocore's methods.
        service: ``kinesis``, ``dynamodb``, ``s3`` or ``sqs``.
        faults: the rules; clients may share them.
        clock: for delays and the Date header of errors.
    """

    def __init__(self, client: Any, service: str, faults: Faults, *, clock: Clock) -> None:
        self._client, self._service, self._faults, self._clock = client, service, faults, clock
        self._operations, self._past = methods(service), Past[Reply]()
        self._request_ids = count(1)

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, error, trace)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        operation = self._operations.get(name)
        if operation is None:
            return found
        call = self._faulty(operation, found)
        self.__dict__[name] = call  # so that the next call does not come here
        return call

    def _faulty(self, operation: str, method: Method) -> Callable[..., Awaitable[Reply]]:
        def call(**params: Any) -> Awaitable[Reply]:
            return method(**params) if self._faults.is_idle else self._call(operation, method, params)

        return call

    async def _call(self, operation: str, method: Method, params: Reply) -> Reply:
        can_be_stale = self._faults.reach(self._service, operation, Kind.STALE) and not is_consistent(params)
        request = f"{operation} {params!r}" if can_be_stale else ""
        without = () if request in self._past else (Kind.STALE,)
        fault = self._faults.draw(self._service, operation, without=without)
        reply = await (method(**params) if fault is None else self._suffer(fault, operation, method, params))
        if not can_be_stale:
            return reply
        before = self._past.exchange(request, deepcopy(reply))
        if fault is None or fault.kind is not Kind.STALE:
            return reply
        return before | {name: reply[name] for name in ("ResponseMetadata",) if name in reply}

    async def _suffer(self, fault: Fault, operation: str, method: Method, params: Reply) -> Reply:
        """Make the call with ``fault`` in it; a stale one is made as any other."""
        match fault.kind:
            case Kind.DELAY:
                await self._clock.sleep(fault.delay_s)
            case Kind.HANG:
                await anyio.Event().wait()  # not a sleep without end: that is a timer, which virtual time would jump to
            case Kind.ERROR | Kind.THROTTLE:
                await checkpoint()
                raise self._client_error(refusal(fault, self._service, operation), operation)
            case Kind.RESET if operation != SUBSCRIBE:
                await checkpoint()
                raise EndpointConnectionError(endpoint_url=self._url(), error=ConnectionResetError())
            case Kind.RESET | Kind.TRUNCATED:
                return await self._truncated(operation, method, params)
            case Kind.LOST_REPLY:
                return await self._lost(fault, operation, method, params)
            case Kind.PARTIAL:
                return await self._partial(fault, operation, method, params)
        return await method(**params)

    async def _lost(self, fault: Fault, operation: str, method: Method, params: Reply) -> Reply:
        await _unanswered(method, params)
        if fault.delay_s:
            await self._clock.sleep(fault.delay_s)
        if fault.code:
            raise self._client_error(refusal(fault, self._service, operation), operation)
        raise ConnectionClosedError(endpoint_url=self._url())

    async def _truncated(self, operation: str, method: Method, params: Reply) -> Reply:
        if operation == SUBSCRIBE:
            reply = await method(**params)
            return reply | {"EventStream": TornEvents(reply["EventStream"])}
        if operation == GET_OBJECT:
            reply = await method(**params)
            return reply | {"Body": TornBody(reply["Body"])}
        await _unanswered(method, params)
        raise ConnectionClosedError(endpoint_url=self._url())

    async def _partial(self, fault: Fault, operation: str, method: Method, params: Reply) -> Reply:
        part = part_of(fault, self._service, operation, params, self._faults.random)
        if part is None:
            return await method(**params)
        if part.params is not None:
            return part.answer(await method(**part.params))
        await checkpoint()
        return part.answer(self._metadata(200))

    def _client_error(self, refused: ModelError, operation: str) -> ClientError:
        error = {"Error": {"Code": refused.code, "Message": refused.message}}
        return ClientError(error | self._metadata(refused.status), operation)  # type: ignore[arg-type]  # as botocore's

    def _metadata(self, status: int) -> Reply:
        request_id = f"fault-{next(self._request_ids):026x}"
        headers = {"date": formatdate(self._clock.time(), usegmt=True), "x-amzn-requestid": request_id}
        return {
            "ResponseMetadata": {
                "RequestId": request_id,
                "HTTPStatusCode": status,
                "HTTPHeaders": headers,
                "RetryAttempts": 0,
            }
        }

    def _url(self) -> str:
        meta = getattr(self._client, "meta", None)
        return str(getattr(meta, "endpoint_url", "")) or f"memory://{self._service}"


async def _unanswered(method: Method, params: Reply) -> None:
    """Make the call and drop what comes back, a refusal too."""
    with suppress(Exception):
        reply = await method(**params)
        for stream in reply.values():
            if hasattr(stream, "close"):  # of events, or a body that is read in parts
                stream.close()
