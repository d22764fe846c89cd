"""A history of one life, sorted by what the laws ask. Imports the standard library only; instants are seconds."""

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

from tests.sim.checker.runs import LANES, Run

NEVER = float("inf")
END = "SHARD_END"
MOST_TOLD = 5
"""Of what broke one law."""
SENTINELS = {"TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"}


@dataclass
class Batch:
    """One call of ``process_records``, or of another hook that gets records."""

    life: str
    processor: int
    shard: str
    epoch: int
    records: list[int]
    again: bool
    began_s: float
    ended_s: float = NEVER
    """When the call returned, or nothing of it could run any more: at a pause, unless it rightly goes on after it."""
    done_s: float = NEVER
    """When all of it was."""
    left: set[int] = field(default_factory=set)
    """Records that are not done, where the processor has said so of each."""
    marks: list[int] = field(default_factory=list)
    """What each record says of itself: 0 nothing, -1 that it may have been in hand before, else which attempt it is.

    Empty where nobody has noted it.
    """
    key: str | None = None
    """Of the batch of a batcher; None: it is none."""
    excused_s: float = -NEVER
    """Until then an end counts as that of the last pause: code in the middle of a batch cannot stop while it sleeps."""

    @cached_property
    def ownership(self) -> tuple[str, int]:
        return self.life, self.epoch

    def __str__(self) -> str:
        return (
            f"{self.shard} batch of {self.life} (epoch {self.epoch}) at {self.began_s:.3f}, "
            f"records {self.records[0]} to {self.records[-1]},"
        )

    @property
    def done(self) -> list[int]:
        """Records that are done once it has ended, if it has not raised."""
        return [record for record in self.records if record not in self.left]

    def end(self, at_s: float, *, excused_s: float = -NEVER) -> None:
        """It stands still from ``at_s`` on; if it returns until ``excused_s``, it did nothing meanwhile."""
        if at_s > self.excused_s:
            self.ended_s = at_s
        self.excused_s = excused_s


@dataclass(frozen=True)
class Move:
    """A holder has gone on elsewhere, as it was asked to."""

    life: str
    shard: str
    epoch: int
    before: int
    """How many records of the shard come before the place; they need not be read any more."""
    at_s: float


