"""Laws of what workers may use, how long they may take, how they end and what they leave. Instants are seconds."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from tests.sim.checker.runs import Run
from tests.sim.checker.story import MOST_TOLD, Story

FAREWELL_S = 5.0
"""How long the last hook may take. Source: docs/semantics.md."""
CALM_STOP_S = 10.0
"""For a stop when nothing goes wrong: a few ticks, and the batches in hand."""
MOST_KILLS = 3
"""So many of its actors a worker replaces within half a minute. Source: docs/architecture.md."""
REPLY_BYTES = 10 * 1024 * 1024
"""The most that GetRecords answers. Source: Kinesis API reference."""


def what_stops_leaves_nothing(story: Story) -> Iterator[str]:
    """After the fleet was stopped in calm no row and no task is a worker's that ended in order, and all did."""
    for line in story.of("hangs"):
        yield f"{line['w']} did not stop"
    for line in story.of("left"):
        if line["tasks"]:
            yield f"tasks are left: {line['tasks'][:MOST_TOLD]}"
    asked_s = {line["w"]: line["t"] for line in story.lines if line["e"] in ("stop", "cancel")}
    gone = {story.owners[line["w"]] for line in story.of("cancelled") if asked_s[line["w"]] >= story.calm_s}
    for line in story.of("stopped"):
        if asked_s[line["w"]] >= story.calm_s and not (line["let_go"] and not line["unfinished"]):
            yield f"{line['w']} did not end cleanly: let go {line['let_go']}, unfinished {line['unfinished']}"
        if line["t"] >= story.calm_s and line["let_go"]:
            gone.add(story.owners[line["w"]])
    for shard, row in story.rows().items():
        if {row["owner"], row["asked"]} & gone:
            yield f"{shard} still names {row['owner']} or {row['asked']}, who has stopped"


def a_stop_takes_no_longer_than_its_grace(story: Story) -> Iterator[str]:
    """And what is left to do then: a farewell to processors, and a last word to a table that may not answer."""
    asked: dict[str, tuple[float, float]] = {}
    for line in story.lines:
        if line["e"] in ("resume", "thaw") and line["w"] in asked:
            asked_s, until_s = asked[line["w"]]
            asked[line["w"]] = asked_s, max(until_s, line["t"]) + FAREWELL_S + story.failover_s
        elif line["e"] in ("stop", "cancel"):
            asked[line["w"]] = line["t"], line["t"] + line["grace_s"] + FAREWELL_S + story.failover_s
        elif line["e"] in ("stopped", "cancelled"):
            asked_s, until_s = asked[line["w"]]
            if asked_s >= story.calm_s:
                until_s = asked_s + CALM_STOP_S
            if line["t"] > until_s:
                yield f"{line['w']} was to stop at {asked_s:.3f}, and did so at {line['t']:.3f}"


def reading_ahead_is_bounded(story: Story) -> Iterator[str]:
    """Nothing is asked for while as many records of the shard as allowed are read and not finished."""
    limits = {line["w"]: line["ahead_records"] for line in story.of("up")}
    for line, in_hand in _in_hand(story):
        if line["e"] == "given" and in_hand >= limits[line["w"]]:
            yield f"{line['w']} asked for more at {line['t']:.3f} with {in_hand} records of a shard in hand"


def memory_is_bounded(story: Story) -> Iterator[str]:
    """What a worker holds of payloads, and may receive, stays within its budget and one reply; nothing is kept."""
    for line in story.of("held"):
        if line["used_bytes"] > line["budget_bytes"] + REPLY_BYTES:
            yield f"{line['w']} used {line['used_bytes']} bytes of {line['budget_bytes']} at {line['t']:.3f}"
    for line, in_hand in _in_hand(story):
        if line["e"] == "rest" and line["held_bytes"] and not in_hand:
            yield f"{line['w']} holds {line['held_bytes']} bytes at {line['t']:.3f}, and has finished all"


def _in_hand(story: Story) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield what workers are given, and their rests, with how many records they had then: of that shard, or of all."""
    reached: dict[str, dict[str, int]] = defaultdict(dict)
    finished: dict[str, dict[str, Run]] = defaultdict(dict)
    on_its_way: dict[str, dict[str, int]] = defaultdict(dict)
    said_done: set[int] = set()
    for line in story.lines:
        life = line.get("w", "")
        match line["e"]:
            case "row" if story.took_s.get((life, line["shard"], line["counter"])) == line["t"]:
                on_its_way[line["shard"]] = reached.pop(line["shard"], {})
                finished.pop(line["shard"], None)
            case "given":
                shard, begins = story.shard_of[line["first"]], story.place[line["first"]]
                if life in reached[shard] and begins == on_its_way[shard].get(life) != reached[shard][life]:
                    continue  # asked for by the ownership before, which ended before the answer
                yield line, begins - finished[shard].setdefault(life, Run(begins)).reached
                reached[shard][life] = begins + line["records"]
            case "batch" if life in finished[line["shard"]] and story.form == "batch":
                before = story.place[line["records"][0]]  # what is before it is done, also by a checkpoint alone
                known = 0 if line["again"] else finished[line["shard"]][life].reached
                finished[line["shard"]][life] = Run(max(known, before))
            case "part":  # what the processor says is finished makes room, though the batch fails
                last = story.called[line["id"]].records[line["count"] - 1]
                finished[story.shard_of[last]].setdefault(life, Run(0)).settle([story.place[last]], ())
            case "done":
                said_done.add(line["id"])
            case "returned" if line["id"] in said_done:  # who raises then may have said so by a checkpoint
                batch = story.called[line["id"]]
                if not story.has_lanes:
                    finished[batch.shard].setdefault(life, Run(0))
                if run := finished[batch.shard].get(life):
                    run.note(story.places(batch.done), story.places(batch.left), is_lane=story.has_lanes)
            case "skipped" | "letter" if life in finished[line["shard"]]:
                finished[line["shard"]][life].add(story.place[line["n"]])
            case "rest":
                mine = {shard: runs[life] for shard, runs in finished.items() if life in runs}
                yield line, sum(reached[shard].get(life, 0) > run.reached for shard, run in mine.items())


def nobody_fails(story: Story) -> Iterator[str]:
    """A worker ends by itself only if AWS cannot be reached at its start, or its actors were killed again and again."""
    killed = Counter(line["w"] for line in story.of("kill"))
    up = {line["w"] for line in story.of("up")}
    for line in story.of("failed"):
        is_unreached = line["w"] not in up and line["error"] in ("EndpointError", "AwsSetupError")
        if not is_unreached and killed[line["w"]] <= MOST_KILLS:
            yield f"{line['w']} failed at {line['t']:.3f}: {line['error']}: {line['text']}"


def nobody_spins(story: Story) -> Iterator[str]:
    """Nothing keeps the processor busy without end, and nothing waits for what cannot come."""
    for line in story.of("spins"):
        yield str(line["text"])


def all_is_read_in_the_end(story: Story) -> Iterator[str]:
    """Once faults cease the lag goes to nothing within its bound."""
    for line in story.of("stuck"):
        yield f"{line['left']} records are unread at {line['t']:.3f}, long after the faults ceased"
    if not any(line["e"] in ("left", "spins") for line in story.lines):
        yield "the life did not come to its end"
