"""The local AWS over HTTP, seen by boto3 and by a bare socket."""

import http.client
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier, Event
from typing import Any
from urllib.parse import urlsplit

import anyio.to_thread
import pytest
from botocore.exceptions import ClientError

from kcl_py.local.http import HttpReply, HttpRequest
from kcl_py.local.model import EndShape
from tests.kcl_py.local.world import World, boto, serving

ROOT = "shardId-000000000000"
JSON = "application/x-amz-json-1.1"


def send(url: str, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, dict[str, str], Any]:
    """Send a request without an SDK; an underscore in a header's name stands for a hyphen."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        reply = connection.getresponse()
        return (
            reply.status,
            {name.lower(): value for name, value in reply.getheaders()},
            json.loads(reply.read() or b"{}"),
        )
    finally:
        connection.close()


@contextmanager
def switching_often() -> Iterator[None]:
    """Let threads interleave at nearly every step, so that what can race does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def test_a_stream_lives_its_life_over_http() -> None:
    """Created, written, split, read to the end, merged, deleted: all by boto3."""
    world = World()
    with serving(world) as url, boto("kinesis", url) as client:
        client.create_stream(StreamName="t", ShardCount=1)
        world.settle()
        put = client.put_records(StreamName="t", Records=[{"Data": b"\x00\xff", "PartitionKey": "é"}] * 3)
        client.split_shard(StreamName="t", ShardToSplit=ROOT, NewStartingHashKey="1000")
        world.settle()
        start = client.get_shard_iterator(StreamName="t", ShardId=ROOT, ShardIteratorType="TRIM_HORIZON")
        page = client.get_records(ShardIterator=start["ShardIterator"])
        client.merge_shards(
            StreamName="t", ShardToMerge="shardId-000000000001", AdjacentShardToMerge="shardId-000000000002"
        )
        world.settle()
        summary = client.describe_stream_summary(StreamName="t")["StreamDescriptionSummary"]
        client.delete_stream(StreamName="t")
        world.settle()
        assert client.list_streams()["StreamNames"] == ["s"]
    assert (put["FailedRecordCount"], summary["OpenShardCount"], summary["StreamStatus"]) == (0, 1, "ACTIVE")
    record = page["Records"][0]
    assert (record["Data"], record["PartitionKey"]) == (b"\x00\xff", "é")
    assert record["ApproximateArrivalTimestamp"].timestamp() == pytest.approx(1_700_000_000.3)
    assert [record["SequenceNumber"] for record in page["Records"]] == [r["SequenceNumber"] for r in put["Records"]]


@pytest.mark.parametrize(("end_shape", "pages"), [(EndShape.WITH_LAST, [2, 1]), (EndShape.AFTER_LAST, [2, 1, 0])])
def test_boto3_reads_a_split_shard_to_its_end_in_either_shape(end_shape: EndShape, pages: list[int]) -> None:
    """The next iterator is absent at the end, and only there the children are listed."""
    world = World(end_shape=end_shape)
    world.put_many(3)
    world.split(ROOT)
    sizes, page = [], {"NextShardIterator": world.iterator()}
    with serving(world) as url, boto("kinesis", url) as client:
        while "NextShardIterator" in page:
            assert "ChildShards" not in page
            page = client.get_records(ShardIterator=page["NextShardIterator"], Limit=2)
            sizes.append(len(page["Records"]))
    assert (sizes, len(page["ChildShards"])) == (pages, 2)


def test_boto3_lists_every_shard_once_by_tokens_alone() -> None:
    """A token beside the stream's name is refused, as on AWS."""
    world, listed = World(5), []
    with serving(world) as url, boto("kinesis", url) as client:
        page = client.list_shards(StreamName="s", MaxResults=2)
        listed += page["Shards"]
        while "NextToken" in page:
            with pytest.raises(ClientError, match="InvalidArgumentException"):
                client.list_shards(StreamName="s", NextToken=page["NextToken"])
            page = client.list_shards(NextToken=page["NextToken"], MaxResults=2)
            listed += page["Shards"]
    assert [shard["ShardId"] for shard in listed] == [f"shardId-{number:012d}" for number in range(5)]


def test_an_expired_iterator_is_botos_own_exception() -> None:
    """Callers catch it by its class."""
    world = World()
    iterator = world.iterator()
    world.clock.now_s += 301
    with (
        serving(world) as url,
        boto("kinesis", url) as client,
        pytest.raises(client.exceptions.ExpiredIteratorException),
    ):
        client.get_records(ShardIterator=iterator)


