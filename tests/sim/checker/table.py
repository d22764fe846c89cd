"""Laws of what the lease table holds, and of who writes it. Instants are seconds."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from tests.sim.checker.story import END, NEVER, SENTINELS, Move, Story, is_move

LONG_REST_S = 3.5
"""Beside two failover times, in which the shares of the dead expire: a few ticks and the handoffs."""
MOST_MOVES = 3
SETTLING_FAILOVERS = 3
"""So long a row stays after the end of its shard, so that no request about it is on its way any more."""
SLACK_S = 0.5
"""For requests on their way, and for turns of an event loop."""


def checkpoints_are_true(story: Story) -> Iterator[str]:
    """A checkpoint never goes back, and never passes a record that was not finished when it was stored.

    Unless a holder was asked for that, and then in the write that answers; from then on what is finished anew counts.
    """
    finished_s = {shard: story.finished_s(shard) for shard in story.truth}
    stored: dict[str, int] = {}
    moves: dict[str, Move] = {}
    ever: dict[str, int] = defaultdict(int)
    rows: dict[str, dict[str, Any]] = {}
    for line in story.lines:
        if line["e"] == "deleted":
            stored.pop(line["shard"], None)
            moves.pop(line["shard"], None)
        elif line["e"] == "row":
            shard, text = line["shard"], line["checkpoint"]
            covered, before = story.covered(shard, text), rows.get(shard)
            rows[shard] = line
            if before is not None and is_move(before, line):
                stored[shard], ever[shard] = covered, max(covered, ever[shard])
                moves[shard] = next(move for move in story.moves[shard] if move.at_s == line["t"])
                continue
            if covered < stored.get(shard, 0):
                yield f"{shard}: {line['w']} moved the checkpoint back to {covered} at {line['t']:.3f}"
            since = moves.get(shard)
            anew = range(max(stored.get(shard, 0), since.before), covered) if since is not None else range(0)
            is_early = since is not None and not story.is_finished_within(shard, anew, since.at_s, line["t"])
            if is_early or (covered > stored.get(shard, 0) and finished_s.get(shard, [0.0])[covered] > line["t"]):
                yield f"{shard}: {line['w']} stored {_brief(text)} at {line['t']:.3f} beyond an unfinished record"
            stored[shard] = max(covered, stored.get(shard, 0))
            ever[shard] = max(covered, ever[shard])
        elif line["e"] == "saved" and story.place[line["n"]] >= ever[line["shard"]]:
            yield f"{line['shard']}: {line['w']} was told at {line['t']:.3f} that record {line['n']} is stored"


def only_the_owner_writes_a_checkpoint(story: Story) -> Iterator[str]:
    """Who moves a checkpoint or frees a row owned it before, under the token that it has; taking it moves nothing.

    An owner that was asked to go on elsewhere writes a fresh token with that.
    """
    rows: dict[str, dict[str, Any]] = {}
    for line in story.lines:
        if line["e"] == "deleted":
            rows.pop(line["shard"], None)
        elif line["e"] == "row":
            before = rows.get(line["shard"])
            rows[line["shard"]] = line
            if before is None:
                continue
            owner = before["asked"] or before["owner"]
            is_owner = story.owners.get(line["w"]) == owner
            if owner and not line["owner"] and line["w"] and not is_owner:
                yield f"{line['shard']}: {line['w']} freed the row of {owner} at {line['t']:.3f}"
            if before["checkpoint"] == line["checkpoint"]:
                continue
            is_answer = before.get("kind") in ("seek", "resume") and "request" not in line
            if before["token"] != line["token"] and line["checkpoint"] != END and not is_answer:
                yield f"{line['shard']}: a take by {line['w']} moved the checkpoint at {line['t']:.3f}"
            elif not is_owner:
                yield f"{line['shard']}: {line['w']} moved the checkpoint of {before['owner']} at {line['t']:.3f}"


def an_end_is_final(story: Story) -> Iterator[str]:
    """A shard that was read to its end stays so, its children have rows, and nobody takes it again or makes its row."""
    rows: dict[str, dict[str, Any]] = {}
    ever: set[str] = set()
    gone: set[str] = set()
    for line in story.lines:
        if line["e"] == "deleted":
            rows.pop(line["shard"], None)
            gone.add(line["shard"])
        elif line["e"] == "row":
            shard, before = line["shard"], rows.get(line["shard"])
            rows[shard] = line
            if before is None and shard in gone - story.deleted:
                yield f"{shard}: {line['w']} made its row again at {line['t']:.3f}, after its end"
            ever.add(shard)
            had_ended = before is not None and before["checkpoint"] == END
            if had_ended and line["checkpoint"] != END:
                yield f"{shard}: {line['w']} undid its end at {line['t']:.3f}"
            if line["checkpoint"] == END and not had_ended:
                missing = [child for child in story.children[shard] if child not in ever]
                if missing:
                    yield f"{shard} ended at {line['t']:.3f}, and its children {missing} have no rows"
            if had_ended and before is not None and line["owner"] and line["owner"] != before["owner"]:
                yield f"{shard}: {line['w']} took it at {line['t']:.3f}, after its end"


def a_row_goes_when_it_is_done_with(story: Story) -> Iterator[str]:
    """Workers delete the row of an ended shard alone, long after its end, when its children tell all that it tells.

    A child that has told so may be moved back meanwhile; who deletes knows the table as it was at most F ago.
    """
    rows: dict[str, dict[str, Any]] = {}
    told_s: dict[str, float] = {}
    ended_s: dict[str, float] = {}
    for line in story.lines:
        if line["e"] == "row":
            if line["checkpoint"] == END:
                ended_s.setdefault(line["shard"], line["t"])
            before = rows.get(line["shard"])
            if before is not None and before["checkpoint"] not in SENTINELS:
                told_s[line["shard"]] = line["t"]
            rows[line["shard"]] = line
        elif line["e"] == "deleted":
            shard = line["shard"]
            rows.pop(shard, None)
            ended = ended_s.pop(shard, NEVER)
            if not line["w"]:
                continue
            if line["t"] < ended + SETTLING_FAILOVERS * story.failover_s:
                yield f"{shard}: {line['w']} deleted its row at {line['t']:.3f}, and it ended at {ended:.3f}"
            if parents := [parent for parent in story.parents.get(shard, ()) if parent in rows]:
                yield f"{shard}: {line['w']} deleted its row at {line['t']:.3f} before those of {parents}"
            for child in set(story.children[shard]) - story.deleted:
                is_told = child in rows and (
                    rows[child]["checkpoint"] not in SENTINELS
                    or line["t"] <= told_s.get(child, -NEVER) + story.failover_s
                )
                if not is_told:
                    yield f"{shard}: {line['w']} deleted its row at {line['t']:.3f}, and {child} has no progress"


def requests_are_carried_out(story: Story) -> Iterator[str]:
    """Once faults cease none stands for long; and none goes but with what was asked for, or the end of the shard."""
    rows: dict[str, dict[str, Any]] = {}
    tokens: dict[str, str] = {}
    for line in story.lines:
        if line["e"] in ("drained", "stuck"):
            for shard, row in rows.items():
                if row.get("request") and row["checkpoint"] != END:
                    yield f"{shard}: nobody has carried out {row['request']} by {line['t']:.3f}"
        elif line["e"] == "deleted":
            rows.pop(line["shard"], None)
        elif line["e"] == "row":
            before, rows[line["shard"]] = rows.get(line["shard"]), line
            if request := line.get("request"):
                tokens.setdefault(request, line["token"])
            if before is None or not before.get("request") or request or line["checkpoint"] == END:
                continue
            is_seek = before["kind"] == "seek"
            is_done = is_move(before, line) if is_seek else tokens[before["request"]] != line["token"]
            if not is_done and (is_seek or line["owner"] is not None):
                yield f"{line['shard']}: {line['w']} took {before['request']} out at {line['t']:.3f}, and did not do it"


def who_lets_go_stores_what_is_finished(story: Story) -> Iterator[str]:
    """In calm, whoever hands a shard over or releases it has stored all that was finished in this ownership.

    Where the processor alone decides, it can only store when it is asked, in calm. Whose ownership ended by itself, of
    what went wrong before the calm, or with an actor that was killed, stores nothing: he lets go of what still names
    him.
    """
    manual = {line["w"] for line in story.of("up") if line["stores_within_s"] is None}
    asked = {
        (line["w"], line["shard"], line["epoch"])
        for line in story.of("hook")
        if line["hook"] == "shutdown_requested" and line["t"] >= story.calm_s
    }
    lost = _lost(story)
    epochs: dict[str, int] = {}
    held: dict[str, dict[str, Any]] = {}
    for line in story.of("row"):
        before, shard, life = held.get(line["shard"]), line["shard"], line["w"]
        held[shard] = line
        if before is None or before["token"] != line["token"]:
            epochs[shard] = line["counter"]
        lets_go = _lets_go(before, line, story.owners.get(life))
        ownership = life, shard, epochs[shard]
        run = story.runs.get(ownership)
        is_short = run is not None and run.has_grown and story.covered(shard, line["checkpoint"]) < run.reached
        is_over = ownership in lost or story.was_cut_off(life, story.took_s.get(ownership, NEVER))
        can_store = line["t"] >= story.calm_s and not is_over and (life not in manual or ownership in asked)
        if lets_go and can_store and is_short:
            yield f"{shard}: {life} let it go at {line['t']:.3f} at {_brief(line['checkpoint'])}, and had finished more"


def what_is_finished_is_soon_stored(story: Story) -> Iterator[str]:
    """In calm, with a heartbeat: so a crash would repeat little. Where the processor alone decides, nobody knows."""
    rest_s = next((line["t"] for line in story.of("rest")), -NEVER)
    resting = {line["w"] for line in story.of("rest")}
    within_s = {line["w"]: line["stores_within_s"] for line in story.of("up") if line["w"] in resting}
    rows, lost = story.rows(rest_s), _lost(story)
    for (life, shard, epoch), run in story.runs.items():
        if within_s.get(life) is None or shard not in rows or (life, shard, epoch) in lost:
            continue
        if shard in story.deleted:  # with its row what was stored is gone
            continue
        due_s = rest_s - within_s[life] - SLACK_S
        reached = run.by(due_s, since_s=max(story.calm_s, *(move.at_s for move in story.moves.get(shard, ())), 0.0))
        if story.covered(shard, rows[shard]["checkpoint"]) < reached:
            yield f"{shard}: {life} had finished {reached} records by {due_s:.3f}, not stored by {rest_s:.3f}"


def shares_are_even(story: Story) -> Iterator[str]:
    """In a long rest of all who are there: each shard has a holder, nobody has two more than another, nothing moves.

    Who shares by throughput may have more shards than another, since rates go down slowly.
    """
    drained_s, rest_s = (next((line["t"] for line in story.of(event)), NEVER) for event in ("drained", "rest"))
    resting = {line["w"] for line in story.of("rest")}
    quiet_s = max((line["t"] for line in story.of("up") if line["w"] in resting), default=NEVER)
    if not 2 * story.failover_s + LONG_REST_S <= rest_s - max(drained_s, quiet_s) < NEVER:
        return
    loads = Counter({story.owners[life]: 0 for life in sorted(resting)})
    rows = story.rows(rest_s)
    for shard, row in rows.items():
        if row["checkpoint"] == END or _is_blocked(story, rows, shard):
            continue
        if row["owner"] not in loads:
            yield f"{shard} is nobody's at {rest_s:.3f}"
        loads[row["owner"]] += 1
    if story.strategy == "count" and max(loads.values()) - min(loads.values()) > 1:
        yield f"shares are uneven at {rest_s:.3f}: {dict(loads)}"
    for shard, times in _moves(story, drained_s, rest_s).items():
        if times > MOST_MOVES:
            yield f"{shard} was moved {times} times from {drained_s:.3f} to {rest_s:.3f}"


def _moves(story: Story, since_s: float, until_s: float) -> Counter[str]:
    """Count how often each shard went from one worker to another; who takes a free one moves nothing."""
    rows: dict[str, dict[str, Any]] = {}
    moves: Counter[str] = Counter()
    for line in story.of("row"):
        before, rows[line["shard"]] = rows.get(line["shard"]), line
        is_taken = before is not None and before["owner"] is not None and before["token"] != line["token"]
        moves[line["shard"]] += is_taken and since_s < line["t"] < until_s
    return moves


def _lost(story: Story) -> set[tuple[str, str, int]]:
    """Name ownerships, by life, shard and epoch, that went wrong: they ended by themselves, or an actor was killed."""
    found = {
        (line["w"], line["shard"], line["epoch"])
        for line in story.of("hook")
        if line["hook"] == "lease_lost" and line["t"] <= story.calm_s + story.failover_s
    }
    for line in story.of("kill"):
        for (life, shard, epoch), took_s in story.took_s.items():
            if line["w"] == life and took_s <= line["t"] and f"/{shard}/" in f"{line['actor']}/":
                found.add((life, shard, epoch))
    return found


def _is_blocked(story: Story, rows: dict[str, dict[str, Any]], shard: str) -> bool:
    """Whether one of those before a shard is not at its end; one without a row may have to wait for its own parents."""
    return any(
        rows[parent]["checkpoint"] != END if parent in rows else _is_blocked(story, rows, parent)
        for parent in story.parents.get(shard, ())
    )


def _lets_go(before: dict[str, Any] | None, after: dict[str, Any], me: str | None) -> bool:
    """Whether ``me`` was the actual owner of a row, and is so no more by its own write."""
    return before is not None and (before["asked"] or before["owner"]) == me != (after["asked"] or after["owner"])


def _brief(checkpoint: str) -> str:
    return checkpoint if len(checkpoint) < 20 else f"..{checkpoint[-8:]}"
