"""Laws of what processors are handed and finish, seen beside what was put. Instants are seconds."""

from collections.abc import Iterator
from itertools import pairwise

from tests.sim.checker.story import MOST_TOLD, NEVER, Batch, Story


def every_record_is_finished(story: Story) -> Iterator[str]:
    """No loss: also not of what was put while everything went wrong. What holders were asked to skip is excused."""
    put = [line["n"] for line in story.of("put")]
    lost = [
        line["n"] for line in story.of("put") if line["n"] not in story.finishes_s.keys() | story.skipped[line["shard"]]
    ]
    if lost:
        yield f"{len(lost)} of {len(put)} records were never finished, the first of them {lost[:MOST_TOLD]}"


def nothing_is_passed_over(story: Story) -> Iterator[str]:
    """Batches are runs of the shard's order, and none begins while a record before it is unfinished.

    What is left of a batch has gaps. Where each key has its own order, or none has, that is another law's; so is when
    what was given to a batcher comes from there, and others do not wait for that.
    """
    if story.form in ("key", "none"):
        return
    for shard, batches in story.by_shard.items():
        truth = story.truth[shard]
        finished_s = story.finished_s(shard, but=story.given_away)
        for batch in batches:
            if batch.key is not None:
                continue
            first = story.place[batch.records[0]]
            is_rest = story.form == "mixed" and batch.again
            if batch.records != truth[first : first + len(batch.records)] and not is_rest:
                yield f"{batch} is no run of its shard's records"
            elif finished_s[first] > batch.began_s:
                yield f"{batch} begins at record {first} of the shard, and one before it is unfinished"


def a_processor_goes_on_where_it_is(story: Story) -> Iterator[str]:
    """Within one processor each batch follows the one before, which has ended, or comes again, and is marked then."""
    if story.has_lanes:
        return
    reached: dict[tuple[str, int], Batch] = {}
    furthest: dict[tuple[str, int], int] = {}
    settled: set[tuple[str, int, int]] = set()
    batches = iter(story.batches)
    for line in story.lines:
        if line["e"] in ("skipped", "letter"):
            settled.add((line["w"], line["processor"], line["n"]))
        if line["e"] != "batch":
            continue
        batch = next(batches)
        before = reached.get((batch.life, batch.processor))
        reached[batch.life, batch.processor] = batch
        unsettled = () if before is None else before.left or before.records
        left = {record for record in unsettled if (batch.life, batch.processor, record) not in settled}
        if before is not None and before.ended_s > batch.began_s:
            yield f"{batch} begins before {before} has ended"
        elif batch.again:
            is_it = set(batch.records) == left if story.form == "mixed" else set(batch.records) <= left
            if before is None or not is_it:
                yield f"{batch} is marked as one that comes again, and does not"
        elif before is not None:
            expected = furthest[batch.life, batch.processor] + 1
            if before.done_s == NEVER and left:
                yield f"{batch} follows {before}, which was not finished, and is not marked"
            elif story.place[batch.records[0]] != expected:
                yield f"{batch} begins at {story.place[batch.records[0]]}, expected {expected}"
        whose, last = (batch.life, batch.processor), story.place[batch.records[-1]]
        furthest[whose] = max(last, furthest.get(whose, last))


def nothing_finished_comes_again(story: Story) -> Iterator[str]:
    """Within one ownership; where the processor alone decides what is stored, all since its last word may.

    Of a shard whose row was deleted one worker can have two ownerships with the same epoch. A processor that begins
    anew within one gets again what was finished behind a gap.
    """
    if story.form != "batch":
        yield from _repeats(story)
        return
    manual = {line["w"] for line in story.of("up") if line["stores_within_s"] is None}
    reached: dict[tuple[str, str, int], int] = {}
    for line in story.lines:
        match line["e"]:
            case "batch" if line["shard"] not in story.deleted:
                finished = reached.get((line["w"], line["shard"], line["epoch"]), 0)
                if story.place[line["records"][0]] < finished:
                    yield f"{story.called[line['id']]} repeats records, of which {finished} are finished"
            case "returned" if line["done"] and line["w"] not in manual:
                batch = story.called[line["id"]]
                reached[batch.life, batch.shard, batch.epoch] = story.place[batch.records[-1]] + 1
            case "saved":
                reached[line["w"], line["shard"], line["epoch"]] = story.place[line["n"]] + 1