def test_health_and_refusals_say_what_is_served() -> None:
    """Anything that is neither Kinesis nor DynamoDB gets a clear answer, never a page of HTML."""
    with serving(World()) as url:
        assert send(url, "GET", "/health")[::2] == (200, {"status": "ok"})
        status, _, body = send(url, "GET", "/other")
        assert (status, "expected POST / or GET /health" in body["message"]) == (404, True)
        status, _, body = send(url, "POST", "/", X_Amz_Target="SNS.Publish")
        assert (status, body["__type"]) == (400, "UnknownOperationException")
        status, _, body = send(url, "POST", "/", X_Amz_Target="Kinesis_20131202.Dance", Content_Type=JSON)
        assert (status, body["__type"]) == (400, "UnknownOperationException")
        status, _, body = send(url, "POST", "/", b"{", X_Amz_Target="Kinesis_20131202.ListShards", Content_Type=JSON)
        assert (status, body["__type"]) == (400, "SerializationException")


def test_body_of_another_type_is_refused_with_those_that_are_read() -> None:
    """JSON 1.1, and CBOR."""
    with serving(World()) as url:
        status, _, body = send(
            url, "POST", "/", b"{}", X_Amz_Target="Kinesis_20131202.ListShards", Content_Type="application/json"
        )
    assert (status, "x-amz-json-1.1 or application/x-amz-cbor-1.1" in body["message"]) == (400, True)


def test_every_answer_is_dated_by_the_injected_clock_and_has_a_request_id_of_its_own() -> None:
    """Workers learn the service's time from the Date header."""
    world = World()
    world.clock.now_s = 0.0
    with serving(world) as url:
        first, second = (send(url, "GET", path)[1] for path in ("/health", "/other"))
        tables = send(url, "POST", "/", b"{}", X_Amz_Target="DynamoDB_20120810.ListTables", Content_Type=JSON)[1]
    assert {headers["date"] for headers in (first, second, tables)} == {"Thu, 01 Jan 1970 00:00:00 GMT"}
    assert first["x-amzn-requestid"] != second["x-amzn-requestid"]


def test_kinesis_answers_while_dynamodb_does_not() -> None:
    """A slow DynamoDB holds up nobody but its own callers."""
    asked, release = Event(), Event()

    async def hanging(request: HttpRequest) -> HttpReply:
        asked.set()
        await anyio.to_thread.run_sync(release.wait)
        return 200, {}, b"{}"

    with serving(World(), hanging) as url, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(send, url, "POST", "/", b"{}", X_Amz_Target="DynamoDB_20120810.ListTables")
        assert asked.wait(10)
        assert send(url, "GET", "/health")[0] == 200
        assert not waiting.done()
        release.set()
        assert waiting.result(10)[0] == 200


def test_of_eight_threads_racing_on_one_row_exactly_one_wins_each_round() -> None:
    """Conditional writes are atomic."""
    threads, rounds = 8, 40
    with serving(World()) as url, boto("dynamodb", url) as table:
        table.create_table(
            TableName="table",
            KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        table.put_item(TableName="table", Item={"k": {"S": "row"}, "n": {"N": "0"}})
        start = Barrier(threads, timeout=30)

        def race(_: int) -> list[bool]:
            with boto("dynamodb", url) as client:
                return [step(client, number) for number in range(rounds)]

        def step(client: Any, number: int) -> bool:
            start.wait()
            try:
                client.update_item(
                    TableName="table",
                    Key={"k": {"S": "row"}},
                    UpdateExpression="SET n = :next",
                    ConditionExpression="n = :now",
                    ExpressionAttributeValues={":now": {"N": str(number)}, ":next": {"N": str(number + 1)}},
                )
            except client.exceptions.ConditionalCheckFailedException:
                return False
            return True

        with ThreadPoolExecutor(threads) as pool, switching_often():
            won = list(pool.map(race, range(threads)))
    assert [sum(by_thread) for by_thread in zip(*won, strict=True)] == [1] * rounds


def test_dynamodb_begins_empty_in_the_same_account_as_the_streams() -> None:
    """One account, 000000000000, for everything; nothing is left of an earlier local AWS of this process."""
    with serving(World()) as url, boto("dynamodb", url) as client:
        table = client.create_table(
            TableName="table",
            KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
    assert table["TableDescription"]["TableArn"] == "arn:aws:dynamodb:us-east-1:000000000000:table/table"
