"""A life told in a few lines: when, to whom, what. For people who look for what went wrong."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from tests.sim.plan import Plan

MOST_LINES = 60
_UNTOLD = {"put", "done", "given", "held", "life", "shard", "refused", "log"}
_SHARD = re.compile(r"shardId-\d+")
_SHORT = {"shardId-000000000": "shard ", "returned": "has returned from it", "stopped": "has stopped"}


def setting(plan: Plan) -> str:
    """Say in one line what the life is like."""
    weather = ", ".join(f"{one.probability:.0%} {one.kind} of {one.service}" for one in plan.weather) or "no faults"
    options = {name: value for name, value in plan.options.items() if name not in ("leases", "delivery")}
    return (
        f"{plan.slots} workers, {plan.shards} shards, F = {plan.failover_s:g} s, {len(plan.events)} events until "
        f"{plan.calm_s:g} s; {weather}; {plan.work}; {plan.form}; {options}; {plan.options['delivery']}"
    )


def story(lines: Iterable[bytes], broken: Iterable[str] = ()) -> Iterator[str]:
    """Yield the last lines of a history as sentences of a kind; batches in a row are one.

    Of shards only those are told that ``broken`` names, if it names any.
    """
    shards = set(_SHARD.findall(" ".join(broken)))
    told: list[dict[str, Any]] = []
    for line in map(json.loads, lines):
        if line["e"] in _UNTOLD or (line["e"] == "returned" and line["done"]):
            continue
        if shards and line.get("shard", "") not in {"", *shards}:
            continue
        if told and _goes_on(told[-1], line):
            told[-1]["records"] += line["records"]
        else:
            told.append(line)
    for line in told[-MOST_LINES:]:
        yield _sentence(line)


def _goes_on(before: dict[str, Any], line: dict[str, Any]) -> bool:
    whose = ("e", "w", "processor", "shard")
    return line["e"] == "batch" and not line["again"] and all(before.get(name) == line[name] for name in whose)


def _sentence(line: dict[str, Any]) -> str:
    fields = {name: value for name, value in line.items() if name not in ("t", "e", "w") and value not in (None, False)}
    if "records" in fields:
        fields["records"] = f"{fields['records'][0]} to {fields['records'][-1]}"
    shown = " ".join(f"{name} {_short(value)}" for name, value in fields.items())
    return f"{line['t']:9.3f}  {line.get('w', ''):8}  {_SHORT.get(line['e'], line['e'])} {shown}".rstrip()


def _short(value: object) -> str:
    text = str(value).replace("shardId-000000000", "..")
    return f"..{text[-8:]}" if text.isdecimal() and len(text) > 20 else text[:100]
