"""Fixtures for tests of processors; pytest finds this module by its entry point, ``-p no:kcl_py`` leaves it out.

It imports nothing of ours before a fixture is used, and changes no setting of pytest's. The fixtures are not async, so
they go with pytest-asyncio as well as with anyio's plugin.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kcl_py.testing import FakeStream, ManualClock


@pytest.fixture
def kcl_clock() -> "ManualClock":
    """A clock that only the test moves."""
    from kcl_py.testing import ManualClock

    return ManualClock()


@pytest.fixture
def kcl_stream(kcl_clock: "ManualClock") -> "FakeStream":
    """A fake stream of one shard, on the time of ``kcl_clock``."""
    from kcl_py.testing import FakeStream

    return FakeStream(clock=kcl_clock)


@pytest.fixture(scope="session")
def kcl_local() -> Iterator[str]:
    """The address of a ``kcl local`` that runs until all tests have ended; needs the extra ``local``."""
    from kcl_py.testing.local import local_aws

    with local_aws() as url:
        yield url
