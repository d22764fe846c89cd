"""The root of a worker's tree: rest_for_one, the ShardSupervisor, then the Coordinator."""

from actors import Child, Intensity, Ref, Strategy, Supervisor
from kcl_py.tree.coordinator import Coordinator
from kcl_py.tree.messages import StopWorker
from kcl_py.tree.presence import Presence
from kcl_py.tree.shard_supervisor import ShardSupervisor
from kcl_py.tree.steering import LookNow
from kcl_py.tree.worker import Worker

SHARDS_GRACE_S = 15.0
"""For all Shards to stop, once they have drained; more would be a processor that swallows its cancellation."""


class StreamSupervisor(Supervisor):
    """The root of the tree."""

    strategy = Strategy.REST_FOR_ONE
    intensity = Intensity(restarts=3, within_s=30.0)  # a Coordinator that keeps failing is not mended by more tries

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self._worker = worker
        self._presence = Presence(worker)
        self._stopping: StopWorker | None = None

    async def on_start(self) -> None:
        worker = self._worker
        shards = await self.start_child(Child("shards", lambda: ShardSupervisor(worker), grace_s=SHARDS_GRACE_S))
        self._coordinator: Ref = await self.start_child(
            Child("coordinator", lambda: Coordinator(worker, shards, self._presence, self._stopping))
        )

    def begin_stop(self, stop: StopWorker) -> None:
        """Have the Coordinator stop the worker; one that is restarted meanwhile goes on with that."""
        self._stopping = stop
        self._coordinator.tell(stop)

    def look(self, keys: frozenset[str]) -> None:
        """Have the Leases of these shards look at their rows now."""
        self._coordinator.tell(LookNow(keys))
