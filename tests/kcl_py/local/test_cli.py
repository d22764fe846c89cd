"""``kcl local`` as a process of its own, started as a user would."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from kcl_py.cli.local import EXTRA
from tests.kcl_py.local.world import boto
from tests.test_wheel import PROJECT

COMMAND = [sys.executable, "-m", "kcl_py.local"]


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a local AWS; yields the process and its first line. It is ended whatever happens."""
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        yield process, process.stdout.readline()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def failing(*arguments: str, command: list[str] | None = None) -> tuple[int, str]:
    """Run a command that must fail; return its exit code and what it said on stderr."""
    done = subprocess.run([*(command or COMMAND), *arguments], capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_local_is_ready_at_its_first_line_and_ends_cleanly_by_a_signal(number: int) -> None:
    """From the ready line on it answers, with the streams it was told of; the exit code is 0 and stderr empty."""
    with running("--port", "0", "--stream", "flights:4", "--stream", "other:1") as (process, line):
        url = line.removeprefix("ready ").rstrip("\n")
        assert re.fullmatch(r"http://127\.0\.0\.1:[0-9]+", url)
        with urlopen(url + "/health") as reply:
            assert (reply.status, reply.read()) == (200, b'{"status":"ok"}')
        with boto("kinesis", url) as client:
            assert client.list_streams()["StreamNames"] == ["flights", "other"]
            assert len(client.list_shards(StreamName="flights")["Shards"]) == 4
            client.put_record(StreamName="flights", Data=b"x", PartitionKey="k")
        os.kill(process.pid, number)
        assert process.wait(20) == 0
        assert process.stdout
        assert process.stderr
        output, errors = process.stdout.read(), process.stderr.read()
    assert errors == ""
    for hint in (f"AWS_ENDPOINT_URL={url}", "aws kinesis put-record --stream-name flights", f"endpoint: {url}"):
        assert hint in output


def test_signal_ends_a_subscription_and_the_server_cleanly() -> None:
    """Its caller sees the end of the stream, not a broken connection."""
    with running("--port", "0", "--stream", "flights:1") as (process, line), boto("kinesis", line.split()[1]) as client:
        arn = client.describe_stream_summary(StreamName="flights")["StreamDescriptionSummary"]["StreamARN"]
        consumer = client.register_stream_consumer(StreamARN=arn, ConsumerName="c")["Consumer"]["ConsumerARN"]
        while (
            client.describe_stream_consumer(ConsumerARN=consumer)["ConsumerDescription"]["ConsumerStatus"] != "ACTIVE"
        ):
            pass
        reply = client.subscribe_to_shard(
            ConsumerARN=consumer, ShardId="shardId-000000000000", StartingPosition={"Type": "LATEST"}
        )
        with closing(reply["EventStream"]) as stream:
            events = iter(stream)
            assert next(events)["SubscribeToShardEvent"]["Records"] == []
            process.terminate()
            assert list(events) == []
        assert process.wait(20) == 0
        assert process.stderr
        assert process.stderr.read() == ""


def test_realistic_local_refuses_what_is_too_fast_and_takes_its_time() -> None:
    """A second DescribeLimits within a second is one too many; a new stream or table is CREATING for seconds."""
    with (
        running("--port", "0", "--stream", "s:1", "--realistic") as (_, line),
        boto("kinesis", line.split()[1]) as client,
    ):
        client.create_stream(StreamName="t", ShardCount=1)
        assert client.describe_stream_summary(StreamName="t")["StreamDescriptionSummary"]["StreamStatus"] == "CREATING"
        client.describe_limits()
        reply = client.describe_limits()  # boto3 tries again after the refusal
        assert reply["ResponseMetadata"]["RetryAttempts"] >= 1
        with boto("dynamodb", line.split()[1]) as tables:
            tables.create_table(
                TableName="leases",
                KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
            )
            assert tables.describe_table(TableName="leases")["Table"]["TableStatus"] == "CREATING"


def test_callers_that_break_off_or_speak_no_http_are_not_the_servers_news() -> None:
    """Nothing on stderr, and it goes on answering; a worker that is killed in the middle of a request does as much."""
    head = b"POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: Kinesis_20131202.ListStreams\r\n"
    head += b"Content-Type: application/x-amz-json-1.1\r\n"
    broken = (
        *(b"\x00\x01\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET /health HTTP/1.1\r\n\r\n"),
        *(head + b"Content-Length: -5\r\n\r\n{}", head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
        *(head + b"Content-Length: 500\r\n\r\n{", head + b"X-Long: " + b"a" * 20_000 + b"\r\n\r\n"),
        head + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    )
    with running("--port", "0") as (process, line):
        url = line.split()[1]
        for request in broken:
            with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=10) as connection:
                connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
        with boto("kinesis", url) as client:
            assert client.list_streams()["StreamNames"] == []
        process.terminate()
        assert process.wait(20) == 0
        assert process.stderr
        assert process.stderr.read() == ""


def test_dynamodb_is_served_by_the_same_port() -> None:
    """Both services are one address."""
    with running("--port", "0") as (_, line), boto("dynamodb", line.split()[1]) as client:
        assert client.list_tables()["TableNames"] == []


def test_s3_is_served_by_the_same_port_and_says_nothing_on_stderr() -> None:
    """A request that fails is the caller's to know of."""
    with running("--port", "0") as (process, line), boto("s3", line.split()[1]) as client:
        client.create_bucket(Bucket="bucket")
        client.put_object(Bucket="bucket", Key="k", Body=b"hello")
        assert client.get_object(Bucket="bucket", Key="k")["Body"].read() == b"hello"
        with pytest.raises(client.exceptions.NoSuchKey):
            client.get_object(Bucket="bucket", Key="other")
        process.terminate()
        assert process.wait(20) == 0
        assert process.stderr
        assert process.stderr.read() == ""


def test_sqs_is_served_by_the_same_port() -> None:
    """As a place for dead letters to try."""
    with running("--port", "0") as (_, line), boto("sqs", line.split()[1]) as client:
        queue = client.create_queue(QueueName="failures")["QueueUrl"]
        client.send_message(QueueUrl=queue, MessageBody="hello")
        assert [one["Body"] for one in client.receive_message(QueueUrl=queue)["Messages"]] == ["hello"]


def test_a_port_in_use_is_one_error_line_and_exit_2() -> None:
    """It names the port and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, errors = failing("--port", str(port))
    assert (code, errors.count("\n")) == (2, 1)
    assert errors.startswith(f"error: cannot listen on 127.0.0.1:{port}: ")


@pytest.mark.parametrize("text", ["flights", "flights:", "flights:0", "flights:x", ":4", "fl ights:4", "a:4:4"])
def test_a_stream_that_is_not_name_and_shards_is_one_error_line_and_exit_2(text: str) -> None:
    """It shows how one is written."""
    code, errors = failing("--stream", text)
    assert (code, errors) == (
        2,
        f"error: cannot read --stream: expected NAME:SHARDS such as flights:4, found {text!r}; "
        "a name has 1 to 128 of a-z A-Z 0-9 _ . -, and there are 1 to 99999 shards\n",
    )


@pytest.mark.parametrize(
    "arguments", [["--stream", "a:1", "--stream", "a:2"], ["--stream", "a:20001"], ["--port", "65536"]]
)
def test_what_cannot_be_served_is_one_error_line_and_exit_2(arguments: list[str]) -> None:
    """A name twice, more shards than an account has, a port that is none."""
    code, errors = failing("--port", "0", *arguments) if arguments[0] != "--port" else failing(*arguments)
    assert (code, errors.count("\n"), errors.startswith("error: cannot ")) == (2, 1, True)


@pytest.mark.parametrize("missing", EXTRA)
def test_without_the_extra_local_the_error_names_it(missing: str) -> None:
    """Nothing is started."""
    run = "runpy.run_module('kcl_py.local', run_name='__main__')"
    program = f"import runpy, sys; sys.modules[{missing!r}] = None; {run}"
    code, errors = failing(command=[sys.executable, "-c", program])
    assert (code, errors) == (
        2,
        f"error: cannot run a local AWS: {missing} is not installed; install the extra 'local' of kcl-py\n",
    )


def test_the_extra_is_all_that_it_brings() -> None:
    """A part of it that is missing is told at the start, not by the first request that needs it."""
    names = [re.split(r"[\[>]", needed)[0].replace("-", "_") for needed in PROJECT["optional-dependencies"]["local"]]
    assert set(names) == set(EXTRA)


def test_local_tells_the_streams_that_are_there_when_its_data_were_kept(tmp_path: Path) -> None:
    """With the shards that they have, whatever it was told this time; the one that was asked for is its example."""
    data = str(tmp_path / "data")
    with running("--port", "0", "--data", data, "--stream", "flights:2", "--stream", "other:1") as (process, _):
        process.terminate()
        assert process.wait(20) == 0
    for arguments, example in ((["--stream", "other:7"], "other"), ([], "flights")):
        with running("--port", "0", "--data", data, *arguments) as (process, line):
            assert line.startswith("ready ")
            process.terminate()
            assert process.wait(20) == 0
            assert process.stdout is not None
            output = process.stdout.read()
        assert "Streams (shards): flights (2), other (1)." in output
        assert f"put-record --stream-name {example} " in output
        assert "create-stream" not in output


def test_local_goes_on_when_nobody_reads_on(tmp_path: Path) -> None:
    """As ``kcl local | head -1`` does; it ends by a signal, and without a complaint."""
    rules = tmp_path / "faults.yaml"
    rules.write_text("faults: [{kind: error, operation: DeleteStream}]\n")
    with running("--port", "0", "--faults", str(rules)) as (process, line):
        assert process.stdout is not None
        process.stdout.close()
        with urlopen(line.removeprefix("ready ").rstrip("\n") + "/health") as reply:
            assert reply.status == 200
        process.terminate()
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
