"""A WSGI application in a thread of its own, whatever it does."""

from contextlib import closing
from typing import Any

import anyio
import pytest

from kcl_py.local.http import HttpRequest
from kcl_py.local.wsgi import ApplicationError, OneThread

pytestmark = pytest.mark.asyncio
REQUEST = HttpRequest("PUT", "/a%2Fb/%C3%BC", "q=1", {}, b"body")


async def test_application_sees_the_request_as_it_was_sent() -> None:
    """Path with and without escapes, query, headers, body and its length."""

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("201 Created", [("X-Path", environ["PATH_INFO"])])
        told = (environ["RAW_URI"], environ["QUERY_STRING"], environ["HTTP_X_ONE"], environ["CONTENT_LENGTH"])
        return [repr(told).encode(), environ["wsgi.input"].read()]

    with closing(OneThread(lambda: app, name="app")) as thread:
        status, headers, body = await thread.answer(REQUEST, {"X-One": "1", "Content-Length": "99"})
    assert (status, headers["X-Path"]) == (201, "/a/b/ü".encode().decode("latin-1"))
    assert body == b"('/a%2Fb/%C3%BC', 'q=1', '1', '4')body"


@pytest.mark.parametrize("error", [StopIteration(), KeyError("x"), ValueError("no")])
async def test_what_the_application_raises_reaches_the_caller(error: Exception) -> None:
    """Also what could not pass as it is."""

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        raise error

    with closing(OneThread(lambda: app, name="app")) as thread, anyio.fail_after(10):
        with pytest.raises(ApplicationError) as caught:
            await thread.answer(REQUEST, {})
        assert caught.value.__cause__ is error


async def test_requests_are_answered_one_at_a_time() -> None:
    """What is read and written in one is not seen half done by another."""
    running: list[int] = []
    most: list[int] = []

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        running.append(1)
        most.append(len(running))
        start_response("200 OK", [])
        running.pop()
        return []

    with closing(OneThread(lambda: app, name="app")) as thread:
        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(thread.answer, REQUEST, {})
    assert most == [1] * 50
