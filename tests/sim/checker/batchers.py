"""Laws of records that are given away, and come again together. Instants are seconds."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.sim.checker.story import Story


def a_batcher_keeps_its_order(story: Story) -> Iterator[str]:
    """Of each key it hands over what it was given first and is not finished, one batch at a time.

    So what has failed comes again before all that comes after it.
    """
    waiting: dict[tuple[str, int, str], list[int]] = defaultdict(list)
    in_hand: set[tuple[str, int, str]] = set()
    for line in story.lines:
        match line["e"]:
            case "returned" if "away" in line:
                batch = story.called[line["id"]]
                waiting[batch.life, batch.processor, line["away"]] += batch.records
            case "batch" if "key" in line:
                batch, whose = story.called[line["id"]], (line["w"], line["processor"], line["key"])
                if whose in in_hand:
                    yield f"{batch} begins while another one of its key is in hand"
                if batch.records != waiting[whose][: len(batch.records)]:
                    yield f"{batch} begins, and {waiting[whose][:1]} is what its key goes on with"
                in_hand.add(whose)
            case "returned" if (batch := story.called[line["id"]]).key is not None:
                whose = batch.life, batch.processor, batch.key
                in_hand.discard(whose)
                if line["done"] or "rejected" in line:
                    waiting[whose] = [record for record in waiting[whose] if record not in batch.done]
            case "skipped" | "letter":
                for whose, records in waiting.items():
                    if whose[:2] == (line["w"], line["processor"]) and line["n"] in records:
                        records.remove(line["n"])


def batches_are_no_larger_than_may_be(story: Story) -> Iterator[str]:
    """Nor are more of them in work for one shard."""
    limits = {line["w"]: line["batchers"][0] for line in story.of("up") if line.get("batchers")}
    in_work: Counter[tuple[str, int]] = Counter()
    for line in story.lines:
        if line["e"] == "batch" and "key" in line:
            batch, (most, at_once) = story.called[line["id"]], limits[line["w"]]
            in_work[line["w"], line["processor"]] += 1
            if len(batch.records) > most:
                yield f"{batch} has {len(batch.records)} records of {most}"
            if in_work[line["w"], line["processor"]] > at_once:
                yield f"{batch} begins, and {at_once} are in work"
        elif line["e"] == "returned" and (batch := story.called[line["id"]]).key is not None:
            in_work[batch.life, batch.processor] -= 1
