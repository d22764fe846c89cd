"""The frequent requests of a lease store, past most of what botocore does for each.

Through botocore a heartbeat costs nearly four times the CPU (``python -m bench.lease_requests``). Endpoints,
credentials and the way of signing stay botocore's decision, connections are aiobotocore's, and a reply that is not good
is read by botocore's parser, so errors are the same. Where anything but Signature Version 4 over the root path is
called for, the request goes botocore's way. The private names used here are aiobotocore's:
``tests/kcl_py/leases/test_wire.py`` holds it to them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import gmtime, strftime
from typing import Any
from urllib.parse import urlsplit

import msgspec
from aiobotocore.parsers import create_parser
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSPreparedRequest, AWSRequest
from botocore.credentials import ReadOnlyCredentials

from kcl_py.leases.client import Reply
from kcl_py.signature import AMZ_DATE, Signer

_KNOWN = frozenset({"Content-Type", "User-Agent", "X-Amz-Target"})
"""Headers of every request by botocore; where there are more, the request goes botocore's way."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class _Page(msgspec.Struct, rename="pascal"):
    items: list[msgspec.Raw]
    last_evaluated_key: dict[str, Any] | None = None


_decode_page = msgspec.json.Decoder(_Page).decode


@dataclass(frozen=True, slots=True)
class _Route:
    """How one operation on one table is sent with these credentials."""

    credentials: Any
    """Frozen: two keys and perhaps a token."""
    url: str
    host: str
    signer: Signer
    headers: dict[str, str]
    """As in ``_KNOWN``."""


class WireClient:
    """A ``DynamoClient`` on one of aiobotocore's, which somebody else closes and which must not retry."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._routes: dict[tuple[str, str], _Route] = {}
        self.describe_table: Any = client.describe_table
        self.create_table: Any = client.create_table
        self.update_continuous_backups: Any = client.update_continuous_backups
        self.put_item: Any = client.put_item
        self.delete_item: Any = client.delete_item
        self.transact_write_items: Any = client.transact_write_items

    async def scan(self, **request: Any) -> Reply:
        """Return a page; past botocore its items stay JSON, a tenth of what they take as objects."""
        return await self._call("Scan", self._client.scan, request, _page)

    async def get_item(self, **request: Any) -> Reply:
        return await self._call("GetItem", self._client.get_item, request)

    async def update_item(self, **request: Any) -> Reply:
        return await self._call("UpdateItem", self._client.update_item, request)

    async def _call(
        self, operation: str, method: Any, request: dict[str, Any], read: Callable[[bytes], Reply] = _decode
    ) -> Reply:
        """Raises what botocore would, and ``msgspec.DecodeError`` for a body that is cut off or no object."""
        route = await self._route(operation, request)
        if route is None:
            reply: Reply = await method(**request)
            return reply
        body = _encode(request)
        response = await self._client._endpoint.http_session.send(
            AWSPreparedRequest("POST", route.url, _headers(route, body), body, stream_output=False)
        )
        content = await response.content
        if response.status_code == 200:
            return read(content)
        raise await self._error(operation, response, content)

    async def _route(self, operation: str, request: dict[str, Any]) -> _Route | None:
        held = self._client._request_signer._credentials
        credentials = None if held is None else await held.get_frozen_credentials()
        at = operation, request["TableName"]
        found = self._routes.get(at)
        if found is not None and found.credentials == credentials:
            return found
        made = None if credentials is None else await self._resolve(operation, request, credentials)
        if made is not None:
            self._routes[at] = made
        return made

    async def _resolve(self, operation: str, request: dict[str, Any], credentials: Any) -> _Route | None:
        """Let botocore say where this request goes and how it is signed; None if that is not what is done here."""
        client, signer = self._client, self._client._request_signer
        model = client.meta.service_model.operation_model(operation)
        context: dict[str, Any] = {
            "client_region": client.meta.region_name,
            "client_config": client.meta.config,
            "auth_type": model.resolved_auth_type,
            "auth_options": client.meta.service_model.metadata.get("auth"),
        }
        endpoint, more, _ = await client._resolve_endpoint_ruleset(model, request, context)
        made = await client._convert_to_request_dict(request, model, endpoint, context, more)
        parts, signing = urlsplit(made["url"]), context.get("signing", {})
        version = await signer._choose_signer(operation, "standard", context)
        if version != "v4" or parts.path != "/" or parts.query or set(made["headers"]) != _KNOWN:
            return None
        region = signing.get("region") or client.meta.region_name
        service = signing.get("signing_name") or client.meta.service_model.signing_name
        return _Route(
            credentials,
            made["url"],
            _host(made["url"]),
            Signer(credentials.access_key, credentials.secret_key, region, service),
            dict(made["headers"]),
        )

    async def _error(self, operation: str, response: Any, content: bytes) -> Exception:
        """Make what botocore would raise for this reply."""
        model = self._client.meta.service_model.operation_model(operation)
        reply = {"headers": response.headers, "status_code": response.status_code, "body": content}
        parsed = await create_parser(model.service_model.resolved_protocol).parse(
            {**reply, "context": {"operation_name": operation}}, model.output_shape
        )
        error: Exception = self._client.exceptions.from_code(parsed.get("Error", {}).get("Code"))(parsed, operation)
        return error


def _page(content: bytes) -> Reply:
    page = _decode_page(content)
    return {"Items": page.items, "LastEvaluatedKey": page.last_evaluated_key}


def _host(url: str) -> str:
    """Return the Host header as botocore signs it."""
    return str(
        SigV4Auth(ReadOnlyCredentials("", "", None), "", "").headers_to_sign(AWSRequest(method="POST", url=url))["host"]
    )


def _headers(route: _Route, body: bytes) -> Any:
    """Return all headers, signed at this moment by the machine's clock."""
    at, token = strftime(AMZ_DATE, gmtime()), route.credentials.token
    signed = {"content-type": route.headers["Content-Type"], "host": route.host, "x-amz-date": at}
    if token:
        signed["x-amz-security-token"] = token
    signed["x-amz-target"] = route.headers["X-Amz-Target"]
    authorization = route.signer.authorization(signed, body, at=at)
    return {**signed, "authorization": authorization, "user-agent": route.headers["User-Agent"]}
