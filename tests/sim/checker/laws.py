"""The laws of a life: each returns sentences about what broke it.

Records are known by their numbers, shards by their ids, and everything is seen from outside: what was put, what
processors were handed and finished, what the lease table held. Imports the standard library only; instants are seconds.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from typing import Any

from tests.sim.checker.story import NEVER, Batch, Story

END = "SHARD_END"
SENTINELS = {"TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"}
MOST_TOLD = 5
MOST_KILLS = 3
"""So many of its actors a worker replaces within half a minute. Source: docs/architecture.md."""
REPLY_BYTES = 10 * 1024 * 1024
"""The most that GetRecords answers. Source: Kinesis API reference."""


def every_record_is_finished(story: Story) -> Iterator[str]:
    """No loss: also not of what was put while everything went wrong."""
    put = [line["n"] for line in story.of("put")]
    lost = [record for record in put if record not in story.done_s]
    if lost:
        yield f"{len(lost)} of {len(put)} records were never finished, the first of them {lost[:MOST_TOLD]}"


def nothing_is_passed_over(story: Story) -> Iterator[str]:
    """Batches are runs of the shard's order, and none begins while a record before it is unfinished."""
    for shard, batches in story.by_shard.items():
        truth = story.truth[shard]
        finished_s = list(accumulate((story.done_s.get(record, NEVER) for record in truth), max, initial=0.0))
        for batch in batches:
            first = story.place[batch.records[0]]
            if batch.records != truth[first : first + len(batch.records)]:
                yield f"{_name(batch)} is no run of its shard's records"
            elif finished_s[first] > batch.began_s:
                yield f"{_name(batch)} begins at record {first} of the shard, and one before it is unfinished"


def a_processor_goes_on_where_it_is(story: Story) -> Iterator[str]:
    """Within one processor each batch follows the one before, which has ended, or is marked as one that comes again."""
    reached: dict[tuple[str, int], Batch] = {}
    for batch in story.batches:
        before = reached.get((batch.life, batch.processor))
        if before is not None and before.ended_s > batch.began_s:
            yield f"{_name(batch)} begins before {_name(before)} has ended"
        elif before is not None and not batch.again:
            expected = story.place[before.records[-1]] + 1
            if before.done_s == NEVER:
                yield f"{_name(batch)} follows {_name(before)}, which was not finished, and is not marked"
            elif story.place[batch.records[0]] != expected:
                yield f"{_name(batch)} begins at {story.place[batch.records[0]]}, expected {expected}"
        reached[batch.life, batch.processor] = batch


def keys_keep_their_order(story: Story) -> Iterator[str]:
    """A record is first handed over after every earlier one of its key was finished, also over a reshard."""
    first: dict[int, Batch] = {}
    for batch in story.batches:
        for record in batch.records:
            first.setdefault(record, batch)
    last: dict[str, int] = {}
    for line in story.of("put"):
        key, record = line["key"], line["n"]
        before, handed = last.get(key), first.get(record)
        last[key] = record
        if before is None or handed is None or before in handed.records:  # within one batch it is another law's
            continue
        if story.done_s.get(before, NEVER) > handed.began_s:
            yield f"record {record} of key {key} was handed over before {before} was finished"


def ownerships_are_disjoint(story: Story) -> Iterator[str]:
    """From first hand-over to last end; but for a machine that stood still with its clock, until it asks the table."""
    for shard, batches in story.by_shard.items():
        spans: dict[tuple[str, int], tuple[float, float]] = {}
        for batch in batches:
            if _is_misled(story, batch):
                continue
            whose = (batch.life, batch.processor)
            began_s, ended_s = spans.get(whose, (batch.began_s, 0.0))
            spans[whose] = (began_s, max(ended_s, batch.ended_s))
        ordered = sorted(spans.items(), key=lambda each: each[1])
        for (one, before), (other, after) in pairwise(ordered):
            if before[1] > after[0]:
                yield f"{shard}: {one} until {before[1]:.3f} and {other} from {after[0]:.3f}"


def _is_misled(story: Story, batch: Batch) -> bool:
    """Whether a frozen clock lets a worker go on in good faith: until its own deadline, which it reaches too late."""
    failover_s: float = next(story.of("life"))["failover_s"]
    took_s = story.took_s.get((batch.life, batch.shard, batch.epoch), NEVER)
    thaws = (thawed_s for _, thawed_s in story.frozen.get(batch.life, ()) if took_s <= thawed_s)
    return any(thawed_s <= batch.began_s <= thawed_s + failover_s for thawed_s in thaws)


