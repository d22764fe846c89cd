"""Processors for child processes, which import them from here; what they do is told by what is in the records."""

import os
import signal
import sys
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kcl_py import (
    Batched,
    Batcher,
    Failure,
    Middleware,
    OwnedShard,
    Record,
    RecordBatch,
    RecordProcessor,
    Reject,
    Retry,
    ToBatch,
)
from kcl_py.effects import Put
from kcl_py.errors import EffectsRefusedError
from kcl_py.executors.checkpointer import SyncCheckpointer
from kcl_py.processor import FailurePolicy


class Diary(RecordProcessor):
    """Writes a line for each hook into the file that ``DIARY`` names."""

    def __init__(self) -> None:
        self.batches = 0

    def initialize(self, shard: OwnedShard) -> None:  # type: ignore[override]
        write("initialize")

    def process_records(self, batch: RecordBatch, checkpointer: SyncCheckpointer) -> Any:  # type: ignore[override]
        self.batches += 1
        tried = 1 if batch.redelivery is None else batch.redelivery.attempt
        for record in batch:
            write(f"{self.batches} {record.data.decode()} {tried}")
            if tried == 1:
                do(record.data.decode(), batch, checkpointer)
        return outcome_of(batch) if tried == 1 else None

    def shard_ended(self, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
        write("shard_ended")

    def shutdown_requested(self, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
        write("shutdown_requested")

    def lease_lost(self) -> None:  # type: ignore[override]
        write("lease_lost")


def do(what: str, batch: RecordBatch, checkpointer: SyncCheckpointer) -> None:
    """Do what a record says."""
    match what:
        case "raise":
            raise LookupError("nothing of that name")
        case "exit":
            raise SystemExit(3)
        case "os._exit":
            os._exit(7)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "ignore signals":
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)
        case "checkpoint":
            checkpointer.checkpoint(batch.records[0])
            checkpointer.checkpoint(batch)
            write("stored")
        case "checkpoint nonsense":
            nonsense: Any = threading.Lock()
            checkpointer.checkpoint(nonsense)
        case "block":
            checkpointer.checkpoint(batch)
            threading.Event().wait()
        case _:
            pass


def outcome_of(batch: RecordBatch) -> Any:
    """Return what the records ask for."""
    said: dict[str, Any] = {
        "return a lock": threading.Lock,
        "return a mapping": lambda: {
            batch.records[0]: ValueError("not this one"),
            batch.records[1]: Retry(after_s=0.1, reason="later"),
            batch.records[2]: Reject("never"),
        },
    }
    make = said.get(batch.records[0].data.decode())
    return make and make()


def write(line: str) -> None:
    """Write it at once, with the number of this process."""
    with Path(os.environ["DIARY"]).open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {line}\n")


class Lanes(RecordProcessor):
    """Takes records one by one, as many as there are keys at a time."""

    def __init__(self) -> None:
        self.meeting = threading.Barrier(2)

    def process(self, record: Record) -> None:  # type: ignore[override]
        self.meeting.wait(10)  # both are in work at the same time, or this breaks
        write(record.data.decode())


class MuteError(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError("no text")


class Strange(RecordProcessor):
    """Does to its process what a record says, the first time that it comes."""

    def process(self, record: Record) -> str | None:  # type: ignore[override]
        write(record.data.decode())
        if record.redelivery is not None:
            return None
        match record.data:
            case b"fork and die":
                if os.fork() == 0:
                    os.kill(os.getpid(), signal.SIGSTOP)  # it holds all that is open, until the test ends it
                os.kill(os.getpid(), signal.SIGKILL)
            case b"close stdout":
                sys.stdout.close()
            case b"close all":
                os.closerange(3, 4096)
            case b"raise what is mute":
                raise MuteError
            case b"answer at length":
                return "x" * 10_000_000
            case _:
                pass
        return None


class Names(Middleware):
    """Writes which records it hears of, before and after."""

    def before_record(self, record: Record) -> None:
        write(f"before {record.data.decode()}")

    def after_record(self, record: Record, outcome: object, took_s: float) -> None:
        write(f"after {record.data.decode()}: {type(outcome).__name__}")


class Together(RecordProcessor):
    """Gives records to a batcher, two at a time, and has two batches in work at a time."""

    batchers: ClassVar = {"pairs": Batcher(max_records=2, concurrency=2)}
    middlewares: ClassVar = [Names]

    def __init__(self) -> None:
        self.meeting = threading.Barrier(2)

    def process(self, record: Record) -> ToBatch | Reject:  # type: ignore[override]
        if record.data == b"bad":
            return Reject("it is bad")
        return ToBatch("pairs", value=record.data.decode(), key=record.partition_key)

    def handle_batch(self, batch: Batched) -> None:  # type: ignore[override]
        self.meeting.wait(10)  # two are in work at the same time, or this breaks
        write(f"{batch.key}: {', '.join(value for _, value in batch)}")

    def handle_failed(self, failure: Failure) -> FailurePolicy:  # type: ignore[override]
        write(f"{failure.record.data.decode()}: {failure.reason}")
        return "skip"


class Careful(RecordProcessor):
    """Uses all that its checkpointer can do."""

    def process_records(self, batch: RecordBatch, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
        first, last = batch.records
        checkpointer.checkpoint()
        checkpointer.prepare(first)
        checkpointer.prepare(first, state=b"half").commit()
        assert checkpointer.once([Put("totals", {"id": "a", "n": Decimal(1)})], at=last)
        with pytest.raises(EffectsRefusedError) as refused:
            checkpointer.once([], at=last)
        assert refused.value.reasons == {0: "ConditionalCheckFailed"}


class Empties(RecordProcessor):
    """Takes the records out of its batch one by one, and checkpoints it then."""

    def process_records(self, batch: RecordBatch, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
        while batch.records:
            batch.records.pop()
        checkpointer.checkpoint(batch)
        checkpointer.prepare(batch)


class Hears(RecordProcessor):
    """Fails with what its checkpointer raises."""

    def process_records(self, batch: RecordBatch, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
        checkpointer.checkpoint(batch)
