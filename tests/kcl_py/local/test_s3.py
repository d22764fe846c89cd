"""S3 of the local AWS, as boto3 sees it: moto's, through our server."""

import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.request import urlopen

import pytest
from botocore.exceptions import ClientError

from kcl_py.local.s3 import MotoS3
from tests.kcl_py.local.world import World, boto, serving

KEY = "a b/ü%2F+c.txt"


@pytest.fixture
def s3() -> Iterator[tuple[Any, str]]:
    """boto3's client of an S3 with a bucket, and the address."""
    with closing(MotoS3()) as moto, serving(World(), s3=moto) as url, boto("s3", url) as client:
        client.create_bucket(Bucket="bucket")
        yield client, url


def test_an_object_is_stored_and_found_as_it_was_sent(s3: tuple[Any, str]) -> None:
    """Bytes, key, encoding and metadata; what is said to be compressed is not touched."""
    client, _ = s3
    client.put_object(Bucket="bucket", Key=KEY, Body=b"\x1f\x8bhello", ContentEncoding="gzip", Metadata={"x-y": "1"})
    got = client.get_object(Bucket="bucket", Key=KEY)
    assert (got["Body"].read(), got["ContentEncoding"], got["Metadata"]) == (b"\x1f\x8bhello", "gzip", {"x-y": "1"})
    assert [one["Key"] for one in client.list_objects_v2(Bucket="bucket", Prefix="a b/")["Contents"]] == [KEY]
    part = client.get_object(Bucket="bucket", Key=KEY, Range="bytes=2-3")
    assert part["Body"].read() == b"he"


def test_head_tells_the_size_of_what_it_does_not_send(s3: tuple[Any, str]) -> None:
    """And that there is nothing, without a body to say so."""
    client, _ = s3
    client.put_object(Bucket="bucket", Key=KEY, Body=b"hello")
    head = client.head_object(Bucket="bucket", Key=KEY)
    assert (head["ContentLength"], head["ContentType"]) == (5, "binary/octet-stream")
    with pytest.raises(ClientError, match="404"):
        client.head_object(Bucket="bucket", Key="other")


def test_of_two_writers_who_want_to_be_first_one_is(s3: tuple[Any, str]) -> None:
    """IfNoneMatch is a condition, as on S3."""
    client, _ = s3
    client.put_object(Bucket="bucket", Key=KEY, Body=b"first", IfNoneMatch="*")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        client.put_object(Bucket="bucket", Key=KEY, Body=b"second", IfNoneMatch="*")
    assert client.get_object(Bucket="bucket", Key=KEY)["Body"].read() == b"first"


def test_an_object_larger_than_a_request_of_kinesis_is_taken(s3: tuple[Any, str]) -> None:
    """40 MiB at once."""
    client, _ = s3
    client.put_object(Bucket="bucket", Key=KEY, Body=bytes(40 << 20))
    assert client.head_object(Bucket="bucket", Key=KEY)["ContentLength"] == 40 << 20


def test_a_presigned_address_is_recognised(s3: tuple[Any, str]) -> None:
    """By the scope in its query; and an unsigned one by its path."""
    client, url = s3
    client.put_object(Bucket="bucket", Key="k", Body=b"hello", ACL="public-read")
    signed = client.generate_presigned_url("get_object", Params={"Bucket": "bucket", "Key": "k"})
    for address in (signed, f"{url}/bucket/k"):
        with urlopen(address) as reply:
            assert reply.read() == b"hello"


def test_replies_are_dated_by_the_servers_clock(s3: tuple[Any, str]) -> None:
    """As those of the other services are."""
    client, _ = s3
    assert client.list_buckets()["ResponseMetadata"]["HTTPHeaders"]["date"] == "Tue, 14 Nov 2023 22:13:20 GMT"


def test_one_address_is_all_three_services(s3: tuple[Any, str]) -> None:
    """S3 beside Kinesis and DynamoDB, by the same settings."""
    _, url = s3
    with boto("kinesis", url) as kinesis, boto("dynamodb", url) as dynamodb:
        assert kinesis.list_streams()["StreamNames"] == ["s"]
        assert dynamodb.list_tables()["TableNames"] == []


def test_without_moto_s3_says_so_and_the_others_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """One clear error, with the way out."""
    for name in [name for name in sys.modules if name == "moto" or name.startswith("moto.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "moto", None)
    with closing(MotoS3()) as moto, serving(World(), s3=moto) as url:
        with boto("s3", url) as client, pytest.raises(ClientError) as caught:
            client.list_buckets()
        assert str(caught.value).startswith("An error occurred (NotImplemented)")
        assert str(caught.value).endswith("install the extra 'local' of kcl-py")
        with boto("kinesis", url) as kinesis:
            assert kinesis.list_streams()["StreamNames"] == ["s"]
