"""The operations on items, one at a time, in batches, in transactions and in pages. Sentences as AWS answers them."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from kcl_py.local.dynamo import transaction, writes
from kcl_py.local.dynamo.capacity import read_units
from kcl_py.local.dynamo.catalog import Catalog
from kcl_py.local.dynamo.errors import Refusal, invalid, invalid_value
from kcl_py.local.dynamo.expressions import Expressions, read_expressions
from kcl_py.local.dynamo.index import Index
from kcl_py.local.dynamo.keys import POSITIONS, Place
from kcl_py.local.dynamo.pages import Page, answer, read_page
from kcl_py.local.dynamo.paths import pick
from kcl_py.local.dynamo.queries import read_wanted
from kcl_py.local.dynamo.rows import Rows
from kcl_py.local.dynamo.table import Table
from kcl_py.local.dynamo.values import Item, read_item
from kcl_py.local.dynamo.writes import Write

Answer: TypeAlias = dict[str, Any]
Request: TypeAlias = Mapping[str, Any]

MOST_IN_BATCH_WRITE, MOST_IN_BATCH_GET = 25, 100
"""Source: API reference."""
_THROTTLES = ("ProvisionedThroughputExceededException", "ThrottlingException")


class Items:
    """Operations on the items of a catalog's tables."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog, self._behaviour = catalog, catalog.behaviour

    def get_item(self, request: Request) -> Answer:
        expressions = read_expressions(request, "ProjectionExpression")
        table = self._catalog.usable(request["TableName"])
        consistent = bool(request.get("ConsistentRead"))
        item, units = _read(table, request["Key"], expressions, consistent=consistent)
        return ({} if item is None else {"Item": item}) | _consumed(request, {table.name: units})

    def put_item(self, request: Request) -> Answer:
        return self._write(request, writes.put)

    def delete_item(self, request: Request) -> Answer:
        return self._write(request, writes.delete)

    def update_item(self, request: Request) -> Answer:
        return self._write(request, writes.update)

    def _write(self, request: Request, prepare: Callable[[Table, Request], Write]) -> Answer:
        wanted = request.get("ReturnValues") or "NONE"
        if prepare is not writes.update and wanted not in ("NONE", "ALL_OLD"):
            raise invalid("ReturnValues can only be ALL_OLD or NONE")
        table = self._catalog.usable(request["TableName"])
        write = prepare(table, request)
        table.admit_write()
        old, new = write.outcome()
        units = table.write(write.place, old, new)
        shown = _returned(wanted, write, old, new)
        return ({"Attributes": shown} if shown else {}) | _consumed(request, {table.name: units})

    def scan(self, request: Request) -> Answer:
        number, segments = _segment(request)
        expressions = read_expressions(request, "FilterExpression", "ProjectionExpression")
        table, index, rows = self._source(request)
        after = _start(request, table, index)
        if after is not None and not number * POSITIONS // segments <= after[0] < (number + 1) * POSITIONS // segments:
            raise invalid(
                "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with "
                f"correct Segment. TotalSegments: {segments} Segment: {number}"
            )
        page = read_page(rows.segment(number, segments, after=after), expressions, limit=request.get("Limit"))
        return self._page(request, expressions, table, index, page)

    def query(self, request: Request) -> Answer:
        expressions = read_expressions(request, "KeyConditionExpression", "FilterExpression", "ProjectionExpression")
        table, index, rows = self._source(request)
        schema = (index or table).schema
        wanted = read_wanted(expressions, schema)
        for name in schema.names:
            if name in expressions.filtered:
                raise invalid(
                    f"Filter Expression can only contain non-primary key attributes: Primary key attribute: {name}"
                )
        prefix, after = schema.partition(wanted.partition), _start(request, table, index)
        if after is not None and after[:2] != prefix:
            raise invalid("The provided starting key is outside query boundaries based on provided conditions")
        found = rows.partition(prefix, after=after, forward=request.get("ScanIndexForward") is not False)
        if (sort := wanted.sort) is not None:
            found = ((place, row) for place, row in found if sort.holds(row.item, expressions.values))
        page = read_page(found, expressions, limit=request.get("Limit"))
        return self._page(request, expressions, table, index, page)

    def _source(self, request: Request) -> tuple[Table, Index | None, Rows]:
        """Return where a page is read. Raises Refusal."""
        table, name = self._catalog.usable(request["TableName"]), request.get("IndexName")
        consistent = bool(request.get("ConsistentRead"))
        if name is None:
            table.admit_read()
            return table, None, table.seen(consistent=consistent)
        index = table.index(name)
        if consistent:
            raise invalid("Consistent reads are not supported on global secondary indexes")
        if request.get("Select") == "ALL_ATTRIBUTES" and index.projection.kind != "ALL":
            raise invalid_value(
                f"Select type ALL_ATTRIBUTES is not supported for global secondary index {name} "
                "because its projection type is not ALL"
            )
        table.admit_read(index)
        return table, index, index.copy.at(self._behaviour.now_s())

    def _page(
        self, request: Request, expressions: Expressions, table: Table, index: Index | None, page: Page
    ) -> Answer:
        units = read_units(page.size, consistent=bool(request.get("ConsistentRead")))
        (index or table).capacity.reads.take(units)
        names = table.schema.names if index is None else index.key_names
        counts_only = request.get("Select") == "COUNT"
        body = answer(page, expressions, key_names=names, counts_only=counts_only)
        return body | _consumed(request, {table.name: units})

    def batch_get_item(self, request: Request) -> Answer:
        if sum(len(one["Keys"]) for one in request["RequestItems"].values()) > MOST_IN_BATCH_GET:
            raise invalid("Too many items requested for the BatchGetItem call")
        found: dict[str, list[Item]] = {}
        left: dict[str, Answer] = {}
        units: dict[str, float] = {}
        for name, one in request["RequestItems"].items():
            self._get_batch(name, one, found, left, units)
        return {"Responses": found, "UnprocessedKeys": left} | _consumed(request, units, many=True)

    def _get_batch(
        self,
        name: str,
        request: Request,
        found: dict[str, list[Item]],
        left: dict[str, Answer],
        units: dict[str, float],
    ) -> None:
        expressions = read_expressions(request, "ProjectionExpression")
        table = self._catalog.usable(name)
        places = [table.schema.place(table.schema.read_key(key)) for key in request["Keys"]]
        if len(set(places)) < len(places):
            raise invalid("Provided list of item keys contains duplicates")
        items: list[Item] = found.setdefault(name, [])
        for key in request["Keys"]:
            try:
                self._lose()
                item, cost = _read(table, key, expressions, consistent=bool(request.get("ConsistentRead")))
            except Refusal as refusal:
                if refusal.code not in _THROTTLES:
                    raise
                left.setdefault(name, {**request, "Keys": []})["Keys"].append(read_item(key))
                continue
            units[table.name] = units.get(table.name, 0.0) + cost
            items += [] if item is None else [item]

    def batch_write_item(self, request: Request) -> Answer:
        asked = request["RequestItems"]
        if sum(len(one) for one in asked.values()) > MOST_IN_BATCH_WRITE:
            raise invalid("Too many items requested for the BatchWriteItem call")
        prepared = [(name, one, self._batch_write(name, one)) for name, several in asked.items() for one in several]
        if len({(write.table.name, write.place) for _, _, write in prepared}) < len(prepared):
            raise invalid("Provided list of item keys contains duplicates")
        left: dict[str, list[Request]] = {}
        units: dict[str, float] = {}
        refused: Refusal | None = None
        for name, one, write in prepared:
            try:
                self._lose()
                write.table.admit_write()
            except Refusal as refusal:
                refused = refusal
                left.setdefault(name, []).append(one)
                continue
            units[name] = units.get(name, 0.0) + write.table.write(write.place, *write.outcome())
        if refused is not None and not units and not self._behaviour.unprocessed:
            raise refused
        return {"UnprocessedItems": left} | _consumed(request, units, many=True)

    def _batch_write(self, name: str, request: Request) -> Write:
        given = [(kind, inner) for kind, inner in request.items() if inner is not None]
        if len(given) != 1:
            raise invalid(
                "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the "
                "supported datatypes"
                if given
                else "Supplied WriteRequest is empty, must contain exactly one of PutRequest or DeleteRequest"
            )
        [(kind, inner)] = given
        table = self._catalog.usable(name)
        return writes.put(table, inner) if kind == "PutRequest" else writes.delete(table, inner)

    def _lose(self) -> None:
        """Raise Refusal for the share of a batch's items that shall come back unprocessed."""
        if self._behaviour.unprocessed and self._behaviour.random.random() < self._behaviour.unprocessed:
            raise Refusal(_THROTTLES[0], "The item was left for another request.")

    def transact_write_items(self, request: Request) -> Answer:
        items, token = request["TransactItems"], request.get("ClientRequestToken")
        if token is not None and self._catalog.tokens.is_repeated(token, items):
            return {}
        units = transaction.commit(transaction.prepare(self._catalog, items))
        if token is not None:
            self._catalog.use_token(token, items)
        return _consumed(request, units, many=True)

    def transact_get_items(self, request: Request) -> Answer:
        answers: list[Answer] = []
        units: dict[str, float] = {}
        for one in request["TransactItems"]:
            get = one["Get"]
            expressions = read_expressions(get, "ProjectionExpression")
            table = self._catalog.usable(get["TableName"])
            item, cost = _read(table, get["Key"], expressions, consistent=True)
            table.capacity.reads.take(cost)  # the second of the two reads that a transaction makes
            units[table.name] = units.get(table.name, 0.0) + 2 * cost
            answers.append({} if item is None else {"Item": item})
        return {"Responses": answers} | _consumed(request, units, many=True)


