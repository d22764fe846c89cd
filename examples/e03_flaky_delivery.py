"""Pass records on to a service that fails now and then; what failed comes again, and nothing is passed over.

A batch that raises is handed over again after a pause, up to ``delivery.retries`` times; then the shard halts and keeps
its place. Here the part that got through is checkpointed first, so only the rest comes again.

kcl run examples/e03_flaky_delivery.yaml
"""

from kcl_py import Checkpointer, OwnedShard, RecordBatch, RecordProcessor


class Service:
    """Stands for an HTTP client: refuses each ``every``-th call, and takes it the next time."""

    def __init__(self, every: int) -> None:
        self.every, self.calls = every, 0

    async def send(self, data: bytes) -> None:
        self.calls += 1
        if self.calls % self.every == 0:
            raise ConnectionError("503 service unavailable")
        print("sent", data.decode(), flush=True)


class FlakyDelivery(RecordProcessor):
    """Sends the records of one shard, in order."""

    async def initialize(self, shard: OwnedShard) -> None:
        self.service = Service(every=4)
        print(f"{shard.shard_id}: mine, from {shard.position or 'the beginning'} on", flush=True)

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        if batch.redelivery:
            print(f"attempt {batch.redelivery.attempt}, because {batch.redelivery.reason}", flush=True)
        for index, record in enumerate(batch.records):
            try:
                await self.service.send(record.data)
            except ConnectionError:
                if index:
                    await checkpointer.checkpoint(batch.records[index - 1])
                raise

    async def shutdown_requested(self, checkpointer: Checkpointer) -> None:
        print("stopping in order; what was sent is checkpointed", flush=True)

    async def lease_lost(self) -> None:
        print("another worker has the shard now", flush=True)