def who_hands_over_has_taken(story: Story) -> Iterator[str]:
    """A batch is handed over under an epoch with which that very worker has taken the shard before."""
    for batch in story.batches:
        if story.took_s.get((batch.life, batch.shard, batch.epoch), NEVER) > batch.began_s:
            yield f"{_name(batch)} was handed over by a worker that had not taken the shard"


def epochs_grow(story: Story) -> Iterator[str]:
    """Each ownership of a shard has a greater epoch than all before it, unless its row was deleted."""
    for shard, batches in story.by_shard.items():
        if shard in story.deleted:
            continue
        highest: Batch | None = None
        for batch in batches:
            is_later = highest is None or batch.ownership == highest.ownership or batch.epoch > highest.epoch
            if highest is not None and not is_later and not _is_misled(story, batch):
                yield f"{shard}: {_name(batch)} is no later than epoch {highest.epoch} of {highest.life}"
            if highest is None or batch.epoch > highest.epoch:
                highest = batch


def parents_come_first(story: Story) -> Iterator[str]:
    """No record of a child is handed over before the last hand-over of its parents has ended.

    A parent whose row was deleted is read again, whatever its children do.
    """
    for shard, batches in story.by_shard.items():
        parents = [parent for parent in story.parents.get(shard, ()) if parent not in story.deleted]
        ended = [each for parent in parents for each in story.by_shard.get(parent, ())]
        ended = [each for each in ended if not _is_misled(story, each)]
        last = max(ended, key=lambda batch: batch.ended_s, default=None)
        if last is not None and last.ended_s > batches[0].began_s:
            yield f"{_name(batches[0])} began before its parent's {_name(last)} ended at {last.ended_s:.3f}"


def checkpoints_are_true(story: Story) -> Iterator[str]:
    """A checkpoint never goes back, and never passes a record that was not finished when it was stored."""
    finished_s = {
        shard: list(accumulate((story.done_s.get(record, NEVER) for record in truth), max, initial=0.0))
        for shard, truth in story.truth.items()
    }
    stored: dict[str, int] = {}
    ever: dict[str, int] = defaultdict(int)
    for line in story.lines:
        if line["e"] == "deleted":
            stored.pop(line["shard"], None)
        elif line["e"] == "row":
            shard, text = line["shard"], line["checkpoint"]
            covered = _covered(story, shard, text)
            if covered < stored.get(shard, 0):
                yield f"{shard}: {line['w']} moved the checkpoint back to {covered} at {line['t']:.3f}"
            if covered > stored.get(shard, 0) and finished_s.get(shard, [0.0])[covered] > line["t"]:
                yield f"{shard}: {line['w']} stored {_brief(text)} at {line['t']:.3f} beyond an unfinished record"
            stored[shard] = max(covered, stored.get(shard, 0))
            ever[shard] = max(covered, ever[shard])
        elif line["e"] == "saved" and story.place[line["n"]] >= ever[line["shard"]]:
            yield f"{line['shard']}: {line['w']} was told at {line['t']:.3f} that record {line['n']} is stored"


def _covered(story: Story, shard: str, text: str) -> int:
    """Return how many records of a shard a checkpoint covers."""
    if text == END:
        return len(story.truth.get(shard, ()))
    return 0 if text in SENTINELS else bisect_right(story.numbers.get(shard, []), int(text))


def only_the_owner_writes_a_checkpoint(story: Story) -> Iterator[str]:
    """Who moves a checkpoint owned the row before, under the token that the row has; taking it moves nothing."""
    owners = {line["w"]: line["owner"] for line in story.of("up")}
    rows: dict[str, dict[str, Any]] = {}
    for line in story.lines:
        if line["e"] == "deleted":
            rows.pop(line["shard"], None)
        elif line["e"] == "row":
            before = rows.get(line["shard"])
            rows[line["shard"]] = line
            if before is None or before["checkpoint"] == line["checkpoint"]:
                continue
            if before["token"] != line["token"] and line["checkpoint"] != END:
                yield f"{line['shard']}: a take by {line['w']} moved the checkpoint at {line['t']:.3f}"
            elif owners.get(line["w"]) != (before["asked"] or before["owner"]):
                yield f"{line['shard']}: {line['w']} moved the checkpoint of {before['owner']} at {line['t']:.3f}"


