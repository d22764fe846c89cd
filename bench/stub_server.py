"""A Kinesis endpoint so cheap that the client is the slower side: replies are made before, and only numbered.

Each shard gives ``--replies`` full replies of ``--batch`` records and is then read empty, open for ever. It checks
nothing and limits nothing. Sequence numbers have 56 digits and grow within a shard. Prints ``ready URL`` when it
listens. Sizes are bytes.
"""

import argparse
import asyncio
import base64
import json
import random
import time
from dataclasses import dataclass
from typing import Any

MARK = b"#" * 24
"""Where a reply's shard (6 digits) and number (18 digits) go in every sequence number of the template."""
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.1\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\n"
    b"x-amzn-RequestId: stub\r\nContent-Length: %d\r\n\r\n"
)
ARN = "arn:aws:kinesis:us-east-1:000000000000:stream/bench"


@dataclass(frozen=True)
class Stub:
    """The stream: what each operation answers."""

    shards: int
    replies: int
    template: bytes
    """The JSON list of one reply's records, with marks."""

    def answer(self, operation: str, arguments: Any) -> list[bytes]:
        """Return the body in pieces."""
        if operation == "GetRecords":
            return self._records(*map(int, arguments["ShardIterator"].split("-")))
        return [json.dumps(self._small(operation, arguments)).encode()]

    def _records(self, shard: int, number: int) -> list[bytes]:
        left = max(0, self.replies - number - 1)
        more = json.dumps({"MillisBehindLatest": left * 1000, "NextShardIterator": f"{shard}-{number + 1}"})
        records = self.template.replace(MARK, b"%06d%018d" % (shard, number)) if number < self.replies else b"[]"
        return [more[:-1].encode(), b',"Records":', records, b"}"]

    def _small(self, operation: str, arguments: Any) -> dict[str, Any]:
        match operation:
            case "DescribeStreamSummary":
                summary = {"StreamName": "bench", "StreamARN": ARN, "StreamStatus": "ACTIVE"}
                return {"StreamDescriptionSummary": summary | {"StreamCreationTimestamp": 1.7e9}}
            case "ListShards":
                return {"Shards": [self._shard(index) for index in range(self.shards)]}
            case "GetShardIterator":
                return {"ShardIterator": f"{int(arguments['ShardId'].rpartition('-')[2])}-0"}
        raise ValueError(f"cannot answer {operation!r}: the bench does not use it")

    def _shard(self, index: int) -> dict[str, Any]:
        first, last = (2**128 * end // self.shards for end in (index, index + 1))
        return {
            "ShardId": f"shardId-{index:012d}",
            "HashKeyRange": {"StartingHashKey": str(first), "EndingHashKey": str(last - 1)},
            "SequenceNumberRange": {"StartingSequenceNumber": f"4967{index:06d}" + "0" * 46},
        }


def template(batch: int, size_bytes: int) -> bytes:
    """Return ``batch`` records as JSON, with a mark in each sequence number."""
    generator, now = random.Random(7), time.time()
    payloads = [base64.b64encode(generator.randbytes(size_bytes)).decode() for _ in range(min(batch, 512))]
    records = (
        f'{{"SequenceNumber":"4967{MARK.decode()}{index:028d}","ApproximateArrivalTimestamp":{now / 1e9:.12f}E9,'
        f'"Data":"{payloads[index % len(payloads)]}","PartitionKey":"user-{index % 997:06d}"}}'
        for index in range(batch)
    )
    return f"[{','.join(records)}]".encode()


async def serve(stub: Stub, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one connection until it is closed."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
            arguments = json.loads(await reader.readexactly(int(fields["content-length"])))
            operation = OPERATIONS[fields["x-amz-target"].rpartition(".")[2]]
            body = stub.answer(operation, arguments)
            writer.writelines((HEAD % sum(map(len, body)), *body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


OPERATIONS = {name.lower(): name for name in ("GetRecords", "GetShardIterator", "ListShards", "DescribeStreamSummary")}


async def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("shards", "replies", "batch", "size"):
        parser.add_argument(f"--{name}", type=int, required=True)
    given = parser.parse_args()
    stub = Stub(given.shards, given.replies, template(given.batch, given.size))
    server = await asyncio.start_server(lambda r, w: serve(stub, r, w), "127.0.0.1", 0)
    print(f"ready http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
