"""Tells the Coordinator and the log what becomes of a lease."""

from actors import Ref
from kcl_py.leases import requests
from kcl_py.leases.row import LeaseRow, Request
from kcl_py.printable import instant
from kcl_py.records import SequenceNumber
from kcl_py.tree.messages import Acquired, Awaiting, GaveUp, Initialized, ShardEnded
from kcl_py.tree.worker import Worker


class Herald:
    """Speaks for the Lease of one shard."""

    def __init__(self, worker: Worker, key: str, coordinator: Ref) -> None:
        self._key, self._coordinator = key, coordinator
        self._log = worker.log.bind(shard_id=key)
        self._asked_by: str | None = None

    def awaits(self, row: LeaseRow, *, why: str) -> None:
        self._log.info("kcl_py.lease.asked_for", holder=row.holder, why=why)
        self._coordinator.tell(Awaiting(row))

    def took(self, row: LeaseRow, epoch: int, *, why: str, previous: str | None) -> None:
        self._log = self._log.bind(epoch=epoch)
        self._log.info("kcl_py.lease.taken", why=why, previous=previous)
        self._coordinator.tell(Acquired(row))

    def initialized(self) -> None:
        self._coordinator.tell(Initialized(self._key))

    def stored(self, position: SequenceNumber | None) -> None:
        self._log.info("kcl_py.checkpoint.stored", position=str(position))

    def failed(self, error: Exception) -> None:
        self._log.warning("kcl_py.lease.request_failed", error=str(error))

    def is_asked_for(self, by: str | None) -> None:
        self._asked_by = by
        self._log.info("kcl_py.lease.handoff_requested", by=by)

    def kept(self, why: str) -> None:
        """Nobody asks for the shard any more, if anybody did."""
        if self._asked_by is not None:
            self._log.info("kcl_py.lease.kept", asked_by=self._asked_by, why=why)
            self._asked_by = None

    def moved(self, request: Request | None, epoch: int) -> None:
        """The reading goes on elsewhere, in an ownership of its own."""
        self._log = self._log.bind(epoch=epoch)
        self.applied(request)

    def applied(self, request: Request | None) -> None:
        if request is not None:
            self._log.info("kcl_py.lease.request_applied", request=request.id, kind=request.kind)

    def refused(self, request: Request | None) -> None:
        """A request was taken out of the row; one that had been answered before needs no word."""
        if request is not None and (why := requests.fault(request)) is not None:
            self._log.warning("kcl_py.lease.request_refused", request=request.id, error=why)

    def paused(self, row: LeaseRow) -> None:
        """The shard is paused, or goes on."""
        if (paused := row.native.paused) is not None:
            of = "stream" if paused.is_of_stream else "shard"
            self._log.info("kcl_py.shard.paused", of=of, since=instant(paused.at_ms), why=paused.why)
        else:
            self._log.info("kcl_py.shard.resumed")

    def lost(self, why: str) -> None:
        self._log.warning("kcl_py.lease.lost", why=why)

    def completed(self, row: LeaseRow, children: tuple[str, ...]) -> None:
        self._log.info("kcl_py.lease.completed", children=list(children))
        self._coordinator.tell(ShardEnded(row, children))

    def transferred(self, to: str | None) -> None:
        self._log.info("kcl_py.lease.transferred", to=to)

    def released(self, fault: str | None) -> None:
        self._log.info("kcl_py.lease.released", **({"fault": fault} if fault else {}))

    def gave_up(self, row: LeaseRow | None, unfinished: int, *, is_for_others: bool) -> None:
        self._coordinator.tell(GaveUp(self._key, row, unfinished, is_for_others))
