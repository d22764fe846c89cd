"""The model over HTTP, in this process: with a clock that the cases move, so that nobody waits for minutes."""

from collections.abc import Iterator
from contextlib import contextmanager

from anyio.from_thread import start_blocking_portal

from actors.clock import SystemClock
from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.dynamodb import LocalDynamoDB
from kcl_py.local.model import Kinesis
from kcl_py.local.server import Server, serve
from tests.conformance.service import CHANGE_S, OverHttp


class AheadClock(SystemClock):
    """The machine's clock, and what the cases waited for without waiting."""

    def __init__(self) -> None:
        self._ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self._ahead_s

    def wait(self, pause_s: float) -> None:
        self._ahead_s += pause_s


@contextmanager
def ours(*, with_rates: bool = False) -> Iterator[OverHttp]:
    """Serve the model, with its rates limited or not."""
    clock = AheadClock()
    kinesis = Kinesis(clock, delay_s=CHANGE_S, limit_rates=with_rates)
    server = Server(kinesis, LocalDynamoDB(DynamoDB(Behaviour(clock))), clock=clock)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serve(server)) as url:
        yield OverHttp(url, clock.time, clock.wait)