@dataclass
class Story:
    """A history, sorted by what the laws ask."""

    lines: list[dict[str, Any]]
    batches: list[Batch] = field(default_factory=list)
    called: dict[int, Batch] = field(default_factory=dict)
    """The batch of each call by its id."""
    by_shard: dict[str, list[Batch]] = field(default_factory=lambda: defaultdict(list))
    truth: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Records of each shard in its order."""
    numbers: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Their sequence numbers."""
    place: dict[int, int] = field(default_factory=dict)
    """The index of each record in its shard."""
    shard_of: dict[int, str] = field(default_factory=dict)
    """Of each record."""
    done_s: dict[int, float] = field(default_factory=dict)
    """When each record was first finished, or skipped because the holder was asked to."""
    finishes_s: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Each time that each record was finished, in order."""
    skipped: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Records of each shard that nobody was to read any more in the end."""
    moves: dict[str, list[Move]] = field(default_factory=lambda: defaultdict(list))
    """Of each shard."""
    parents: dict[str, list[str]] = field(default_factory=dict)
    took_s: dict[tuple[str, str, int], float] = field(default_factory=dict)
    """When each life first took each shard with each epoch: when its write had effect, whatever it knows of it."""
    runs: dict[tuple[str, str, int], Run] = field(default_factory=dict)
    """What was finished in each ownership, by life, shard and epoch."""
    deleted: set[str] = field(default_factory=set)
    """Shards whose rows an operator has deleted, and those before them whose rows had gone already: they come again."""
    thawed_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """For each life, until when its whole machine stood still: its clock misleads it from then on."""

    def of(self, event: str) -> Iterator[dict[str, Any]]:
        return (line for line in self.lines if line["e"] == event)

    @cached_property
    def failover_s(self) -> float:
        found: float = self.lines[0]["failover_s"]
        return found

    @property
    def strategy(self) -> str:
        """What the workers share evenly."""
        found: str = self.lines[0]["strategy"]
        return found

    @cached_property
    def form(self) -> str:
        """How records reached processors."""
        found: str = self.lines[0].get("form", "batch")
        return found

    @property
    def has_lanes(self) -> bool:
        """Whether records reached processors one by one."""
        return self.form in LANES

    @cached_property
    def given_away(self) -> set[int]:
        """Records that were given to a batcher, if only by one of those who had them."""
        return {self.called[line["id"]].records[0] for line in self.of("returned") if "away" in line}

    def places(self, records: Iterable[int]) -> list[int]:
        """Return where in their shards these records are."""
        return [self.place[record] for record in records]

    @cached_property
    def calm_s(self) -> float:
        """From when on nothing goes wrong any more."""
        return next((line["t"] for line in self.of("calm")), NEVER)

    @cached_property
    def children(self) -> Mapping[str, list[str]]:
        """The shards that follow each one."""
        found: dict[str, list[str]] = defaultdict(list)
        for shard, parents in self.parents.items():
            for parent in parents:
                found[parent].append(shard)
        return found

    @cached_property
    def owners(self) -> dict[str, str]:
        """Under which name each life takes shards."""
        return {line["w"]: line["owner"] for line in self.of("up")}

    def rows(self, at_s: float = NEVER) -> dict[str, dict[str, Any]]:
        """Return the lease table as it is then."""
        found: dict[str, dict[str, Any]] = {}
        for line in self.lines:
            if line["t"] > at_s:
                break
            if line["e"] == "row":
                found[line["shard"]] = line
            elif line["e"] == "deleted":
                found.pop(line["shard"], None)
        return found

    def finished_s(self, shard: str, but: Container[int] = ()) -> list[float]:
        """Return when the first 0, 1, 2, ... records of a shard had all been finished once, ``but`` for some."""
        records = self.truth.get(shard, ())
        found = (0.0 if record in but else self.done_s.get(record, NEVER) for record in records)
        return list(accumulate(found, max, initial=0.0))

    def is_finished_within(self, shard: str, places: range, since_s: float, at_s: float) -> bool:
        """Return whether all these records of a shard have been finished between two instants."""
        records = (self.truth[shard][place] for place in places)
        return all(any(since_s <= done_s <= at_s for done_s in self.finishes_s.get(one, ())) for one in records)

    def covered(self, shard: str, checkpoint: str) -> int:
        """Return how many records of a shard a checkpoint covers."""
        if checkpoint == END:
            return len(self.truth.get(shard, ()))
        return 0 if checkpoint in SENTINELS else bisect_right(self.numbers.get(shard, []), int(checkpoint))

    @cached_property
    def _cuts(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["e"] in ("cut", "storm") and line["service"] != "kinesis"]

    def was_cut_off(self, life: str, took_s: float) -> bool:
        """Whether an ownership may have ended by itself: for too long its heartbeats met a cut, or storms of faults."""
        least_s = self.failover_s * 2 / 3 - max(1.0, self.failover_s / 10)
        begun_s, ended_s = took_s, took_s
        for line in self._cuts:
            if line.get("w", life) != life:
                continue
            if line["t"] > ended_s:
                begun_s = line["t"]
            ended_s = max(ended_s, min(line["t"] + line["for_s"], self.calm_s))
            if ended_s - begun_s > least_s:
                return True
        return False

    def is_misled(self, batch: Batch) -> bool:
        """Whether a frozen clock lets a worker go on in good faith: until its own deadline, which it reaches late."""
        took_s = self.took_s.get((batch.life, batch.shard, batch.epoch), NEVER)
        thaws = (thawed_s for thawed_s in self.thawed_s.get(batch.life, ()) if took_s <= thawed_s)
        return any(thawed_s <= batch.began_s <= thawed_s + self.failover_s for thawed_s in thaws)


def read(lines: Iterable[bytes | str]) -> Story:
    """Sort a history."""
    story = Story([json.loads(line) for line in lines])
    _read_records(story)
    _read_batches(story)
    _read_takes(story)
    _read_moves(story)
    _read_runs(story)
    for line in story.of("shard"):
        story.parents[line["shard"]] = line["parents"]
    _read_deletions(story)
    return story


def _read_records(story: Story) -> None:
    puts: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for line in story.of("put"):
        puts[line["shard"]].append((int(line["seq"]), line["n"]))
    for shard, records in puts.items():
        records.sort()
        story.numbers[shard] = [number for number, _ in records]
        story.truth[shard] = [record for _, record in records]
        story.shard_of |= {record: shard for _, record in records}
        story.place |= {record: index for index, (_, record) in enumerate(records)}


def _read_batches(story: Story) -> None:
    open_: dict[int, Batch] = {}
    for line in story.lines:
        now_s, life = line["t"], line.get("w", "")
        in_hand = [batch for batch in open_.values() if batch.life == life]
        match line["e"]:
            case "batch":
                batch = Batch(
                    life, line["processor"], line["shard"], line["epoch"], line["records"], line["again"], now_s
                )
                batch.marks, batch.key = line.get("marks", []), line.get("key")
                open_[line["id"]] = story.called[line["id"]] = batch
                story.batches.append(batch)
                story.by_shard[batch.shard].append(batch)
            case "part":
                _finish(story, open_[line["id"]].records[: line["count"]], now_s)
            case "done":
                batch = open_[line["id"]]
                batch.left = set(line.get("left", ()))
                batch.done_s = NEVER if batch.left else now_s
                _finish(story, batch.done, now_s)
            case "skipped" | "letter":
                _finish(story, [line["n"]], now_s)
            case "returned":
                open_.pop(line["id"]).end(now_s)
            case "crash" | "pause" | "freeze":
                for batch in in_hand:
                    batch.end(now_s, excused_s=NEVER)
            case "resume":
                misled_s = max(story.thawed_s.get(life, ()), default=-NEVER) + story.failover_s
                for batch in in_hand:
                    batch.excused_s = max(now_s, misled_s)
            case "thaw":
                story.thawed_s[life].append(now_s)
                for batch in in_hand:
                    batch.excused_s = now_s + story.failover_s