def an_end_is_final(story: Story) -> Iterator[str]:
    """A shard that was read to its end stays so, its children have rows, and nobody takes it again."""
    rows: dict[str, dict[str, Any]] = {}
    ever: set[str] = set()
    children: dict[str, list[str]] = defaultdict(list)
    for shard, parents in story.parents.items():
        for parent in parents:
            children[parent].append(shard)
    for line in story.lines:
        if line["e"] == "deleted":
            rows.pop(line["shard"], None)
        elif line["e"] == "row":
            shard, before = line["shard"], rows.get(line["shard"])
            rows[shard] = line
            ever.add(shard)
            had_ended = before is not None and before["checkpoint"] == END
            if had_ended and line["checkpoint"] != END:
                yield f"{shard}: {line['w']} undid its end at {line['t']:.3f}"
            if line["checkpoint"] == END and not had_ended:
                missing = [child for child in children[shard] if child not in ever]
                if missing:
                    yield f"{shard} ended at {line['t']:.3f}, and its children {missing} have no rows"
            if had_ended and before is not None and line["owner"] and line["owner"] != before["owner"]:
                yield f"{shard}: {line['w']} took it at {line['t']:.3f}, after its end"


def what_stops_leaves_nothing(story: Story) -> Iterator[str]:
    """After the fleet was stopped in calm no row and no task is a worker's that ended in order, and all did."""
    calm_s = next((line["t"] for line in story.of("calm")), NEVER)
    owners = {line["w"]: line["owner"] for line in story.of("up")}
    ended = {line["w"]: line for line in story.of("stopped")}
    for line in story.of("hangs"):
        yield f"{line['w']} did not stop"
    for line in story.of("left"):
        if line["tasks"]:
            yield f"tasks are left: {line['tasks'][:MOST_TOLD]}"
    for line in ended.values():
        asked_s = max((stop["t"] for stop in story.of("stop") if stop["w"] == line["w"]), default=0.0)
        if asked_s >= calm_s and not (line["let_go"] and not line["unfinished"]):
            yield f"{line['w']} did not end cleanly: let go {line['let_go']}, unfinished {line['unfinished']}"
    rows = {line["shard"]: line for line in story.of("row")}
    clean = {owners[life] for life, line in ended.items() if line["let_go"] and line["t"] >= calm_s}
    for shard, row in rows.items():
        if {row["owner"], row["asked"]} & clean:
            yield f"{shard} still names {row['owner']} or {row['asked']}, who has stopped"


def who_lets_go_stores_what_is_finished(story: Story) -> Iterator[str]:
    """In calm, whoever hands a shard over or releases it has stored all that was finished in this ownership."""
    calm_s = next((line["t"] for line in story.of("calm")), NEVER)
    owners = {line["w"]: line["owner"] for line in story.of("up")}
    finished: dict[tuple[str, str, float], int] = defaultdict(int)
    for batch in story.batches:
        if batch.done_s < NEVER:
            ownership = batch.life, batch.shard, batch.epoch
            finished[ownership] = max(story.place[batch.records[-1]] + 1, finished[ownership])
    epochs: dict[str, int] = {}
    held: dict[str, dict[str, Any]] = {}
    for line in story.of("row"):
        before, shard, life = held.get(line["shard"]), line["shard"], line["w"]
        held[shard] = line
        if before is None or before["token"] != line["token"]:
            epochs[shard] = line["counter"]
        lets_go = before is not None and before["holder"] == owners.get(life) and line["holder"] != owners.get(life)
        is_short = _covered(story, shard, line["checkpoint"]) < finished[life, shard, epochs[shard]]
        if lets_go and line["t"] >= calm_s and is_short:
            yield f"{shard}: {life} let it go at {line['t']:.3f} at {_brief(line['checkpoint'])}, and had finished more"


def memory_is_bounded(story: Story) -> Iterator[str]:
    """What a worker holds of payloads, and may receive, stays within its budget and one reply."""
    for line in story.of("held"):
        if line["used_bytes"] > line["budget_bytes"] + REPLY_BYTES:
            yield f"{line['w']} used {line['used_bytes']} bytes of {line['budget_bytes']} at {line['t']:.3f}"


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


LAWS: tuple[Callable[[Story], Iterator[str]], ...] = (
    every_record_is_finished,
    nothing_is_passed_over,
    a_processor_goes_on_where_it_is,
    keys_keep_their_order,
    who_hands_over_has_taken,
    ownerships_are_disjoint,
    epochs_grow,
    parents_come_first,
    checkpoints_are_true,
    only_the_owner_writes_a_checkpoint,
    an_end_is_final,
    what_stops_leaves_nothing,
    who_lets_go_stores_what_is_finished,
    memory_is_bounded,
    nobody_fails,
    nobody_spins,
    all_is_read_in_the_end,
)


def _name(batch: Batch) -> str:
    return (
        f"{batch.shard} batch of {batch.life} (epoch {batch.epoch}) at {batch.began_s:.3f}, "
        f"records {batch.records[0]} to {batch.records[-1]},"
    )


def _brief(checkpoint: str) -> str:
    return checkpoint if len(checkpoint) < 20 else f"..{checkpoint[-8:]}"
