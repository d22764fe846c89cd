"""What DynamoDB must answer about many items at once: queries, scans, indexes."""

from typing import Any

from tests.contract.dynamo_steps import BAD, LIST, TREE, Case, Step, n, put, s, step

LARGE = "x" * 100_000
"""Of which ten fill a page."""


def leaf(number: int, *, owner: str | None = "w", branch: str = "b", **more: Any) -> Step:
    item = {"b": s(branch), "n": n(number), "fill": s("p")} | ({"owner": s(owner)} if owner else {})
    return put(item, table=TREE, **more)


def query(condition: str, values: dict[str, Any], **more: Any) -> Step:
    asked = {"TableName": TREE, "KeyConditionExpression": condition, "ExpressionAttributeValues": values}
    return step("Query", asked, **more)


def numbers(*found: int) -> dict[str, Any]:
    """Return what a page with these leaves, reduced to their numbers, gives."""
    return {"Count": len(found), "Items": [{"n": n(number)} for number in found]}


B = {":b": s("b")}
ONLY_N = {"ProjectionExpression": "n"}
TEN = tuple(leaf(number) for number in range(10))

CASES = (
    Case(
        "a query reads a partition in order, either way",
        (
            *(leaf(number) for number in (10, 2, -1, 1)),
            leaf(5, branch="other"),
            query("b = :b", B, **ONLY_N, gives=numbers(-1, 1, 2, 10), lacks=("LastEvaluatedKey",)),
            query("b = :b", B, **ONLY_N, ScanIndexForward=False, gives=numbers(10, 2, 1, -1)),
        ),
    ),
    Case(
        "a query takes a range",
        (
            *TEN,
            query("b = :b AND n BETWEEN :x AND :y", B | {":x": n(3), ":y": n(5)}, **ONLY_N, gives=numbers(3, 4, 5)),
            query("b = :b AND n > :x", B | {":x": n(7)}, **ONLY_N, gives=numbers(8, 9)),
            query("n <= :x AND b = :b", B | {":x": n(1)}, **ONLY_N, gives=numbers(0, 1)),
        ),
    ),
    Case(
        "a limit counts what is looked at, not what the filter lets through",
        (
            *TEN,
            query(
                "b = :b",
                B | {":p": s("q")},
                FilterExpression="fill = :p",
                Limit=4,
                gives={"Count": 0, "ScannedCount": 4, "LastEvaluatedKey": {"b": s("b"), "n": n(3)}},
            ),
            query(
                "b = :b",
                B,
                **ONLY_N,
                ExclusiveStartKey={"b": s("b"), "n": n(7)},
                gives=numbers(8, 9),
                lacks=("LastEvaluatedKey",),
            ),
            query("b = :b", B, Select="COUNT", gives={"Count": 10, "ScannedCount": 10}, lacks=("Items",)),
        ),
    ),
    Case(
        "a query needs the whole partition key",
        (
            query("n = :x", {":x": n(1)}, code=BAD, says="Query condition missed key schema element: b"),
            query("b > :b", B, code=BAD, says="Query key condition not supported"),
            query(
                "b = :b OR n = :x",
                B | {":x": n(1)},
                code=BAD,
                says="Invalid operator used in KeyConditionExpression: OR",
            ),
            query("b = :x", {":x": n(1)}, code=BAD, says="Condition parameter type does not match schema type"),
        ),
    ),
    Case(
        "a filter does not look at keys",
        (
            query(
                "b = :b",
                B | {":x": n(1)},
                FilterExpression="n = :x",
                code=BAD,
                says="Filter Expression can only contain non-primary key attributes: Primary key attribute: n",
            ),
        ),
    ),
    Case(
        "a page ends at 1 MB",
        (
            *(put({"b": s("b"), "n": n(number), "fill": s(LARGE)}, table=TREE) for number in range(12)),
            query("b = :b", B, **ONLY_N, gives={**numbers(*range(10)), "LastEvaluatedKey": {"b": s("b"), "n": n(9)}}),
        ),
    ),
    Case(
        "an index has the items that have its key, and only what it projects",
        (
            leaf(1),
            leaf(2, owner=None),
            leaf(3, owner="v"),
            step(
                "Query",
                {
                    "TableName": TREE,
                    "IndexName": "owners",
                    "KeyConditionExpression": "#o = :o",
                    "ExpressionAttributeNames": {"#o": "owner"},
                    "ExpressionAttributeValues": {":o": s("w")},
                },
                gives={"Items": [{"b": s("b"), "n": n(1), "owner": s("w")}]},
            ),
            step("Scan", {"TableName": TREE, "IndexName": "owners"}, gives={"Count": 2}),
        ),
    ),
    Case(
        "an index cannot be read consistently",
        (
            step(
                "Scan",
                {"TableName": TREE, "IndexName": "owners", "ConsistentRead": True},
                code=BAD,
                says="Consistent reads are not supported on global secondary indexes",
            ),
            step(
                "Scan",
                {"TableName": TREE, "IndexName": "none"},
                code=BAD,
                says="does not have the specified index: none",
            ),
        ),
    ),
    Case(
        "an index's key has its type",
        (
            put(
                {"b": s("b"), "n": n(1), "owner": n(1)},
                table=TREE,
                code=BAD,
                says="Type mismatch for Index Key owner Expected: S Actual: N IndexName: owners",
            ),
        ),
    ),
    Case(
        "segments are numbered from nought",
        (
            step(
                "Scan",
                {"TableName": LIST, "Segment": 2, "TotalSegments": 2},
                code=BAD,
                says="Segment: 2 is not less than TotalSegments: 2",
            ),
            step("Scan", {"TableName": LIST, "Segment": 0}, code=BAD, says="TotalSegments parameter is required"),
            step("Scan", {"TableName": LIST, "Limit": 0}, code=BAD, says="greater than or equal to 1"),
        ),
    ),
)