def _finish(story: Story, records: list[int], now_s: float) -> None:
    for record in records:
        story.done_s.setdefault(record, now_s)
        story.finishes_s[record].append(now_s)


def _read_deletions(story: Story) -> None:
    lost = [line["shard"] for line in story.of("deleted") if not line["w"]]
    gone = {line["shard"] for line in story.of("deleted") if line["w"]}
    story.deleted.update(lost)
    while lost:
        before = [parent for parent in story.parents.get(lost.pop(), ()) if parent in gone - story.deleted]
        story.deleted.update(before)
        lost += before


def _read_takes(story: Story) -> None:
    tokens: dict[str, str] = {}
    for line in story.of("row"):
        if line["token"] is not None and line["token"] != tokens.get(line["shard"]):
            tokens[line["shard"]] = line["token"]
            story.took_s.setdefault((line["w"], line["shard"], line["counter"]), line["t"])


def _read_runs(story: Story) -> None:
    """Where a processor begins anew within an ownership, what is finished behind a gap is not known to it.

    What a call has done counts once it has stored it or has returned: one that raises is made again.
    """
    rows: dict[str, dict[str, Any]] = {}
    in_hand: dict[str, dict[int, Batch]] = defaultdict(dict)

    def end(life: str, call: int, at_s: float, *, is_done: bool) -> None:
        batch = in_hand[life].pop(call, None)
        if batch is not None and is_done:
            run = story.runs[batch.life, batch.shard, batch.epoch]
            run.note(story.places(batch.done), story.places(batch.left), is_lane=story.has_lanes)
            run.step(at_s)

    for line in story.lines:
        match line["e"]:
            case "row":
                rows[line["shard"]] = line
            case "batch":
                batch = story.called[line["id"]]
                run = story.runs.get((batch.life, batch.shard, batch.epoch))
                if run is None or run.processor != batch.processor:
                    begins = _begins(story, batch.shard, rows.get(batch.shard), line["t"])
                    anew = Run(begins, processor=batch.processor, steps=[] if run is None else run.steps)
                    story.runs[batch.life, batch.shard, batch.epoch] = anew
            case "done":
                in_hand[line["w"]][line["id"]] = story.called[line["id"]]
            case "saved":
                stored = [call for call, batch in in_hand[line["w"]].items() if line["n"] in batch.done]
                for call in stored:
                    end(line["w"], call, line["t"], is_done=True)
            case "returned":
                end(line["w"], line["id"], line["t"], is_done=line["done"] or "after_s" in line)
            case "skipped" | "letter":
                run = story.runs[line["w"], line["shard"], line["epoch"]]
                run.add(story.place[line["n"]])
                run.step(line["t"])


def _begins(story: Story, shard: str, row: dict[str, Any] | None, at_s: float) -> int:
    """Return where in a shard a processor begins then."""
    if row is None or row["checkpoint"] in SENTINELS:
        return next((move.before for move in reversed(story.moves.get(shard, ())) if move.at_s <= at_s), 0)
    return story.covered(shard, row["checkpoint"])


def _read_moves(story: Story) -> None:
    asked = {line["id"]: line for line in story.of("ask")}
    rows: dict[str, dict[str, Any]] = {}
    for line in story.of("row"):
        before, rows[line["shard"]] = rows.get(line["shard"]), line
        if before is not None and is_move(before, line):
            move = Move(line["w"], line["shard"], line["counter"], asked[before["request"]]["before"], line["t"])
            story.moves[move.shard].append(move)
            _skip(story, move)


def is_move(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether a write has done what was asked for that moves a shard."""
    is_answer = before.get("kind") == "seek" and "request" not in after
    return is_answer and before["token"] != after["token"] and after["checkpoint"] != END


def _skip(story: Story, move: Move) -> None:
    passed = story.truth.get(move.shard, [])[: move.before]
    story.skipped[move.shard] = {record for record in passed if record not in story.finishes_s}
    for record in passed:
        story.done_s[record] = min(move.at_s, story.done_s.get(record, NEVER))
