"""What happened between two looks at the tables, in sentences for people. Pure."""

from collections.abc import Iterator

from kcl_py.printable import printable
from kcl_py.status import Report

WHY = {
    "balance": "for balance",
    "leaver": "its holder leaves",
    "expired": "it had expired",
    "own": "its own before",
    "handoff": "by handoff",
}
"""What ``native.why`` means, in words."""


def changes(before: Report, after: Report) -> list[str]:
    """Say what became of workers and shards from one report of ``kcl_py.status`` to the next."""
    workers = _pairs(before["workers"], after["workers"], "worker")
    shards = _pairs(before["shards"], after["shards"], "shard")
    said = [(name, what) for name, one, two in workers for what in _of_worker(one, two)]
    said += [(name, what) for name, one, two in shards for what in _of_shard(one, two)]
    return [printable(f"{name} {what}") for name, what in said]


def _pairs(before: list[Report], after: list[Report], key: str) -> Iterator[tuple[str, Report | None, Report | None]]:
    one, two = ({row[key]: row for row in rows} for rows in (before, after))
    return ((name, one.get(name), two.get(name)) for name in sorted(one | two))


def _of_worker(before: Report | None, after: Report | None) -> Iterator[str]:
    if after is None:
        yield "has left"
    elif before is None:
        yield f"is there, {after['state']}"
    elif before["state"] != after["state"]:
        yield f"is {after['state']}, was {before['state']}"
    if after is not None and after["held_off"] and (before is None or before["held_off"] != after["held_off"]):
        yield f"takes no more shards: {after['held_off']}"


def _of_shard(before: Report | None, after: Report | None) -> Iterator[str]:
    if after is None:
        yield "has no row any more"
        return
    if before is None:
        parents = " and ".join(after["parents"])
        yield "has a row" + (f", after {parents}" if parents else "")
        before = after | {
            "owner": None,
            "next_owner": None,
            "state": "free",
            "halted": None,
            "fault": None,
            "paused": None,
        }
    if after["state"] == "ended" != before["state"]:
        yield "is read to its end" + (f", by {before['owner']}" if before["owner"] else "")
    elif before["owner"] != after["owner"]:
        yield _moved(before["owner"], after["owner"], after["why"])
    elif before["next_owner"] is not None and after["next_owner"] is None and after["owner"] is not None:
        yield f"is kept by {after['owner']}, not given to {before['next_owner']}"
    if after["next_owner"] not in (None, before["next_owner"]):
        yield f"is asked for by {after['next_owner']}, held by {after['owner']}"
    if after["halted"] and not before["halted"]:
        yield f"has halted: {after['halted']['error']}, at {after['halted']['position']}"
    elif before["halted"] and not after["halted"]:
        yield "is halted no more"
    yield from _of_pause(before["paused"], after["paused"])
    if after["fault"] and not before["fault"]:
        yield f"could not be run: {after['fault']}"


def _of_pause(before: Report | None, after: Report | None) -> Iterator[str]:
    if after and not before:
        yield "is paused" + (" with the whole stream" if after["of"] == "stream" else "") + _because(after)
    elif after and before and after["is_quiet"] and not before["is_quiet"]:
        yield "has come to rest"
    elif before and not after:
        yield "is paused no more"


def _because(paused: Report) -> str:
    return f": {paused['why']}" if paused["why"] else ""


def _moved(before: str | None, after: str | None, why: str | None) -> str:
    if after is None:
        return f"was let go by {before}"
    told = f": {WHY.get(why, why)}" if why and why != "free" else ""
    return (f"was taken by {after}" if before is None else f"went from {before} to {after}") + told
