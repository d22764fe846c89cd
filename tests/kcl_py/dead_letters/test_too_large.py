"""Letters that a destination would never take: nothing is sent, and the error says how large they are."""

import re
from pathlib import Path
from typing import Any

import pytest

from kcl_py.errors import DeadLetterError
from tests.kcl_py.dead_letters.places import Place, a_letter, a_place

pytestmark = pytest.mark.asyncio

LARGE = a_letter(bytes(1024 * 1024))
SIZE = len(LARGE.encoded())


async def limit(place: Place, size_bytes: int) -> None:
    """Let the destination take as much and no more."""
    client: Any = place.client
    if place.text.startswith("sqs:"):
        url = place.text.removeprefix("sqs:")
        await client.set_queue_attributes(QueueUrl=url, Attributes={"MaximumMessageSize": str(size_bytes)})
        return
    summary = (await client.describe_stream_summary(StreamName="failures"))["StreamDescriptionSummary"]
    await client.update_max_record_size(StreamARN=summary["StreamARN"], MaxRecordSizeInKiB=size_bytes // 1024)


@pytest.mark.parametrize(("kind", "advice"), [("kinesis", "UpdateMaxRecordSize"), ("sqs", "MaximumMessageSize")])
async def test_letter_above_the_limit_is_not_tried_again(kind: str, advice: str, tmp_path: Path) -> None:
    """Its shard halts, then, and nothing is lost; S3 would take it."""
    async with a_place(kind, tmp_path) as place:
        await limit(place, 1_048_576)
        async with place.letters() as letters:
            with pytest.raises(DeadLetterError) as caught:
                await letters.store(LARGE)
            assert not caught.value.retryable
            found = re.search(r"at most (\d+) bytes, found (\d+), for a payload of (\d+); (.*)$", str(caught.value))
            assert found is not None
            assert found.groups()[:3] == ("1048576", str(SIZE + 3 if kind == "kinesis" else SIZE), "1048576")
            assert advice in found[4]
            assert found[4].endswith("or send dead letters to s3://BUCKET/PREFIX")
            assert await place.found() == []


@pytest.mark.parametrize(("kind", "low", "high"), [("kinesis", 1_048_576, 2_097_152), ("sqs", 1024, 1_048_576)])
@pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")  # aiohttp's, hidden by default
async def test_limit_that_is_raised_meanwhile_is_seen(kind: str, low: int, high: int, tmp_path: Path) -> None:
    """Without a restart of the worker: a shard that has halted for it goes on."""
    letter = LARGE if kind == "kinesis" else a_letter(bytes(10_000))
    async with a_place(kind, tmp_path) as place:
        await limit(place, low)
        async with place.letters() as letters:
            with pytest.raises(DeadLetterError, match=f"at most {low} bytes"):
                await letters.store(letter)
            await limit(place, high)
            await letters.store(letter)
            assert await place.found() == [letter]
