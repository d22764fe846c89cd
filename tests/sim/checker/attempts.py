"""Laws of single records: in which order, how often and how many at a time they are tried, and what ends that.

Instants are seconds. An attempt is one call; that of a batch is one of each of its records.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.sim.checker.story import Story

SKEW_S = 300.0
"""A clock that is further behind tells a worker that records came later than they did. Source: docs/semantics.md."""
ROUNDING_S = 0.001


@dataclass
class Tries:
    """What one processor has tried."""

    failed: Counter[int] = field(default_factory=Counter)
    """How often each record has."""
    due_s: dict[int, float] = field(default_factory=dict)
    rejected: set[int] = field(default_factory=set)
    given_up: set[int] = field(default_factory=set)
    marks: dict[int, int] = field(default_factory=dict)
    """What records said of themselves as they were given to a batcher: so they begin there, and are tried anew."""

    def give_away(self, record: int, mark: int) -> None:
        """Begin anew with a record."""
        self.marks[record] = mark
        self.rejected.discard(record)
        self.due_s.pop(record, None)
        del self.failed[record]

    def agrees(self, record: int, mark: int) -> bool:
        """Tell whether a record that comes says of itself what it is."""
        failed = self.failed[record]
        if not failed and record in self.marks:
            return mark == self.marks[record]
        return max(mark, 1) == failed + 1

    def note(self, records: list[int], returned: dict[str, Any]) -> None:
        """Note how an attempt at these has ended."""
        self.failed.update(records)
        self.due_s |= dict.fromkeys(records, returned["t"] + returned.get("after_s", 0.0) - ROUNDING_S)
        self.rejected = self.rejected - set(records) | set(returned.get("rejected", ()))


def what_failed_comes_again_as_what_it_is(story: Story) -> Iterator[str]:
    """Each says which attempt it is, no earlier than the processor has said; and what was given up comes not again."""
    for line, tries in _tries(story):
        if line["e"] != "batch":
            continue
        batch = story.called[line["id"]]
        for record, mark in zip(batch.records, batch.marks, strict=False):
            if not tries.agrees(record, mark):
                yield f"{batch}: record {record} is marked {mark}, and has failed {tries.failed[record]} times"
            if line["t"] < tries.due_s.get(record, 0.0):
                yield f"{batch}: record {record} was put off until {tries.due_s[record]:.3f}"
            if record in tries.given_up:
                yield f"{batch}: record {record} comes again, and was given up"


def nothing_is_given_up_early(story: Story) -> Iterator[str]:
    """But what was refused, or has been tried as often as the options say."""
    retries = {line["w"]: line["retries"] for line in story.of("up") if "retries" in line}
    for line, tries in _tries(story):
        if line["e"] != "given_up":
            continue
        record, failed, limit = line["n"], tries.failed[line["n"]], retries[line["w"]]
        is_rejected = record in tries.rejected
        if line["attempts"] != failed or line["rejected"] != is_rejected or not (is_rejected or failed > limit):
            yield (
                f"{line['shard']}: {line['w']} gave record {record} up at {line['t']:.3f} after {line['attempts']} "
                f"attempts, rejected {line['rejected']}; it had failed {failed} times, rejected {is_rejected}"
            )


def _tries(story: Story) -> Iterator[tuple[dict[str, Any], Tries]]:
    """Yield calls and what is given up with what the processor had tried by then."""
    found: dict[tuple[str, int], Tries] = defaultdict(Tries)
    for line in story.lines:
        match line["e"]:
            case "batch":
                yield line, found[line["w"], line["processor"]]
            case "returned" if "away" in line:
                batch = story.called[line["id"]]
                found[batch.life, batch.processor].give_away(batch.records[0], batch.marks[0])
            case "returned" if not line["done"]:
                batch = story.called[line["id"]]
                left = [record for record in batch.records if record in batch.left]
                found[batch.life, batch.processor].note(left if "rejected" in line else batch.records, line)
            case "given_up":
                tries = found[line["w"], line["processor"]]
                yield line, tries
                tries.given_up.add(line["n"])


def what_was_in_hand_is_marked(story: Story) -> Iterator[str]:
    """A record that says nothing of itself was in nobody's hands before.

    But for a shard that a worker has taken whose clock is far behind, for one whose row was deleted, and for a machine
    that stood still with its clock, until it asks the table. What a batcher hands over was in hand just before.
    """
    handed: set[int] = set()
    behind_s: dict[str, float] = defaultdict(float)
    wrote: dict[str, str] = {}
    excused = set(story.deleted)
    for line in story.lines:
        life = line.get("w", "")
        match line["e"]:
            case "start":
                behind_s[life] = -line["skew_s"]
            case "jump":
                behind_s[life] -= line["by_s"]
                if behind_s[life] > SKEW_S:  # while the reply to its take is on its way, say
                    excused.update(shard for shard, by in wrote.items() if by == life)
            case "freeze":
                behind_s[life] += line["for_s"]
            case "row":
                wrote[line["shard"]] = life
                if behind_s[life] > SKEW_S:
                    excused.add(line["shard"])
            case "batch":
                batch = story.called[line["id"]]
                for record, mark in zip(batch.records, batch.marks, strict=False):
                    is_excused = batch.shard in excused or batch.key is not None or story.is_misled(batch)
                    if not mark and record in handed and not is_excused:
                        yield f"{batch}: record {record} was in hand before, and says nothing of that"
                handed.update(batch.records)


def a_lane_is_serial(story: Story) -> Iterator[str]:
    """One record of it at a time, in order, and none before the one before it is finished; each one only once.

    One that is given to a batcher is no longer of the lane.
    """
    if not story.has_lanes:
        return
    key_of = {line["n"]: line["key"] for line in story.of("put")}
    lanes: dict[str, Callable[[int], str]] = {"key": key_of.__getitem__, "shard": lambda _: "", "none": str}
    lane_of = lanes[story.form]
    in_hand: dict[tuple[str, int, str], int] = {}
    last: dict[tuple[str, int, str], int] = {}
    finished: set[tuple[str, int, int]] = set()
    for line in story.lines:
        match line["e"]:
            case "batch" if "key" not in line:
                batch, whose = story.called[line["id"]], (line["w"], line["processor"])
                [record] = batch.records
                lane = *whose, lane_of(record)
                if lane in in_hand:
                    yield f"{batch} begins while record {in_hand[lane]} of its lane is in hand"
                before, last[lane] = last.get(lane, record), record
                if story.place[record] < story.place[before]:
                    yield f"{batch} begins after record {before} of its lane"
                elif record != before and (*whose, before) not in finished:
                    yield f"{batch} begins, and record {before} of its lane is not finished"
                if (*whose, record) in finished:
                    yield f"{batch} begins, and is finished"
                in_hand[lane] = record
            case "returned" if story.called[line["id"]].key is None:
                batch = story.called[line["id"]]
                [record] = batch.records
                whose = batch.life, batch.processor
                in_hand.pop((*whose, lane_of(record)), None)
                if line["done"] or "away" in line:
                    finished.add((*whose, record))
            case "skipped" | "letter" | "saved":
                finished.add((line["w"], line["processor"], line["n"]))


def what_halts_rests(story: Story) -> Iterator[str]:
    """A processor that has a record that can be neither finished nor passed over gets no other one."""
    halted: set[tuple[str, int]] = set()
    for line in story.lines:
        if line["e"] == "halts":
            halted.add((line["w"], line["processor"]))
        elif line["e"] == "batch" and (line["w"], line["processor"]) in halted:
            yield f"{story.called[line['id']]} begins, and its shard has halted"


def no_more_are_in_work_than_may_be(story: Story) -> Iterator[str]:
    """In the whole worker at the same time, where records come one by one; batches of a batcher are apart."""
    if not story.has_lanes:
        return
    limits = {line["w"]: line["concurrency"] for line in story.of("up")}
    in_work: Counter[str] = Counter()
    for line in story.lines:
        if line["e"] == "batch" and "key" not in line:
            in_work[line["w"]] += 1
            if in_work[line["w"]] > limits[line["w"]]:
                yield f"{story.called[line['id']]} begins, and {limits[line['w']]} are in work"
        elif line["e"] == "returned" and story.called[line["id"]].key is None:
            in_work[line["w"]] -= 1
