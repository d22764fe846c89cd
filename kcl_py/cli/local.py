"""``kcl local``: a local AWS in this process until a signal ends it.

The first line on stdout says where it listens; a how-to follows. Everything answers from then on.
With a folder for its data, streams and tables outlive the process; what is in S3 and SQS does not.
"""

import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import anyio

from actors.clock import SystemClock
from kcl_py.cli.output import say
from kcl_py.errors import ConfigError

if TYPE_CHECKING:
    from kcl_py.cli.bad_day import BadDay
    from kcl_py.local.disk import Disk
    from kcl_py.local.dynamo.model import DynamoDB
    from kcl_py.local.model import Kinesis

REGION = "us-east-1"
"""In the streams' ARNs."""
MAX_PORT = 65_535
EXTRA = ("aiohttp", "moto", "flask", "flask_cors")
"""What the extra ``local`` brings, as it is imported. Source: pyproject.toml."""
_STREAM = re.compile(r"([a-zA-Z0-9_.-]{1,128}):([1-9][0-9]{0,4})")
_CHANGE_S, _REALISTIC_CHANGE_S = 0.05, 5.0
"""How long creating, splitting and the like take, of streams and of tables."""


def local_command(
    port: str,
    streams: Sequence[str],
    *,
    is_realistic: bool = False,
    data: Path | None = None,
    faults: Path | None = None,
) -> None:
    """Run a local AWS (Kinesis, DynamoDB, S3 and SQS on one port of 127.0.0.1) until a signal ends it.

    Args:
        port: 0 is any free one.
        streams: those to begin with, each as ``NAME:SHARDS``; one that ``data`` has already stays as it is.
        is_realistic: whether rates are limited and answers and changes take their time.
        data: the folder that keeps streams and tables; without one they are in memory.
        faults: the file that says what goes wrong; nothing does without one.

    Raises:
        ConfigError: it cannot be served.
    """
    _check_extra()
    number = _port(port)
    shards_by_stream = _shards_by_stream(streams)
    bad_day = _bad_day(faults)
    with _disk(data) as disk:
        anyio.run(_run, number, shards_by_stream, is_realistic, disk, bad_day)


def _check_extra() -> None:
    missing = [name for name in EXTRA if find_spec(name) is None]
    if missing:
        raise ConfigError(f"cannot run a local AWS: {missing[0]} is not installed; install the extra 'local' of kcl-py")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_PORT)) and int(text) <= MAX_PORT):
        raise ConfigError(f"cannot listen on port {text!r}: expected a number from 0 to {MAX_PORT}")
    return int(text)


def _shards_by_stream(texts: Sequence[str]) -> dict[str, int]:
    streams: dict[str, int] = {}
    for text in texts:
        found = _STREAM.fullmatch(text)
        if found is None:
            raise ConfigError(
                f"cannot read --stream: expected NAME:SHARDS such as flights:4, found {text!r}; "
                "a name has 1 to 128 of a-z A-Z 0-9 _ . -, and there are 1 to 99999 shards"
            )
        if found[1] in streams:
            raise ConfigError(f"cannot create stream {found[1]!r} twice: give each --stream once")
        streams[found[1]] = int(found[2])
    return streams


def _bad_day(file: Path | None) -> "BadDay | None":
    if file is None:
        return None
    from kcl_py.cli.bad_day import BadDay

    return BadDay(file)


@contextmanager
def _disk(folder: Path | None) -> "Iterator[Disk | None]":
    """Hold the folder of the data for as long as the block lasts."""
    if folder is None:
        yield None
        return
    from kcl_py.local.disk import Disk

    try:
        disk = Disk(folder)
    except BlockingIOError:
        raise ConfigError(f"cannot use {folder}: another kcl local uses it; stop that one first") from None
    except OSError as error:
        raise ConfigError(f"cannot use {folder}: {error.strerror}; choose another --data") from error
    try:
        yield disk
    finally:
        disk.close()


async def _run(
    port: int, streams: dict[str, int], is_realistic: bool, disk: "Disk | None", bad_day: "BadDay | None"
) -> None:
    from kcl_py.local.dynamo.behaviour import Behaviour
    from kcl_py.local.dynamo.model import DynamoDB
    from kcl_py.local.dynamodb import LocalDynamoDB
    from kcl_py.local.errors import ModelError
    from kcl_py.local.latency import Latency
    from kcl_py.local.model import Kinesis
    from kcl_py.local.s3 import MotoS3
    from kcl_py.local.server import Server, serve
    from kcl_py.local.sqs import MotoSqs

    clock = SystemClock()
    delay_s = _REALISTIC_CHANGE_S if is_realistic else _CHANGE_S
    kinesis = Kinesis(clock, region=REGION, delay_s=delay_s, limit_rates=is_realistic, archive=disk)
    behaviour = Behaviour(clock, random=Random(), delay_s=delay_s, throttles=is_realistic)
    dynamodb = DynamoDB(behaviour, None if disk is None else disk.tables)
    latency = Latency(Random()) if is_realistic else None
    faults = None if bad_day is None else bad_day.faults
    s3, sqs = MotoS3(), MotoSqs()
    server = Server(kinesis, LocalDynamoDB(dynamodb), clock=clock, s3=s3, sqs=sqs, latency=latency, faults=faults)
    try:
        if disk is not None:
            _load(disk, kinesis, dynamodb)
        for name, shards in streams.items():
            if not kinesis.has_stream(name):
                kinesis.add_stream(name, shards)
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with serve(server, port=port) as url:
                how_to = _how_to(url, kinesis.open_shards(), asked=list(streams))
                say("\n".join([f"ready {url}", how_to, *([bad_day.announced()] if bad_day else [])]))
                await anext(signals)
        say(bad_day.told() if bad_day else "")
    except ModelError as refusal:
        raise ConfigError(f"cannot create the streams: {refusal.message}") from refusal
    except OSError as error:
        raise ConfigError(
            f"cannot listen on 127.0.0.1:{port}: {error.strerror}; choose another --port, or 0 for any free one"
        ) from error
    finally:
        s3.close()
        sqs.close()


def _load(disk: "Disk", kinesis: "Kinesis", dynamodb: "DynamoDB") -> None:
    try:
        streams, tables = disk.load(REGION, SystemClock().time()), disk.tables.load()
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f"cannot use --data: {error}; choose another folder") from error
    kinesis.adopt(streams)
    dynamodb.adopt(tables)


def _how_to(url: str, shards_by_stream: dict[str, int], *, asked: list[str]) -> str:
    name = next(iter([*asked, *shards_by_stream]), "flights")
    held = ", ".join(f"{stream} ({shards})" for stream, shards in shards_by_stream.items()) or "none yet"
    create = "" if shards_by_stream else f"  aws kinesis create-stream --stream-name {name} --shard-count 4\n"
    return f"""
Kinesis, DynamoDB, S3 and SQS, account 000000000000, any credentials. Streams (shards): {held}.
Ctrl-C ends it.

For a shell:
  export AWS_ENDPOINT_URL={url} AWS_DEFAULT_REGION=us-east-1
  export AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local
{create}  printf hello | aws kinesis put-record --stream-name {name} --partition-key a --data fileb:///dev/stdin
  aws s3 mb s3://{name.lower()}-bucket

For a worker's YAML (with the two access key variables above):
  stream: {name}
  aws:
    region: us-east-1
    endpoint: {url}
"""
