"""What every test begins with."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog


@pytest.fixture(autouse=True)
def fresh_logging() -> Iterator[None]:
    """No test logs to where an earlier one had logging sent."""
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def plugin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a pytest in a folder of its own is to be told so that it finds this checkout, and our fixtures in it."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    is_installed = request.config.pluginmanager.has_plugin("kcl_py")
    return [] if is_installed else ["-p", "kcl_py.pytest_plugin"]
