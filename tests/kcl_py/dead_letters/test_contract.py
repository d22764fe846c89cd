"""What every destination does: the letter is there when ``store`` returns, and else there is one clear error."""

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from actors.clock import SystemClock
from kcl_py.dead_letters.opening import opened
from kcl_py.errors import AwsSetupError, ConfigError, CredentialsError, DeadLetterError, EndpointError
from kcl_py.local.faults.fault import Fault, Kind
from tests.clocks import PromptClock
from tests.kcl_py.dead_letters.places import NUMBER, Place, a_letter, a_place, add_fault

pytestmark = pytest.mark.asyncio

MIB = 1024 * 1024
EVERY_BYTE = bytes(range(256))


STRANGE = (
    a_letter(b"", sequence_number="1"),
    a_letter(b"\x00", sequence_number="2"),
    a_letter(b"\n", sequence_number="3", encryption_type="KMS"),
    a_letter(b"\xff\xfe\xfd", sequence_number="4", partition_key="a key"),
    a_letter(EVERY_BYTE * 1024, sequence_number="5", partition_key="ü\u2028\ufffe\U0001f4a5"),
    a_letter(b"x", sequence_number="6", partition_key="x" * 256),
    replace(a_letter(b"x", sequence_number="7"), reason='line\nbreak, "quote", \udcff'),
)
"""Payloads, keys and reasons such as a queue takes neither in a message nor as a group."""


async def test_letter_is_found_as_it_was_stored(place: Place) -> None:
    """Byte by byte, with all that is told of it, and as soon as ``store`` has returned."""
    async with place.letters() as letters:
        for number, letter in enumerate(STRANGE, 1):
            await letters.store(letter)
            if place.store_operation != "SendMessage":  # what is read of a queue is gone
                assert len(await place.found()) == number
    assert sorted(await place.found(), key=lambda letter: letter.record.position) == list(STRANGE)


@pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")  # aiohttp's, hidden by default
@pytest.mark.parametrize("kind", ["kinesis", "s3", "file"])
async def test_letter_of_a_mebibyte_is_kept(kind: str, tmp_path: Path) -> None:
    """Its form is a third larger: a stream must be told to take that, and no queue does."""
    letter = a_letter(EVERY_BYTE * 4096)
    async with a_place(kind, tmp_path) as place, place.letters() as letters:
        await letters.store(letter)
        assert await place.found() == [letter]


async def test_letters_of_many_records_are_all_there(place: Place) -> None:
    """At once, also those of one aggregated record."""
    stored = [a_letter(b"%d" % number, sub_sequence_number=number) for number in range(12)]
    async with place.letters() as letters, anyio.create_task_group() as tasks:
        for letter in stored:
            tasks.start_soon(letters.store, letter)
    found = sorted(await place.found(), key=lambda letter: letter.record.position)
    assert found == stored


async def test_one_record_of_two_apps_makes_two_letters(place: Place) -> None:
    """Who shares a destination loses nothing by it."""
    both = [a_letter(), replace(a_letter(), app="audit")]
    async with place.letters() as letters:
        for letter in both:
            await letters.store(letter)
    assert sorted(await place.found(), key=lambda letter: letter.app, reverse=True) == both


@pytest.mark.parametrize("kind", [Kind.THROTTLE, Kind.ERROR, Kind.RESET])
async def test_refused_letter_is_an_error_that_says_what_and_where(aws: Place, kind: Kind) -> None:
    """Nothing is stored and nothing repeated; another try by the caller succeeds."""
    async with aws.letters() as letters:
        add_fault(aws, kind=kind)
        with pytest.raises(DeadLetterError) as caught:
            await letters.store(a_letter())
        assert caught.value.retryable
        assert str(caught.value).startswith(
            f"cannot store the dead letter of record {NUMBER} of shardId-000000000003 in {aws.text}: found "
        )
        aws.faults.clear()
        assert await aws.found() == []
        await letters.store(a_letter())
        assert await aws.found() == [a_letter()]


async def test_letter_that_may_not_be_stored_is_not_tried_again(aws: Place) -> None:
    """A missing permission stays missing; the error says what to do."""
    async with aws.letters() as letters:
        add_fault(aws, kind=Kind.ERROR, code="AccessDenied")
        with pytest.raises(DeadLetterError, match=r"found AccessDenied: .*; allow it, or correct delivery") as caught:
            await letters.store(a_letter())
    assert not caught.value.retryable


