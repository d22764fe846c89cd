"""The lease table of a fake stream, as a test looks at it and changes it: beside all faults, and at once.

Seconds end in ``_s``. Nothing here is a worker's: those go through their clients.
"""

from actors import Clock
from kcl_py.leases import expressions, rules
from kcl_py.leases.attributes import decode_item, encode
from kcl_py.leases.items import row_from_item
from kcl_py.leases.row import LeaseRow
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.errors import ModelError

ANOTHER = "another-worker/00000000"
"""The ``leaseOwner`` of a lease that a test has taken away: a worker that never renews it."""


class LeaseTable:
    """The rows of one table.

    Args:
        model: the DynamoDB that it is in.
        name: the table's name.
        clock: tells when a row was taken.
    """

    def __init__(self, model: DynamoDB, name: str, clock: Clock) -> None:
        self._model, self._name, self._clock = model, name, clock

    def rows(self) -> dict[str, LeaseRow]:
        """Return all rows by shard id, in order; none if no worker has made the table yet."""
        try:
            items = self._model.call("Scan", {"TableName": self._name, "ConsistentRead": True})["Items"]
        except ModelError:
            return {}
        rows = sorted((row_from_item(decode_item(item)) for item in items), key=lambda row: row.key)
        return {row.key: row for row in rows}

    def take(self, shard_id: str) -> None:
        """Have another worker take a lease. Raises ValueError if the shard has none."""
        row = self.rows().get(shard_id)
        if row is None:
            raise ValueError(
                f"cannot take the lease on {shard_id!r}: expected a row that a worker has made, found none; "
                "let a worker run first"
            )
        token = f"{row.counter:032x}"
        take = rules.take(row, owner=ANOTHER, token=token, now_ms=int(self._clock.time() * 1000))
        key = {"TableName": self._name, "Key": {"leaseKey": encode(shard_id)}}
        self._model.call("UpdateItem", {**key, **expressions.update(take)})
