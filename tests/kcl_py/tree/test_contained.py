"""Whatever the user's code ends with, it ends no more than that: not the worker, not the shard, and it turns nowhere.

A record whose processing ends the worker would end the next one, too, and so the fleet.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import LogCapture

from kcl_py import Failure, OwnedShard, Record, RecordProcessor, Reject, Retry
from kcl_py.dead_letters import DeadLetter
from kcl_py.outcomes import RecordOutcome
from kcl_py.testing import run_processor
from kcl_py.tree.messages import Halted
from tests.kcl_py.tree.lanes import Desk, keyed
from tests.kcl_py.tree.pipelines import a_pipeline
from tests.kcl_py.tree.stage import some_records, until
from tests.simloop import simulated

RETRIES = 2


class PanicError(BaseException):
    """As extensions in Rust raise it: of no Exception."""


class MuteError(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError("no text")


ERRORS = [PanicError("poisoned"), asyncio.CancelledError(), MuteError(), ValueError("half \udcff a pair")]


class Unclear:
    """Neither equal to anything nor different from it."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = None  # type: ignore[assignment]


def failing(hook: str, error: BaseException) -> tuple[type[RecordProcessor], list[str]]:
    """Make a processor one of whose hooks raises; it is none of the last ones."""
    calls: list[str] = []

    def call(name: str) -> None:
        if name == hook:
            calls.append(name)
            raise error

    class Fails(RecordProcessor):
        async def initialize(self, shard: OwnedShard) -> None:
            call("initialize")

        async def process(self, record: Record) -> None:
            call("process")
            if hook == "handle_failed":
                raise ValueError("no such user")

        async def handle_failed(self, failure: Failure) -> None:
            call("handle_failed")

    return Fails, calls


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    ("hook", "times"), [("initialize", RETRIES + 1), ("process", RETRIES + 1), ("handle_failed", 1)]
)
@simulated
async def test_hook_may_raise_whatever_it_will(hook: str, times: int, error: BaseException) -> None:
    """It is tried again as after every error, then its shard halts; ``handle_failed`` is asked once."""
    processor, calls = failing(hook, error)
    async with a_pipeline(some_records(1), processor=processor, delivery={"retries": RETRIES}) as played:
        played.begin()
        halted = await played.lease.hears(Halted)
        await asyncio.sleep(60)
        assert len(calls) == times
        wanted = "no such user" if hook == "handle_failed" else type(error).__name__
        assert wanted in halted.halt.error
        assert halted.halt.error.isprintable()


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@simulated
async def test_place_for_dead_letters_may_raise_whatever_it_will(error: BaseException, log: LogCapture) -> None:
    """One of the user's own: the letter is tried again after a pause."""
    tries: list[DeadLetter] = []

    class Place:
        async def store(self, letter: DeadLetter) -> None:
            tries.append(letter)
            if len(tries) == 1:
                raise error

    desk = Desk(answers={"1": [Reject("no")]})
    options: dict[str, Any] = {"on_failure": "dead_letter", "dead_letter": "file:letters"}
    async with a_pipeline(
        keyed("a"), processor=desk.processor(), dead_letters=Place(), delivery=options | {"backoff_s": 1.0}
    ) as played:
        played.begin()
        await until(lambda: len(tries) == 2)
        assert desk.numbers() == [1]
        [failed] = [entry for entry in log.entries if entry["event"] == "kcl_py.record.dead_letter_failed"]
        assert failed["retry_in_s"] > 0


@simulated
async def test_answer_of_handle_failed_that_nobody_can_compare_is_none_of_the_policies() -> None:
    """An array of numpy, say: it is asked once, and the option holds."""
    asked: list[Failure] = []

    class Vague(RecordProcessor):
        async def process(self, record: Record) -> RecordOutcome:
            return Reject("no")

        async def handle_failed(self, failure: Failure) -> Any:
            asked.append(failure)
            return Unclear()

    async with a_pipeline(some_records(1), processor=Vague) as played:
        played.begin()
        await played.lease.hears(Halted)
        assert len(asked) == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda error: Reject(error), "ValueError: no such user"),
        (lambda error: Retry(reason=error), "ValueError: no such user"),
        (lambda error: Reject(404), "404"),  # type: ignore[arg-type]
        (lambda error: Reject(MuteError()), "MuteError"),  # type: ignore[arg-type]
    ],
)
@simulated
async def test_reason_that_is_no_text_means_what_it_says(answer: Callable[[Any], RecordOutcome], reason: str) -> None:
    """``Reject(error)`` is no failure of its own: the record is rejected, for that reason."""

    class Rejects(RecordProcessor):
        async def process(self, record: Record) -> RecordOutcome:
            return answer(ValueError("no such user"))

    async with a_pipeline(some_records(1), processor=Rejects, delivery={"retries": 0}) as played:
        played.begin()
        assert (await played.lease.hears(Halted)).halt.error == reason


@pytest.mark.asyncio
async def test_error_with_half_a_surrogate_pair_leaves_the_lease_where_it_is() -> None:
    """As names of files have them: its text can be stored and logged."""

    class Fails(RecordProcessor):
        async def process(self, record: Record) -> None:
            raise ValueError("no file \udcff")

    run = await run_processor(Fails, ["a"], retries=0)
    assert list(run.halted) == ["shardId-000000000000"]
    assert run.outcome is not None
    assert run.outcome.is_clean