def _read(table: Table, key: Request, expressions: Expressions, *, consistent: bool) -> tuple[Item | None, float]:
    """Return the item, or what is asked of it, and the units that reading it cost. Raises Refusal."""
    place = table.schema.place(table.schema.read_key(key))
    table.admit_read()
    row = table.seen(consistent=consistent).get(place)
    units = read_units(0 if row is None else row.size, consistent=consistent)
    table.capacity.reads.take(units)
    if row is None:
        return None, units
    return row.item if expressions.projection is None else pick(row.item, expressions.projection), units


def _returned(wanted: str, write: Write, old: Item | None, new: Item | None) -> Item | None:
    """Return the attributes that a write answers with."""
    if wanted == "NONE":
        return None
    item = old if wanted.endswith("OLD") else new
    if item is None or wanted.startswith("ALL"):
        return item
    return pick(item, write.paths)


def _segment(request: Request) -> tuple[int, int]:
    number, of = request.get("Segment"), request.get("TotalSegments")
    if number is None and of is None:
        return 0, 1
    if of is None:
        raise invalid(
            "The TotalSegments parameter is required but was not present in the request when Segment parameter is "
            "present"
        )
    if number is None:
        raise invalid(
            "The Segment parameter is required but was not present in the request when parameter TotalSegments is "
            "present"
        )
    if number >= of:
        raise invalid(
            "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
            f"Segment: {number} is not less than TotalSegments: {of}"
        )
    return number, of


def _start(request: Request, table: Table, index: Index | None) -> Place | None:
    """Return the place behind which a page begins. Raises Refusal."""
    raw = request.get("ExclusiveStartKey")
    if raw is None:
        return None
    key, names = read_item(raw), table.schema.names if index is None else index.key_names
    fits = table.schema.fits(key) and (index is None or index.schema.fits(key))
    if set(key) != set(names) or not fits:
        raise invalid("The provided starting key is invalid")
    return table.schema.place(key) if index is None else index.place(key)


def _consumed(request: Request, units: Mapping[str, float], *, many: bool = False) -> Answer:
    if (request.get("ReturnConsumedCapacity") or "NONE") == "NONE":
        return {}
    each = [{"TableName": name, "CapacityUnits": cost} for name, cost in units.items()]
    return {"ConsumedCapacity": each if many else each[0]}
