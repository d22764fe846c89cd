"""``kcl local``: a local AWS in this process until a signal ends it.

The first line on stdout says where it listens; a how-to follows. Everything answers from then on.
"""

import re
import signal
import sys
from collections.abc import Sequence
from importlib.util import find_spec

import anyio

from actors.clock import SystemClock
from kcl_py.errors import ConfigError

MAX_PORT = 65_535
_EXTRA = ("aiohttp",)
"""What the extra ``local`` brings that is imported here."""
_TABLE_DELAY_S = 0.05
"""A new table is CREATING for so long, as a new stream is."""
_STREAM = re.compile(r"([a-zA-Z0-9_.-]{1,128}):([1-9][0-9]{0,4})")


def local_command(port: int, streams: Sequence[str]) -> None:
    """Run a local AWS (Kinesis and DynamoDB on one port of 127.0.0.1, all in memory) until a signal ends it.

    Args:
        port: 0 is any free one.
        streams: those to begin with, each as ``NAME:SHARDS``.

    Raises:
        ConfigError: it cannot be served.
    """
    _check_extra()
    if not 0 <= port <= MAX_PORT:
        raise ConfigError(f"cannot listen on port {port}: expected 0 to {MAX_PORT}")
    anyio.run(_run, port, _shards_by_stream(streams))


def _check_extra() -> None:
    missing = [name for name in _EXTRA if find_spec(name) is None]
    if missing:
        raise ConfigError(f"cannot run a local AWS: {missing[0]} is not installed; pip install 'kcl-py[local]'")


def _shards_by_stream(texts: Sequence[str]) -> dict[str, int]:
    streams: dict[str, int] = {}
    for text in texts:
        found = _STREAM.fullmatch(text)
        if found is None:
            raise ConfigError(f"cannot read --stream: expected NAME:SHARDS such as flights:4, found {text!r}")
        if found[1] in streams:
            raise ConfigError(f"cannot create stream {found[1]!r} twice: give each --stream once")
        streams[found[1]] = int(found[2])
    return streams


async def _run(port: int, streams: dict[str, int]) -> None:
    from kcl_py.local.dynamo.behaviour import Behaviour
    from kcl_py.local.dynamo.model import DynamoDB
    from kcl_py.local.dynamodb import LocalDynamoDB
    from kcl_py.local.errors import ModelError
    from kcl_py.local.model import Kinesis
    from kcl_py.local.server import Server, serve

    clock = SystemClock()
    kinesis, dynamodb = Kinesis(clock), DynamoDB(Behaviour(clock, delay_s=_TABLE_DELAY_S))
    try:
        for name, shards in streams.items():
            kinesis.add_stream(name, shards)
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with serve(Server(kinesis, LocalDynamoDB(dynamodb), clock=clock), port=port) as url:
                sys.stdout.write(f"ready {url}\n{_how_to(url, streams)}")
                sys.stdout.flush()
                dynamodb.load()
                await anext(signals)
    except ModelError as refusal:
        raise ConfigError(f"cannot create the streams: {refusal.message}") from refusal
    except OSError as error:
        raise ConfigError(
            f"cannot listen on 127.0.0.1:{port}: {error.strerror}; choose another --port, or 0 for any free one"
        ) from error


def _how_to(url: str, streams: dict[str, int]) -> str:
    name = next(iter(streams), "flights")
    held = ", ".join(f"{stream} ({shards})" for stream, shards in streams.items()) or "none yet"
    create = "" if streams else f"  aws kinesis create-stream --stream-name {name} --shard-count 4\n"
    return f"""
Kinesis and DynamoDB, account 000000000000, any credentials. Streams (shards): {held}.
Everything is in memory; Ctrl-C ends it.

For a shell:
  export AWS_ENDPOINT_URL={url} AWS_DEFAULT_REGION=us-east-1
  export AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local
{create}  aws kinesis put-record --stream-name {name} --partition-key a --data aGVsbG8=

For a worker's YAML (with the two access key variables above):
  stream: {name}
  aws:
    region: us-east-1
    endpoint: {url}
"""