def _repeats(story: Story) -> Iterator[str]:
    """Of single records that were done, or passed over, in one processor."""
    finished: set[tuple[str, int, int]] = set()
    for line in story.lines:
        match line["e"]:
            case "batch":
                batch = story.called[line["id"]]
                again = [record for record in batch.records if (batch.life, batch.processor, record) in finished]
                if again:
                    yield f"{batch} repeats records that are finished: {again[:MOST_TOLD]}"
            case "returned" if line["done"] or "rejected" in line:
                batch = story.called[line["id"]]
                finished.update((batch.life, batch.processor, record) for record in batch.done)
            case "skipped" | "letter" | "saved":
                finished.add((line["w"], line["processor"], line["n"]))


def what_is_asked_for_is_read(story: Story) -> Iterator[str]:
    """Who was asked to go on elsewhere begins there, and all from there on is finished once more.

    Of a shard whose row was deleted nobody knows what was asked.
    """
    for shard, moves in story.moves.items():
        for move in moves:
            batches = (
                batch for batch in story.by_shard.get(shard, ()) if (batch.life, batch.epoch) == (move.life, move.epoch)
            )
            if story.has_lanes:
                batches = (batch for batch in batches if story.place[batch.records[0]] < move.before)
            first = next(batches, None)
            if first is not None and story.place[first.records[0]] != move.before:
                yield f"{first} begins at {story.place[first.records[0]]} of the shard, asked for was {move.before}"
        after = story.truth[shard][moves[-1].before :]
        left = [record for record in after if story.finishes_s.get(record, [-NEVER])[-1] < moves[-1].at_s]
        if left and shard not in story.deleted:
            yield f"{shard}: {len(left)} records were not read after {moves[-1]}, the first of them {left[:MOST_TOLD]}"


def what_is_paused_rests(story: Story) -> Iterator[str]:
    """Once its holder says of a pause that nothing is in hand, nothing is, and nothing comes until it is resumed."""
    resting: set[str] = set()
    for line in story.lines:
        match line["e"]:
            case "row" if "paused" not in line:
                resting.discard(line["shard"])
            case "row" if line.get("quiet") == line["paused"] and line["shard"] not in resting:
                resting.add(line["shard"])
                for batch in story.by_shard.get(line["shard"], ()):
                    if batch.began_s <= line["t"] < batch.ended_s and not story.is_misled(batch):
                        yield f"{batch} was in hand when the shard was said to rest"
            case "deleted":
                resting.discard(line["shard"])
            case "batch" if line["shard"] in resting and not story.is_misled(story.called[line["id"]]):
                yield f"{story.called[line['id']]} was handed over while the shard was paused"


def keys_keep_their_order(story: Story) -> Iterator[str]:
    """A record is first handed over after every earlier one of its key was finished, also over a reshard.

    Those that are given to a batcher have an order of their own, in which they come from there.
    """
    if story.form == "none":
        return
    first: dict[int, Batch] = {}
    for batch in story.batches:
        for record in batch.records if batch.key is not None else set(batch.records) - story.given_away:
            first.setdefault(record, batch)
    last: dict[tuple[str, bool], int] = {}
    for line in story.of("put"):
        record = line["n"]
        key = line["key"], record in story.given_away
        before, handed = last.get(key), first.get(record)
        last[key] = record
        if before is None or handed is None or before in handed.records:  # within one batch it is another law's
            continue
        if story.done_s.get(before, NEVER) > handed.began_s:
            yield f"record {record} of key {key[0]} was handed over before {before} was finished"


