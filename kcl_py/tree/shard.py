"""The Shard: one shard that this worker holds or is taking; it lives and dies as a whole.

The Pipeline is started first, and born stopped, so that the Lease never commands what is not there. Nothing is
restarted here: a Shard that fails is a ``Down`` to the Coordinator, which opens it again with backoff and a new
ownership. Mirrors: ``KinesisClient.Stream.Shard`` (Elixir).
"""

from actors import Child, Intensity, Ref, Restart, Strategy, Supervisor
from kcl_py.tree.lease import Lease
from kcl_py.tree.messages import OpenShard
from kcl_py.tree.pipeline import Pipeline
from kcl_py.tree.worker import Worker

GRACE_S = 2.0
"""For each part to stop: whatever takes longer has drained before, or will not."""


class Shard(Supervisor):
    """Runs the Pipeline and the Lease of one shard."""

    strategy = Strategy.ONE_FOR_ALL
    intensity = Intensity(restarts=0)

    def __init__(self, worker: Worker, opening: OpenShard) -> None:
        super().__init__()
        self._worker, self._opening = worker, opening

    async def on_start(self) -> None:
        worker, opening = self._worker, self._opening
        key = opening.row.key
        pipeline = await self.start_child(
            Child("pipeline", lambda: Pipeline(worker, key), restart=Restart.TRANSIENT, grace_s=GRACE_S)
        )
        self.lease: Ref = await self.start_child(
            Child("lease", lambda: Lease(worker, opening, pipeline), restart=Restart.TRANSIENT, grace_s=GRACE_S)
        )
