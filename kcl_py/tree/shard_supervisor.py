"""The ShardSupervisor: runs the Shards of this worker; none can take another down.

Shards come and go as the Coordinator says; they are temporary, so that whether and when a failed one runs again is
the Coordinator's decision alone. It is started before the Coordinator, which adopts what runs when it is restarted.
"""

from actors import Child, Ref, Restart, Strategy, Supervisor
from kcl_py.tree.messages import CAPACITY, Adopt, CloseShard, OpenShard, ShardRuns
from kcl_py.tree.shard import GRACE_S, Shard
from kcl_py.tree.worker import Worker


class ShardSupervisor(Supervisor):
    """Runs one Shard for each shard that this worker holds or is taking."""

    strategy = Strategy.ONE_FOR_ONE
    capacity = CAPACITY

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self._worker = worker
        self._running: dict[str, Shard] = {}

    async def on_message(self, message: object) -> None:
        match message:
            case OpenShard():
                await self._open(message)
            case CloseShard(key):
                await self.stop_child(key)
                self._running.pop(key, None)
            case Adopt(coordinator):
                for key in list(self._running):
                    self._announce(key, coordinator)
            case _:
                self.unhandled(message)

    async def _open(self, opening: OpenShard) -> None:
        key = opening.row.key
        if self.child(key) is not None:
            return
        shard = self._running[key] = Shard(self._worker, opening)
        await self.start_child(Child(key, lambda: shard, restart=Restart.TEMPORARY, grace_s=3 * GRACE_S))
        self._announce(key, opening.coordinator)

    def _announce(self, key: str, coordinator: Ref) -> None:
        ref = self.child(key)
        if ref is None:
            del self._running[key]
        else:
            coordinator.tell(ShardRuns(key, ref, self._running[key].lease))
