"""The servers that are compared, each on a free port and ended with its block; ``make peers`` installs them."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

PEERS = Path(__file__).parents[2] / ".peers"
START_S = 30.0


@contextmanager
def kcl_local() -> Iterator[str]:
    """Run ``kcl local``; yields its URL."""
    port = _free_port()
    command = [sys.executable, "-m", "kcl_py.local", "--port", str(port)]
    with _running(command, {}, f"http://127.0.0.1:{port}/health"):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def kinesis_local() -> Iterator[str]:
    """Run kinesis-local (npm); yields its URL."""
    package, port = PEERS / "node_modules" / "kinesis-local", _free_port()
    env = {
        "KINESIS_MOCK_CERT_PATH": str(package / "server.json"),
        "KINESIS_MOCK_PLAIN_PORT": str(port),
        "KINESIS_MOCK_TLS_PORT": str(_free_port()),
        "LOG_LEVEL": "ERROR",
        "SHARD_LIMIT": "500",
        "CREATE_STREAM_DURATION": "50ms",
        "SPLIT_SHARD_DURATION": "500ms",
        "AWS_REGION": "us-east-1",
    }
    with _running(["node", str(package / "main.js")], env, f"http://127.0.0.1:{port}/healthcheck"):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def ministack() -> Iterator[str]:
    """Run ministack (PyPI), which is in an environment of its own; yields its URL."""
    port = _free_port()
    env = {"GATEWAY_PORT": str(port), "BIND_HOST": "127.0.0.1", "LOG_LEVEL": "ERROR"}
    command = [str(PEERS / "ministack" / "bin" / "ministack")]
    with _running(command, env, f"http://127.0.0.1:{port}/_ministack/health"):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _running(command: list[str], env: Mapping[str, str], health: str) -> Iterator[None]:
    process = subprocess.Popen(
        command, env=os.environ | env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )
    try:
        _await_health(health, process)
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_health(url: str, process: subprocess.Popen[bytes]) -> None:
    """Ask until ``url`` answers; a server of another make tells us of itself in no other way."""
    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s and process.poll() is None:
        try:
            with urlopen(url, timeout=2):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"cannot start {process.args!r}: expected an answer from {url} within {START_S:g} s")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
