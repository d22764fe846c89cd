"""What ``kcl status`` shows, made from the rows of the two tables.

Pure: rows and the time come in, plain values go out. Times are Unix seconds, lags milliseconds as in the rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kcl_py.config import Config
from kcl_py.leases.control import is_quiet
from kcl_py.leases.row import LeaseRow, WorkerRow
from kcl_py.printable import instant, printable

Report = dict[str, Any]

HEAD = ("app", "stream", "table", "at")
WORKER_COLUMNS = ("worker", "state", "held", "max", "seen_s_ago", "held_off")
SHARD_COLUMNS = (
    "shard",
    "state",
    "owner",
    "next_owner",
    "checkpoint",
    "sub",
    "counter",
    "lag_ms",
    "lag_age_s",
    "parents",
    "halted",
    "fault",
    "why",
    "throughput_kbps",
    "held_by",
    "paused",
)
"""The keys of the object and the columns of the text, in their order; extended, never renamed."""
HALTED = "what has halted goes on by kcl resume FILE --shard ID, once its cause is mended"


def report(config: Config, rows: Sequence[LeaseRow], workers: Sequence[WorkerRow], now_s: float) -> Report:
    """Return the status object: JSON values only, shards and workers in the order of their names."""
    shards = [_shard(row, now_s) for row in sorted(rows, key=lambda row: row.key)]
    seen = [_worker(row, now_s, config.leases.failover_s) for row in sorted(workers, key=lambda row: row.worker)]
    return {
        "app": config.app,
        "stream": config.stream_name,
        "table": config.leases.table,
        "at": instant(int(now_s * 1000)),
        "workers": seen,
        "shards": shards,
        "totals": _totals(shards) | {"spilled": _spilled(shards, seen)},
    }


def aged(status: Report, by_s: float) -> Report:
    """Return a report with the ages that its workers and lags have ``by_s`` later."""

    def later(row: Report, age: str) -> Report:
        return row if row[age] is None else row | {age: round(row[age] + by_s, 1)}

    return status | {
        "workers": [later(row, "seen_s_ago") for row in status["workers"]],
        "shards": [later(row, "lag_age_s") for row in status["shards"]],
    }


def state_of(row: LeaseRow) -> str:
    """Return free, owned, handoff or ended."""
    if row.has_ended:
        return "ended"
    if row.in_handoff:
        return "handoff"
    return "owned" if row.owner else "free"


def _shard(row: LeaseRow, now_s: float) -> Report:
    native, is_current = row.native, row.native_is_current
    halted = native.halted if is_current else None
    lag_at_ms = native.lag_at_ms if is_current else None
    return {
        "shard": row.key,
        "state": state_of(row),
        "owner": row.holder,
        "next_owner": row.owner if row.in_handoff else None,
        "checkpoint": row.checkpoint,
        "sub": row.sub,
        "counter": row.counter,
        "lag_ms": native.lag_ms if is_current else None,
        "lag_age_s": None if lag_at_ms is None else round(now_s - lag_at_ms / 1000, 1),
        "parents": list(row.parents),
        "halted": None if halted is None else {"error": halted.error, "position": halted.position},
        "fault": native.fault if is_current or row.holder is None else None,
        "why": native.why if is_current and row.holder else None,
        "throughput_kbps": None if row.throughput_kbps is None else round(float(row.throughput_kbps), 1),
        "held_by": native.held_by if is_current else None,
        "paused": _paused(row),
    }


def _paused(row: LeaseRow) -> Report | None:
    paused = row.native.paused
    if paused is None or row.has_ended:
        return None
    of = "stream" if paused.is_of_stream else "shard"
    return {"since": instant(paused.at_ms), "of": of, "why": paused.why, "is_quiet": is_quiet(row)}


def _worker(row: WorkerRow, now_s: float, failover_s: float) -> Report:
    seen_s_ago = round(now_s - row.updated_s, 1)
    return {
        "worker": row.worker,
        "state": "silent" if seen_s_ago > failover_s else row.state,
        "held": row.held,
        "max": row.max_leases,
        "seen_s_ago": seen_s_ago,
        "held_off": row.held_off,
    }


def _totals(shards: Sequence[Report]) -> Report:
    return {
        "shards": len(shards),
        "owned": sum(shard["state"] in ("owned", "handoff") for shard in shards),
        "ended": sum(shard["state"] == "ended" for shard in shards),
        "halted": sum(shard["halted"] is not None for shard in shards),
        "paused": sum(shard["paused"] is not None for shard in shards),
        "max_lag_ms": max((shard["lag_ms"] for shard in shards if shard["lag_ms"] is not None), default=None),
    }


def _spilled(shards: Sequence[Report], workers: Sequence[Report]) -> int:
    """How many shards no worker may hold, since all that stay are at their limit."""
    staying = [row for row in workers if row["state"] in ("starting", "active")]
    if not staying or any(row["max"] is None for row in staying):
        return 0
    unread = sum(1 for shard in shards if shard["state"] != "ended")
    return max(0, unread - sum(int(row["max"]) for row in staying))


def text(status: Report) -> str:
    """Return the report as text, with the same columns in the same order; nothing in it can steer a terminal."""
    head = "  ".join(f"{key} {_cell(status[key])}" for key in HEAD)
    totals = "  ".join(f"{key} {_cell(value)}" for key, value in status["totals"].items())
    return "\n\n".join(
        [
            head,
            _table(WORKER_COLUMNS, status["workers"]),
            _table(SHARD_COLUMNS, status["shards"]),
            f"totals  {totals}",
            *advice(status),
        ]
    )


def advice(status: Report) -> list[str]:
    """Say how what stands still goes on; nothing if all runs."""
    return [HALTED] if status["totals"]["halted"] else []


def _table(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [names, *([_cell(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _cell(value: object) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, Mapping):
        value = value["since"] if "since" in value else f"{value['error']}@{value['position']}"
    return printable(",".join(value) if isinstance(value, list) else str(value))
