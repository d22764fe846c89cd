"""A stub of AWS over HTTP, and an environment in which no credentials are found but the test's own."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.kcl_py.sources.stub_service import StubService


@pytest.fixture(autouse=True)
def aws_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials of the test, and nothing of the machine's."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nonexistent")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden-secret")


@pytest_asyncio.fixture
async def stub() -> AsyncIterator[StubService]:
    """A running stub."""
    service = StubService()
    await service.start()
    yield service
    await service.stop()
