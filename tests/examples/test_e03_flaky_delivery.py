"""The third example shows what comes again after a failure."""

import signal
from typing import Any

from tests.examples.conftest import Run, put


def test_flaky_delivery_sends_each_record_once_and_in_order_though_the_service_fails(run: Run, kinesis: Any) -> None:
    """Only what had not got through comes again, with the reason; the last hook runs when the worker stops."""
    put(kinesis, "apple", "bean", "cherry", "date", "elder", "fig")
    worker = run("e03_flaky_delivery.yaml", KCL_DELIVERY__BACKOFF_S="0.01")
    worker.out.until_said("sent fig")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    sent = [line for line in worker.out.lines if line.startswith("sent ")]
    assert sent == [f"sent {fruit}" for fruit in ("apple", "bean", "cherry", "date", "elder", "fig")]
    assert worker.out.lines[0] == "shardId-000000000000: mine, from the beginning on"
    assert worker.out.lines[4] == "attempt 2, because ConnectionError: 503 service unavailable"
    assert worker.out.lines[-1] == "stopping in order; what was sent is checkpointed"
    assert [event["attempt"] for event in worker.logged("batch.failed")] == [1]
