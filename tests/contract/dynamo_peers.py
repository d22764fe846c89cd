"""The DynamoDBs under contract, each as one call: a request in, an HTTP status and a body out.

Binaries are bytes on the way in and base64 on the way out, whoever answers.
"""

import io
import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import aiohttp
import msgspec
from botocore.exceptions import ClientError

from actors.clock import SystemClock
from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.client import DynamoDBClient
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.dynamodb import LocalDynamoDB
from kcl_py.local.http import HttpRequest
from kcl_py.local.model import Kinesis
from kcl_py.local.server import Server, serve
from tests.contract.moto import MotoDynamoDB

Ask = Callable[[str, dict[str, Any]], Awaitable[tuple[int, dict[str, Any]]]]

MINISTACK = Path(__file__).parents[2] / ".peers" / "ministack" / "bin" / "ministack"
"""Installed by ``make peers``; without it, it is not held."""
_START_S = 20.0
_HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host, Signature=0",
}


@asynccontextmanager
async def in_process() -> AsyncIterator[Ask]:
    """The model by its client."""
    clock = SystemClock()
    client = DynamoDBClient(DynamoDB(Behaviour(clock)), clock)

    async def ask(operation: str, params: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in operation)[1:]
        try:
            answer = await getattr(client, name)(**params)
        except ClientError as error:
            response: Any = error.response
            answer = {**response, "__type": response["Error"]["Code"], "message": response["Error"]["Message"]}
        return answer["ResponseMetadata"]["HTTPStatusCode"], msgspec.json.decode(msgspec.json.encode(answer))

    yield ask


@asynccontextmanager
async def over_http() -> AsyncIterator[Ask]:
    """The model behind our server."""
    clock = SystemClock()
    handler = LocalDynamoDB(DynamoDB(Behaviour(clock)))
    async with serve(Server(Kinesis(clock), handler, clock=clock)) as url, at(url) as ask:
        yield ask


@asynccontextmanager
async def by_moto(dynamodb: MotoDynamoDB) -> AsyncIterator[Ask]:
    """The moto that everybody shares; its tables begin with another word."""

    async def ask(operation: str, params: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        headers = _HEADERS | {"X-Amz-Target": f"DynamoDB_20120810.{operation}"}
        status, _, body = await dynamodb(HttpRequest("POST", "/", "", headers, msgspec.json.encode(params)))
        return status, json.loads(body)

    yield ask


@contextmanager
def ministack() -> Iterator[str]:
    """Run a ministack; yields its URL when it is ready."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = os.environ | {"GATEWAY_PORT": str(port), "BIND_HOST": "127.0.0.1", "LOG_LEVEL": "INFO"}
    ready = Event()
    with subprocess.Popen([MINISTACK], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        reader = Thread(target=_read, args=(process.stdout, ready))
        reader.start()
        try:
            assert ready.wait(_START_S)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            reader.join()


def _read(lines: Iterable[str], ready: Event) -> None:
    """Read to the end, so that the pipe never fills."""
    for line in lines:
        if "Running on" in line:
            ready.set()


@asynccontextmanager
async def at(url: str) -> AsyncIterator[Ask]:
    """Whatever answers at a URL."""
    async with aiohttp.ClientSession() as session:

        async def ask(operation: str, params: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            headers = _HEADERS | {"X-Amz-Target": f"DynamoDB_20120810.{operation}"}
            async with session.post(url, data=io.BytesIO(msgspec.json.encode(params)), headers=headers) as reply:
                return reply.status, json.loads(await reply.read())

        yield ask
