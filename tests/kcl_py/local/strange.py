"""Requests at random in the shapes of AWS's API, some right, most wrong somewhere: what a fuzzer sends."""

import json
from random import Random
from typing import Any

from botocore.loaders import Loader
from botocore.model import ServiceModel

STREAM_ARN = "arn:aws:kinesis:us-east-1:000000000000:stream/s"
TABLE_ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/tab"
_WRONG: list[Any] = [
    *(None, True, False, -1, 0, 1, 2.5, 10**30, 2**63, -(2**63), 1e308, -1e308, 1e-320, -0.0),
    *("", "x", "\x00", "é" * 300, "😀" * 100, "s\n", "5\n", " 1", "-5", "1e5", "NaN", "A" * 100_000),
    *([], {}, [[]], {"a": 1}, [None], {"": ""}),
]
_TEXTS = [
    *("s", "t", "tab", "a.b", "..", "c", "k", "o", "#k", ":v", "v", "n"),
    *("shardId-000000000000", "shardId-000000000001", "shardId-000000000009", "shardId-٣", "-"),
    *(STREAM_ARN, STREAM_ARN + "\n", STREAM_ARN + "/consumer/c:1700000000", TABLE_ARN),
]
_EXPRESSIONS = [
    *("k = :v", "#k = :v", "attribute_exists(k)", "size(v) > :v", "begins_with(o, :v)", "contains(v, :v)"),
    *("k = :v AND o BETWEEN :v AND :v", "k IN (:v, :v)", "NOT (k = :v)", "attribute_type(v, :v)", "k", "k, n, v[0].a"),
    *("SET n = :v", "SET n = n + :v, v = if_not_exists(v, :v)", "SET v.a.b = list_append(v, :v)", "SET v[0] = :v"),
    *("REMOVE v[0], n", "ADD n :v", "DELETE v :v", "SET", "SET n = :missing", "((((", "\x00", "ß = :v", "a" * 5000),
    *("SET v[" + "9" * 400 + "] = :v", "(" * 500 + "k = :v" + ")" * 500, "NOT " * 400 + "k = :v", "v" + ".a" * 200),
]
_NUMBERS = [
    "1",
    "-0",
    "1e125",
    "1E-130",
    "9" * 38,
    "9" * 39,
    "1e126",
    ".5",
    "1e999999999",
    "abc",
    "",
    "٣",
    "0x1",
    "NaN",
]
_VALUES: dict[str, list[Any]] = {
    "S": ["a", "", "é\x00"],
    "N": _NUMBERS,
    "B": ["eA==", "", "x"],
    "SS": [["a"], ["a", "b"], [], ["a", "a"], [""]],
    "NS": [["1"], ["1", "1.0"], ["x"], []],
    "BS": [["eA=="], ["eA==", "eA=="]],
    "BOOL": [True, False],
    "NULL": [True, False],
    "M": [{}, {"a": {"N": "1"}}, {"": {"L": [{"S": ""}]}}],
    "L": [[], [{"S": "a"}, {"NULL": True}], [{}]],
    "Q": ["unknown"],
}


class Stranger:
    """Makes requests for ``service``, and learns what to ask from the answers.

    Args:
        service: botocore's name of it.
        random: the chance.
        now_s: the time around which timestamps lie.
    """

    def __init__(self, service: str, random: Random, now_s: float) -> None:
        self._api = ServiceModel(Loader().load_service_model(service, "service-2"), service)
        self._random, self._now_s = random, now_s
        self._learnt = [STREAM_ARN, TABLE_ARN]

    def body(self, operation: str) -> bytes:
        """Return the body of a request; now and then it is cut short."""
        body = json.dumps(self._value(self._api.operation_model(operation).input_shape, "", 0)).encode()
        return body[: self._random.randrange(len(body) + 1)] if self._random.random() < 0.02 else body

    def learn(self, answer: Any) -> None:
        """Remember tokens, numbers and ARNs of an answer."""
        if isinstance(answer, dict):
            for name, value in answer.items():
                if isinstance(value, str) and name.endswith(("Token", "Iterator", "Number", "ARN")):
                    self._learnt = [*self._learnt[-100:], value, value[:-1]]
                self.learn(value)
        elif isinstance(answer, list):
            for one in answer[:5]:
                self.learn(one)

    def _value(self, shape: Any, name: str, level: int) -> Any:
        if self._random.random() < (0.02 if level else 0.005):
            return self._random.choice(_WRONG)
        match shape.type_name:
            case "structure":
                return self._structure(shape, level)
            case "list":
                return [self._value(shape.member, name, level + 1) for _ in range(self._random.choice([0, 1, 1, 2, 3]))]
            case "map":
                return self._map(shape, name, level)
            case "string":
                return self._text(shape, name)
        return self._random.choice(self._plain(shape.type_name))

    def _structure(self, shape: Any, level: int) -> dict[str, Any]:
        if shape.name == "AttributeValue":
            return self._attribute()
        chances = {name: 0.99 if name in shape.required_members else 0.2 for name in shape.members}
        chosen = [name for name, chance in chances.items() if self._random.random() < chance]
        found = {name: self._value(shape.members[name], name, level + 1) for name in chosen}
        return found | ({"Unknown": self._random.choice(_WRONG)} if self._random.random() < 0.03 else {})

    def _map(self, shape: Any, name: str, level: int) -> dict[str, Any]:
        if name == "ExpressionAttributeValues":
            return {":v": self._attribute()}
        if name in ("Key", "Item") and self._random.random() < 0.8:
            more = {"o": {"S": "x"}, self._random.choice("vn"): self._attribute()} if name == "Item" else {}
            return {"k": {"S": self._random.choice("abc")}, **more}
        key = "tab" if name == "RequestItems" else self._random.choice(_TEXTS)
        return {key: self._value(shape.value, name, level + 1)}

    def _attribute(self) -> dict[str, Any]:
        kind = self._random.choice([*_VALUES])
        more = {"S": "two"} if self._random.random() < 0.02 else {}
        return {kind: self._random.choice(_VALUES[kind]), **more}

    def _text(self, shape: Any, name: str) -> str:
        if shape.enum and self._random.random() < 0.9:
            return str(self._random.choice(shape.enum))
        if name.endswith("Expression"):
            return self._random.choice(_EXPRESSIONS)
        if name in ("StreamName", "TableName") and self._random.random() < 0.9:
            return name[0].lower() if name == "StreamName" else "tab"
        if name.endswith("HashKey"):
            return self._random.choice(["0", "5", str(2**128), str(self._random.randrange(2**128))])
        return self._random.choice(_TEXTS if self._random.random() < 0.5 else self._learnt)

    def _plain(self, kind: str) -> list[Any]:
        """Return some values of a type."""
        if kind in ("integer", "long"):
            return [0, 1, 2, 5, 24, 48, 100, 1024, 10_000, 10**6, -1, 2**31, 2**40]
        if kind == "timestamp":
            return [0, -1, self._now_s, self._now_s - 1, self._now_s + 5, 1e15, -1e15, 1e308, -1e308]
        others: dict[str, list[Any]] = {"boolean": [True, False], "blob": ["", "AAAA", "e", "****", "A" * 1000]}
        return others.get(kind, [0, 1.5, 1e300])
