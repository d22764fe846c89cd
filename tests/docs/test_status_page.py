"""What the status page shows of a terminal is what a terminal shows."""

from io import StringIO
from typing import Any

from rich.console import Console

from kcl_py.cli.screen import Look, screen
from kcl_py.config import Config
from kcl_py.leases.row import Halt, LeaseRow, Native, WorkerRow
from kcl_py.status import report
from tests.docs.pages import DOCS, blocks

ALPHA, BETA = "alpha/1e24ad3c", "beta/ed272442"
NOW_S = 1_767_258_000
"""2026-01-01T09:00:00Z."""
HALT = Halt("ValueError: no price for article 7", "49680634167093564963910005624663557668153065835998478354")
TROUBLE = (
    "cannot read lease table 'orders': EndpointConnectionError: cannot connect to http://127.0.0.1:4567 "
    "(ClientConnectorError)"
)


def native(lag_ms: int, age_ms: int, **fields: Any) -> Native:
    """Return what alpha has written, some time ago."""
    return Native(owner=ALPHA, lag_ms=lag_ms, lag_at_ms=NOW_S * 1000 - age_ms, **fields)


SHARDS = [
    LeaseRow("shardId-000000000001", checkpoint="SHARD_END"),
    LeaseRow(
        "shardId-000000000003",
        owner=ALPHA,
        checkpoint="49680634167093564963910005624663557668901153714194",
        throughput_kbps=12.9,
        native=native(300, 900),
    ),
    LeaseRow("shardId-000000000007", owner=BETA, checkpoint_owner=ALPHA, throughput_kbps=4.1, native=native(0, 700)),
    LeaseRow("shardId-000000000008", owner=ALPHA, throughput_kbps=0.0, native=native(8596, 300, halted=HALT)),
]
WORKERS = [
    WorkerRow(ALPHA, state="active", updated_s=NOW_S - 1),
    WorkerRow(BETA, state="starting", held_off="no processor has initialised yet", updated_s=NOW_S - 1),
    *(WorkerRow(f"gone/{number}", state="active", held=1) for number in range(3)),
]


def drawn(look: Look, width: int, *, later_s: float = 0.0) -> str:
    """Return what a terminal shows."""
    console = Console(file=StringIO(), width=width)
    with console.capture() as capture:
        console.print(screen(look, NOW_S + later_s, width))
    return capture.get()


def test_examples_of_the_status_page_are_what_a_terminal_shows() -> None:
    """While all is well with the tables, and in an outage, of which the page shows the beginning."""
    status = report(Config(app="orders", stream="orders", processor="m:C"), SHARDS, WORKERS, NOW_S)
    _, now, outage = blocks(DOCS / "status.md", "text")
    assert now == drawn(Look(status), 80)
    assert drawn(Look(status, trouble=TROUBLE, is_stale=True), 100, later_s=15).startswith(outage)
