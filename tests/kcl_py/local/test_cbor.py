"""CBOR: as its standard shows it, and as Java's SDK speaks it with Kinesis."""

import http.client
import math
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcl_py.local.cbor import Instant, decode, encode
from kcl_py.local.tongues import CBOR
from tests.kcl_py.local.world import World, serving

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64 - 1) | st.floats(allow_nan=False) | st.binary() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
SHOWN: list[tuple[str, Any]] = [
    *(("00", 0), ("17", 23), ("1818", 24), ("1903e8", 1000), ("1b000000e8d4a51000", 10**12)),
    *(("1bffffffffffffffff", 2**64 - 1), ("20", -1), ("3903e7", -1000), ("3bffffffffffffffff", -(2**64))),
    *(("f93c00", 1.0), ("f97bff", 65504.0), ("fa47c35000", 100000.0), ("fb3ff199999999999a", 1.1)),
    *(("f97c00", math.inf), ("f4", False), ("f5", True), ("f6", None), ("f7", None)),
    *(("c11a514b67b0", 1363896240), ("c1fb41d452d9ec200000", 1363896240.5)),
    *(("40", b""), ("4401020304", b"\x01\x02\x03\x04"), ("60", ""), ("62c3bc", "ü"), ("64f0908591", "\U00010151")),
    *(("80", []), ("8301820203820405", [1, [2, 3], [4, 5]]), ("a0", {}), ("a26161016162820203", {"a": 1, "b": [2, 3]})),
    *(("5f42010243030405ff", b"\x01\x02\x03\x04\x05"), ("7f657374726561646d696e67ff", "streaming")),
    *(("9fff", []), ("9f018202039f0405ffff", [1, [2, 3], [4, 5]]), ("bf61610161629f0203ffff", {"a": 1, "b": [2, 3]})),
]
"""From appendix A of RFC 8949."""
BROKEN = [
    *("", "18", "1b00", "44010203", "65616263", "82", "8201", "a161", "9f01", "bf6161", "5f01ff", "7f4101ff", "ff"),
    *(
        "1c",
        "fe",
        "f8",
        "a10101",
        "62c328",
        "9bffffffffffffffff",
        "5bffffffffffffffff",
        "0000",
        "1f",
        "81" * 200 + "00",
    ),
]


@pytest.mark.parametrize(("written", "value"), SHOWN)
def test_value_is_read_as_the_standard_shows_it(written: str, value: object) -> None:
    """Of every kind, with a length and without."""
    found = decode(bytes.fromhex(written))
    assert (found, type(found)) == (value, type(value))


@given(VALUES)
def test_value_that_is_written_is_read_again(value: object) -> None:
    """Whatever it is made of."""
    assert decode(encode(value)) == value


def test_instant_is_written_as_milliseconds_under_its_tag() -> None:
    """As Java's SDK sends it."""
    assert encode(Instant(1787036486712)).hex() == "c11b000001a013accc38"


@pytest.mark.parametrize("written", BROKEN)
def test_what_is_no_cbor_is_refused(written: str) -> None:
    """Too short, too long, of no kind, or nested too deep."""
    with pytest.raises(ValueError):  # noqa: PT011  # the sentences differ
        decode(bytes.fromhex(written))


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """Nothing else."""
    with suppress(ValueError):
        decode(data)


def ask(url: str, operation: str, body: bytes) -> tuple[int, str, Any]:
    """Return status, type and content of the answer to a request in CBOR."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        headers = {"X-Amz-Target": f"Kinesis_20131202.{operation}", "Content-Type": CBOR}
        connection.request("POST", "/", body, headers)
        reply = connection.getresponse()
        content = reply.read()
        return reply.status, str(reply.getheader("Content-Type")), decode(content) if content else None
    finally:
        connection.close()


def test_kinesis_takes_and_gives_byte_strings_and_milliseconds_in_cbor() -> None:
    """A record on its way, as a Java program would send and read it."""
    world = World()
    with serving(world) as url:

        def call(operation: str, **params: Any) -> Any:
            status, kind, answer = ask(url, operation, encode(params))
            assert (status, kind) == (200, CBOR), answer
            return answer

        world.put(b"before")
        world.clock.now_s += 10
        put = {"Data": b"\x00\xff", "PartitionKey": "k"}
        put_number = call("PutRecords", StreamName="s", Records=[put])["Records"][0]["SequenceNumber"]
        start = {"ShardId": "shardId-000000000000", "ShardIteratorType": "AT_TIMESTAMP"}
        since = Instant((world.clock.now_s - 5) * 1000)
        iterator = call("GetShardIterator", StreamName="s", **start, Timestamp=since)["ShardIterator"]
        [record] = call("GetRecords", ShardIterator=iterator)["Records"]
        summary = call("DescribeStreamSummary", StreamName="s")["StreamDescriptionSummary"]
        assert call("AddTagsToStream", StreamName="s", Tags={"Data": "text"}) is None
    assert (record["Data"], record["SequenceNumber"]) == (b"\x00\xff", put_number)
    assert record["ApproximateArrivalTimestamp"] == int(world.clock.now_s * 1000)
    assert summary["StreamCreationTimestamp"] == 1_700_000_000_000


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (encode({"StreamName": "none"}), "ResourceNotFoundException"),
        (encode({"StreamName": 5}), "SerializationException"),
        (encode([1]), "SerializationException"),
        (b"{}", "SerializationException"),
        (b"", "SerializationException"),
    ],
)
def test_refusal_of_a_request_in_cbor_is_in_cbor(body: bytes, code: str) -> None:
    """So that the SDK finds its code."""
    with serving(World()) as url:
        status, kind, answer = ask(url, "ListShards", body)
    assert (status, kind, answer["__type"]) == (400, CBOR, code)
