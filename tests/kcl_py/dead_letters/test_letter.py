"""The form of a letter: what users read, and give to ``parse``."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcl_py.dead_letters import DeadLetter, parse
from kcl_py.dead_letters.letter import REASON_CHARS
from kcl_py.processor import Failure
from kcl_py.records import Record, Redelivery
from tests.kcl_py.dead_letters.places import NUMBER, a_letter

TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
RECORDS = st.builds(
    Record,
    sequence_number=st.integers(0, 10**56).map(str),
    data=st.binary(max_size=200),
    partition_key=TEXTS,
    arrived_s=st.integers(0, 4_000_000_000_000).map(lambda at_ms: at_ms / 1000),
    encryption_type=st.sampled_from([None, "KMS"]),
    sub_sequence_number=st.integers(0, 5),
)


def test_form_of_a_letter_is_the_published_one() -> None:
    """Keys, their order and how values are written: programs of others read it."""
    assert a_letter(b"\xff", encryption_type="KMS").encoded().decode() == json.dumps(
        {
            "stream": "orders",
            "shard_id": "shardId-000000000003",
            "sequence_number": NUMBER,
            "sub_sequence_number": 0,
            "partition_key": "key",
            "arrived_at": "2023-11-14T22:13:20.123000Z",
            "attempts": 4,
            "error": "ValueError: no such user",
            "first_failed_at": "2023-11-14T22:13:21.500000Z",
            "failed_at": "2023-11-14T22:13:29.250000Z",
            "app": "shop",
            "worker": "host-1",
            "encryption_type": "KMS",
            "data": "/w==",
        }
    )
    assert "encryption_type" not in json.loads(a_letter().encoded())


@given(RECORDS, TEXTS)
def test_letter_is_read_as_it_was_written(record: Record, reason: str) -> None:
    """To the millisecond of Kinesis; on one line of ASCII."""
    letter = replace(a_letter(), record=record, reason=reason)
    text = letter.encoded()
    assert parse(text) == parse(text.decode()) == letter
    assert text.isascii()
    assert b"\n" not in text


def test_letter_of_a_failure_is_about_the_record_as_it_was_read() -> None:
    """Without its history, which the letter tells itself, and with a reason of bounded length."""
    record = Record("1", b"x", "key", redelivery=Redelivery(4, "ValueError"))
    failure = Failure(record, "é" * 100_000, attempts=4, first_failed_s=1.5)
    letter = DeadLetter.of(failure, stream="orders", shard_id="s", failed_s=2.5, app="shop", worker="host-1")
    assert letter.record == Record("1", b"x", "key")
    assert (letter.attempts, letter.first_failed_s, letter.failed_s) == (4, 1.5, 2.5)
    assert letter.reason == "é" * REASON_CHARS
    assert parse(letter.encoded()) == letter


def test_what_is_added_to_the_form_later_is_passed_over() -> None:
    """A program with an older kcl_py reads letters of a newer one."""
    later = json.loads(a_letter().encoded()) | {"headers": {}}
    assert parse(json.dumps(later)) == a_letter()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        a_letter().encoded()[:200],
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        a_letter().encoded().replace(b'"attempts": 4', b'"attempts": "four"'),
        a_letter(b"x").encoded().replace(b"eA==", b"e"),
    ],
    ids=["nothing", "half", "list", "empty", "no text", "deep", "type", "base64"],
)
def test_what_is_no_letter_is_one_clear_error(text: bytes) -> None:
    """Half a line of a file among them, so that whoever replays can pass over it."""
    with pytest.raises(
        ValueError, match=r"^cannot read a dead letter: expected the JSON object that was stored, found "
    ):
        parse(text)