async def test_letter_whose_reply_is_lost_is_there_when_it_comes_again(aws: Place) -> None:
    """Once where the destination knows it by its name; else twice, and the same both times."""
    async with aws.letters() as letters:
        add_fault(aws, kind=Kind.LOST_REPLY, code="ServiceUnavailable", times=1)
        with pytest.raises(DeadLetterError, match="found ServiceUnavailable") as caught:
            await letters.store(a_letter())
        assert caught.value.retryable
        await letters.store(a_letter())
    is_once = aws.text.startswith("s3:") or aws.text.endswith(".fifo")
    assert await aws.found() == [a_letter()] * (1 if is_once else 2)


async def test_destination_that_does_not_answer_is_given_up(aws: Place) -> None:
    """``store`` takes a bounded time, whatever happens."""

    class Soon(SystemClock):
        """By which deadlines are over in a moment."""

        def move_on_after(self, delay_s: float) -> Any:
            return anyio.move_on_after(delay_s / 100)

    async with AsyncExitStack() as stack:
        letters = await stack.enter_async_context(aws.letters())
        letters._clock = Soon()  # type: ignore[attr-defined]  # of all four
        add_fault(aws, kind=Kind.HANG)
        with pytest.raises(DeadLetterError, match="TimeoutError: no reply") as caught:
            await letters.store(a_letter())
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("kind", "other", "noun"),
    [
        ("kinesis", "kinesis:nowhere", "stream"),
        ("kinesis", "kinesis:arn:aws:kinesis:us-east-1:000000000000:stream/nowhere", "stream"),
        ("sqs", "sqs:{url}/000000000000/nowhere", "queue"),
        ("s3", "s3://nowhere/letters", "bucket"),
    ],
)
async def test_missing_destination_is_found_at_the_start(kind: str, other: str, noun: str, tmp_path: Path) -> None:
    """One sentence: what is configured, where it was looked for, and what to do."""
    async with a_place(kind, tmp_path) as place:
        text = other.format(url=place.url)
        with pytest.raises(AwsSetupError) as caught:
            async with opened(place.config(dead_letter=text), clock=SystemClock()):
                pass
    assert str(caught.value) == (
        f"cannot keep dead letters in {text}, in us-east-1 at {place.url}: there is no such {noun}; "
        f"correct delivery.dead_letter or create the {noun}"
    )


async def test_destination_that_may_not_be_looked_at_is_found_at_the_start(aws: Place) -> None:
    """And so are credentials that are refused."""
    for code, expected in (("AccessDenied", AwsSetupError), ("InvalidClientTokenId", CredentialsError)):
        aws.faults.clear()
        aws.faults.add(Fault(kind=Kind.ERROR, code=code, times=1))
        if aws.text.startswith("s3:"):
            expected = AwsSetupError  # a refusal of HeadBucket has no words
        with pytest.raises(expected, match="cannot keep dead letters in "):
            async with aws.letters():
                pass


async def test_destination_that_does_not_answer_yet_is_waited_for(aws: Place) -> None:
    """As all of AWS is while a worker starts."""
    clock = PromptClock()
    aws.faults.add(Fault(kind=Kind.THROTTLE, times=1))
    async with aws.letters(clock) as letters:
        await letters.store(a_letter())
    assert clock.slept_s == [0.25]
    aws.faults.add(Fault(kind=Kind.RESET))
    with pytest.raises(EndpointError, match="expected an answer within 5 s"):
        async with aws.letters(clock):
            pass


async def test_file_that_cannot_be_written_is_found_at_the_start(tmp_path: Path) -> None:
    """Its folder is missing, or it is none."""
    async with a_place("file", tmp_path) as place:
        (tmp_path / "folder").mkdir()
        for path, found in (("missing/letters", "no such file or directory"), ("folder", "is a directory")):
            with pytest.raises(ConfigError, match=f"cannot keep dead letters in file:.*{path}.*found {found}; "):
                async with opened(place.config(dead_letter=f"file:{tmp_path / path}"), clock=SystemClock()):
                    pass
        with pytest.raises(ConfigError, match="found no regular file"):
            async with opened(place.config(dead_letter="file:/dev/null"), clock=SystemClock()):
                pass


async def test_nothing_is_opened_where_nothing_is_configured(place: Place) -> None:
    """``worker.dead_letters`` is None then."""
    config = place.config(on_failure="halt", dead_letter=None)
    async with opened(config, clock=SystemClock()) as letters:
        assert letters is None
