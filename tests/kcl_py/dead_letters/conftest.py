"""Credentials of the tests' own, and each place where dead letters may go."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.kcl_py.dead_letters.places import AWS, KINDS, Place, a_place


@pytest.fixture(autouse=True)
def aws_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine's."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nonexistent")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden-secret")


@pytest_asyncio.fixture(params=KINDS)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """Each place."""
    async with a_place(request.param, tmp_path) as found:
        yield found


@pytest_asyncio.fixture(params=AWS)
async def aws(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """Each place in AWS."""
    async with a_place(request.param, tmp_path) as found:
        yield found
