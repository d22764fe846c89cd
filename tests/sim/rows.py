"""The lease table as its requests change it: notes each write that moves more than a heartbeat."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.sim.history import History

Attributes = Mapping[str, Any]
_NOTHING: Attributes = {}


class Rows:
    """Follows the requests that have taken effect.

    Args:
        table: the lease table's name.
        history: where changes are noted.
        read: returns a row as it is; nothing if it is not there.
    """

    def __init__(self, table: str, history: History, read: Callable[[str], Attributes]) -> None:
        self._table, self._history, self._read = table, history, read
        self._known: dict[str, dict[str, Any]] = {}
        self.on_moved: Callable[[str, str], None] = lambda _shard, _request: None
        """Called when a holder has done what a request asked for that moves its shard."""

    @property
    def standing(self) -> list[str]:
        """The shards of whose holders something is asked, but of those that have ended."""
        return [key for key, row in self._known.items() if row.get("request") and row["checkpoint"] != "SHARD_END"]

    @property
    def halted(self) -> list[str]:
        """The shards that stand still, and of whose holders nothing is asked."""
        return [key for key, row in self._known.items() if "halted" in row and "request" not in row]

    def follow(self, life: str, operation: str, params: Any, reply: Any) -> None:
        """Take over one request of ``life`` and its reply."""
        match operation:
            case "UpdateItem" if params["TableName"] == self._table:
                self._changed(life, reply["Attributes"])
            case "PutItem" if params["TableName"] == self._table:
                self._changed(life, params["Item"])
            case "TransactWriteItems":
                for [(kind, asked)] in map(dict.items, params["TransactItems"]):
                    if asked["TableName"] != self._table:
                        continue
                    if kind == "Put":
                        self._changed(life, asked["Item"])
                    elif kind == "Update" and (item := self._read(asked["Key"]["leaseKey"]["S"])):
                        self._changed(life, item)
            case "DeleteItem" if params["TableName"] == self._table:
                self.forget(params["Key"]["leaseKey"]["S"], life)

    def forget(self, key: str, life: str = "") -> None:
        """A row was deleted: by an operator, unless by ``life``."""
        self._known.pop(key, None)
        self._history.note("deleted", shard=key, w=life)

    def _changed(self, life: str, item: Attributes) -> None:
        native = item.get("native", {"M": _NOTHING})["M"]
        shown = {
            "owner": _text(item, "leaseOwner"),
            "asked": _text(item, "checkpointOwner"),
            "holder": _text(native, "owner"),
            "checkpoint": _text(item, "checkpoint"),
            "token": _text(native, "token"),
        }
        if request := native.get("request"):
            shown["request"] = _text(request["M"], "id")
            shown["kind"] = _text(request["M"], "kind")
        if paused := native.get("paused"):
            shown["paused"] = paused["M"]["at"]["N"]
        if "halted" in native:
            shown["halted"] = _text(native["halted"]["M"], "position")
        if "quiet" in native:
            shown["quiet"] = native["quiet"]["N"]
        key, before = item["leaseKey"]["S"], self._known.get(item["leaseKey"]["S"], {})
        if before != shown:
            self._known[key] = shown
            if before.get("kind") == "seek" and "kind" not in shown and before["token"] != shown["token"]:
                self.on_moved(key, before["request"])
            self._history.note("row", w=life, shard=key, counter=int(item["leaseCounter"]["N"]), **shown)


def _text(item: Attributes, name: str) -> str | None:
    found: str | None = item.get(name, _NOTHING).get("S")
    return found
