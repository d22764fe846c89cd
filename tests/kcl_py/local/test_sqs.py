"""SQS of the local AWS, as boto3 sees it: moto's, through our server."""

import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import boto3  # type: ignore[import-untyped]
import pytest
from botocore.exceptions import ClientError

from kcl_py.local.s3 import MotoS3
from kcl_py.local.sqs import MotoSqs
from tests.kcl_py.local.world import World, boto, serving


@pytest.fixture
def sqs() -> Iterator[tuple[Any, str]]:
    """boto3's client of an SQS, and the address."""
    with closing(MotoSqs()) as moto, serving(World(), sqs=moto) as url, boto("sqs", url) as client:
        yield client, url


def test_message_is_found_as_it_was_sent(sqs: tuple[Any, str]) -> None:
    """In a queue of the one account, under the address that clients know."""
    client, url = sqs
    queue = client.create_queue(QueueName="q")["QueueUrl"]
    assert queue == f"{url}/000000000000/q"
    client.send_message(QueueUrl=queue, MessageBody="hello ü")
    assert [one["Body"] for one in client.receive_message(QueueUrl=queue)["Messages"]] == ["hello ü"]


def test_fifo_queue_takes_a_message_once(sqs: tuple[Any, str]) -> None:
    """By its deduplication id."""
    client, _ = sqs
    queue = client.create_queue(QueueName="q.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    for _ in range(2):
        client.send_message(QueueUrl=queue, MessageBody="x", MessageGroupId="g", MessageDeduplicationId="d")
    assert len(client.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]) == 1


def test_missing_queue_is_refused_as_aws_does(sqs: tuple[Any, str]) -> None:
    """With the code that botocore makes an exception of its own of."""
    client, url = sqs
    with pytest.raises(client.exceptions.QueueDoesNotExist):
        client.send_message(QueueUrl=f"{url}/000000000000/nowhere", MessageBody="x")


def test_queues_are_the_same_in_every_region(sqs: tuple[Any, str]) -> None:
    """As streams and tables are: the local AWS has one."""
    client, url = sqs
    queue = client.create_queue(QueueName="q")["QueueUrl"]
    other = boto3.client(
        "sqs", endpoint_url=url, region_name="eu-west-1", aws_access_key_id="any", aws_secret_access_key="any"
    )
    assert other.list_queues()["QueueUrls"] == [queue]
    other.close()


def test_sdk_that_speaks_no_json_is_answered(sqs: tuple[Any, str]) -> None:
    """SDKs older than 2023 send forms; they are known by whom they sign for."""
    client, url = sqs
    client.create_queue(QueueName="q")
    form = urlencode({"Action": "ListQueues", "Version": "2012-11-05"}).encode()
    signed = {"Authorization": "AWS4-HMAC-SHA256 Credential=any/20231114/us-east-1/sqs/aws4_request"}
    with urlopen(Request(url, form, signed)) as reply:
        assert f"<QueueUrl>{url}/000000000000/q</QueueUrl>".encode() in reply.read()


def test_without_moto_sqs_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """One clear error, with the way out."""
    monkeypatch.setitem(sys.modules, "moto.backends", None)
    with (
        closing(MotoSqs()) as moto,
        serving(World(), sqs=moto) as url,
        boto("sqs", url) as client,
        pytest.raises(ClientError, match=r"cannot serve SQS: .*; install the extra 'local' of kcl-py$"),
    ):
        client.list_queues()


@pytest.mark.parametrize("order", [("s3", "sqs"), ("sqs", "s3")])
def test_first_request_for_one_service_leaves_the_other_as_it_is(order: tuple[str, str]) -> None:
    """A bucket and a queue for dead letters, made one after the other, are there; a new server begins with none."""
    for _ in range(2):
        with (
            closing(MotoSqs()) as sqs,
            closing(MotoS3()) as s3,
            serving(World(), sqs=sqs, s3=s3) as url,
            boto("s3", url) as objects,
            boto("sqs", url) as messages,
        ):
            for service in order:
                if service == "s3":
                    assert objects.list_buckets()["Buckets"] == []
                    objects.create_bucket(Bucket="letters")
                else:
                    assert "QueueUrls" not in messages.list_queues()
                    messages.create_queue(QueueName="letters")
            assert [bucket["Name"] for bucket in objects.list_buckets()["Buckets"]] == ["letters"]
            assert len(messages.list_queues()["QueueUrls"]) == 1