def effects_are_applied_once(story: Story) -> Iterator[str]:
    """Those of each record that was not passed over; never more often than it was to be read, once and once more.

    A marker knows of it then, too; a checkpoint that was moved back, or went with its row, does not.
    """
    passed = {line["n"] for line in story.lines if line["e"] in ("skipped", "letter")}
    deletions = sum(not line["w"] for line in story.of("deleted"))
    for line in story.of("effects"):
        times = dict(line["times"])
        for shard, records in story.truth.items():
            befores = [move.before for move in story.moves.get(shard, ())]
            anew = deletions if shard in story.deleted else 0
            for place, record in enumerate(records):
                found = times.get(record, 0)
                is_passed = record in passed or place < (befores[-1] if befores else 0)
                most = 1 + anew + sum(before <= place for before in befores)
                if found > (most if story.form in ("batch", "shard") else 1) or not (found or is_passed):
                    yield f"{shard}: the effect of record {record} was applied {found} times"


def who_hands_over_has_taken(story: Story) -> Iterator[str]:
    """A batch is handed over under an epoch with which that very worker has taken the shard before."""
    for batch in story.batches:
        if story.took_s.get((batch.life, batch.shard, batch.epoch), NEVER) > batch.began_s:
            yield f"{batch} was handed over by a worker that had not taken the shard"


def ownerships_are_disjoint(story: Story) -> Iterator[str]:
    """From first hand-over to last end; but for a machine that stood still with its clock, until it asks the table.

    Nor does who holds a row that an operator deletes know of it before that; another may have made it anew by then.
    """
    deletions = [line for line in story.of("deleted") if not line["w"]]
    for shard, batches in story.by_shard.items():
        deleted_s = [line["t"] for line in deletions if line["shard"] == shard]
        spans: dict[tuple[str, int], tuple[float, float]] = {}
        for batch in batches:
            if story.is_misled(batch):
                continue
            whose = (batch.life, batch.processor)
            began_s, ended_s = spans.get(whose, (batch.began_s, 0.0))
            spans[whose] = (began_s, max(ended_s, batch.ended_s))
        ordered = sorted(spans.items(), key=lambda each: each[1])
        for (one, before), (other, after) in pairwise(ordered):
            until_s = max((at_s + story.failover_s for at_s in deleted_s if before[0] < at_s < after[0]), default=0.0)
            if before[1] > max(after[0], until_s):
                yield f"{shard}: {one} until {before[1]:.3f} and {other} from {after[0]:.3f}"


def epochs_grow(story: Story) -> Iterator[str]:
    """Each ownership of a shard has a greater epoch than all before it, unless its row was deleted."""
    for shard, batches in story.by_shard.items():
        if shard in story.deleted:
            continue
        highest: Batch | None = None
        for batch in batches:
            is_later = highest is None or batch.ownership == highest.ownership or batch.epoch > highest.epoch
            if highest is not None and not is_later and not story.is_misled(batch):
                yield f"{shard}: {batch} is no later than epoch {highest.epoch} of {highest.life}"
            if highest is None or batch.epoch > highest.epoch:
                highest = batch


def parents_come_first(story: Story) -> Iterator[str]:
    """No record of a child is handed over before the last hand-over of its parents has ended.

    A parent whose row was deleted is read again, whatever its children do.
    """
    for shard, batches in story.by_shard.items():
        parents = [parent for parent in story.parents.get(shard, ()) if parent not in story.deleted]
        ended = [each for parent in parents for each in story.by_shard.get(parent, ())]
        ended = [each for each in ended if not story.is_misled(each)]
        last = max(ended, key=lambda batch: batch.ended_s, default=None)
        if last is not None and last.ended_s > batches[0].began_s:
            yield f"{batches[0]} began before its parent's {last} ended at {last.ended_s:.3f}"
