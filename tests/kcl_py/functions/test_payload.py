"""Payloads by their annotation, and what is said of those that do not fit."""

import enum
import uuid
from dataclasses import dataclass
from datetime import datetime
from inspect import Parameter
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from kcl_py import Reject
from kcl_py.functions.payload import decoder, name_of

SECRET = "s3cret"


class Colour(enum.Enum):
    """A value of few."""

    RED = "red"


class Order(msgspec.Struct, forbid_unknown_fields=True):
    """Made by msgspec, and checked by itself."""

    id: int
    colour: Colour = Colour.RED
    key: uuid.UUID | None = None
    at: datetime | None = None
    parts: dict[str, int] = {}
    lines: list["Line"] = []

    def __post_init__(self) -> None:
        if self.id < 0:
            raise ValueError(f"Expected {SECRET}")


class Line(msgspec.Struct):
    """A part of an order."""

    price: Annotated[int, msgspec.Meta(ge=0)]


@dataclass
class Point:
    """A dataclass."""

    x: int


class Named(TypedDict):
    """A dict."""

    name: str


class Model(pydantic.BaseModel):
    """Made by pydantic, and checked by itself."""

    model_config = pydantic.ConfigDict(extra="forbid")

    id: int
    kind: Literal["a", "b"] = "a"
    key: uuid.UUID | None = None
    parts: dict[str, int] = {}
    size: int = pydantic.Field(0, validation_alias="Size")

    @pydantic.field_validator("id")
    @classmethod
    def _check(cls, value: int) -> int:
        if value < 0:
            raise ValueError(SECRET)
        if value > 99:
            raise KeyError(SECRET)
        return value


class Cat(pydantic.BaseModel):
    """One of two."""

    kind: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):
    """The other."""

    kind: Literal["dog"]


Pet = Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]


@pydantic.dataclasses.dataclass
class Circle:
    """A dataclass of pydantic's."""

    radius: Annotated[int, pydantic.Field(gt=0)]


@pytest.mark.parametrize(
    ("wanted", "data", "payload"),
    [
        (Parameter.empty, b"\xff", b"\xff"),
        (bytes, b"\xff", b"\xff"),
        (str, "é".encode(), "é"),
        (str, b'"a"', '"a"'),
        (Any, b"[1]", [1]),
        (dict, b'{"a": 1}', {"a": 1}),
        (list, b"[1]", [1]),
        (dict[str, float], b'{"a": 1}', {"a": 1.0}),
        (int | None, b"null", None),
        (Order, b'{"id": 1}', Order(1)),
        (list[Order], b'[{"id": 1}]', [Order(1)]),
        (Point, b'{"x": 1}', Point(1)),
        (Named, b'{"name": "a"}', {"name": "a"}),
        (Model, b'{"id": "1", "Size": 2}', Model.model_validate({"id": 1, "Size": 2})),
        (list[Model], b'[{"id": 1}]', [Model.model_validate({"id": 1})]),
        (Pet, b'{"kind": "dog"}', Dog(kind="dog")),
        (Circle, b'{"radius": 1}', Circle(1)),
    ],
    ids=str,
)
def test_payload_is_what_the_annotation_says(wanted: Any, data: bytes, payload: object) -> None:
    """Bytes and text as they are, all else from JSON."""
    assert decoder(wanted)(data) == payload


@pytest.mark.parametrize(
    ("wanted", "data", "said"),
    [
        (str, b"a\xff", "expected UTF-8, found other bytes (byte 1)"),
        (dict, b"{", "expected JSON, found its end too early"),
        (dict, b"{x", "expected JSON, found it malformed: object keys must be strings (byte 1)"),
        (dict, b"[]", "expected object, found array"),
        (Order, b'{"id": "s3cret"}', "at $.id: expected int, found str"),
        (Order, b"{}", "expected field id, found none"),
        (Order, b'{"id": 1, "s3cret": 2}', "expected no field that is unknown, found one"),
        (Order, b'{"id": 1, "colour": "s3cret"}', "at $.colour: expected a value of its type, found another"),
        (Order, b'{"id": 1, "key": "s3cret"}', "at $.key: expected UUID, found something else"),
        (Order, b'{"id": 1, "at": "s3cret"}', "at $.at: expected RFC3339 encoded datetime, found something else"),
        (Order, b'{"id": 1, "parts": {"s3cret": "s3cret"}}', "at $.parts[...]: expected int, found str"),
        (Order, b'{"id": 1, "lines": [{"price": -5}]}', "at $.lines[0].price: expected int >= 0"),
        (Order, b'{"id": -1}', "expected what its __post_init__ accepts, found it raise ValueError"),
        (Order, b'{"id": 1, "s\xffs3cret": 1}', "expected UTF-8, found other bytes"),
        (Any, b"[" * 100_000, "expected less nesting"),
        (Model, b"{", "expected JSON, found it malformed: EOF while parsing an object at line 1 column 1"),
        (Model, b"{}", "at $.id: expected a field, found none"),
        (
            Model,
            b'{"id": "s3cret", "kind": "s3cret"}',
            "at $.id: expected a valid integer, unable to parse string as an integer (and 1 more)",
        ),
        (Model, b'{"id": 1, "kind": "s3cret"}', "at $.kind: expected 'a' or 'b'"),
        (Model, b'{"id": 1, "Size": "s3cret"}', "at $.Size: expected a valid integer, unable to parse string as an "),
        (Model, b'{"id": 1, "s3cret": 2}', "at $[...]: expected no field that is unknown, found one"),
        (Model, b'{"id": 1, "key": "s3cret"}', "at $.key: expected a value that its type accepts (uuid_parsing)"),
        (Model, b'{"id": 1, "parts": {"s3cret": []}}', "at $.parts[...]: expected a valid integer"),
        (Model, b'{"id": -1}', "at $.id: expected a value that its type accepts (value_error)"),
        (Model, b'{"id": 100}', "expected what its validators accept, found one raise KeyError"),
        (Pet, b'{"kind": "s3cret"}', "expected a value that its type accepts (union_tag_invalid)"),
        (Pet, b'{"kind": "cat", "lives": "s3cret"}', "at $[...].lives: expected a valid integer"),
        (Circle, b'{"radius": -5}', "at $.radius: expected greater than 0"),
    ],
)
def test_reason_tells_the_place_and_what_was_expected_and_nothing_of_the_payload(
    wanted: Any, data: bytes, said: str
) -> None:
    """It goes into logs, lease rows and dead letters."""
    answer = decoder(wanted)(data)
    assert isinstance(answer, Reject)
    assert answer.reason.startswith(f"cannot decode payload as {name_of(wanted)}: {said}")
    assert SECRET not in answer.reason


def test_type_is_named_as_its_user_wrote_it() -> None:
    """Without modules, and without what is annotated to it."""
    assert [name_of(each) for each in (dict, list[Order], Order | None, Pet, Any)] == [
        "dict",
        "list[Order]",
        "Order | None",
        "Cat | Dog",
        "Any",
    ]


@pytest.mark.parametrize("wanted", [object, complex, list[complex], type[int]], ids=str)
def test_type_that_nobody_can_make_is_refused_at_once(wanted: Any) -> None:
    """And not with the first record."""
    with pytest.raises(TypeError, match="none that msgspec or pydantic can make"):
        decoder(wanted)
