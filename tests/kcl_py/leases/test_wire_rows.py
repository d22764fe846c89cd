"""Reading rows in C gives what reading them in Python gives: the same rows, the same sentences."""

from collections.abc import Callable
from dataclasses import asdict, fields, replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcl_py.leases.attributes import Attribute, decode_item, encode_item
from kcl_py.leases.items import item_from_row, row_from_item, scan_from_items
from kcl_py.leases.row import Halt, Later, LeaseRow, MalformedRowError, Native, Paused, Pending, Request
from kcl_py.leases.wire_rows import row_from_wire, scan_from_wire
from kcl_py.records import SequenceNumber
from tests.contract.lease_commits import PENDING
from tests.contract.lease_rows import BY_HAND, CASES, JAVA, a_row, stored

ODD: tuple[Attribute, ...] = (
    {"S": ""},
    {"S": "x"},
    {"S": "12"},
    {"S": "LEASE"},
    {"S": "9" * 5000},
    {"N": "1"},
    {"N": "-0"},
    {"N": "1.5"},
    {"N": "1E+5"},
    {"N": "9" * 38},
    {"NULL": True},
    {"BOOL": True},
    {"B": b"x"},
    {"SS": ["b", "a"]},
    {"NS": ["1"]},
    {"L": [{"S": "a"}]},
    {"L": []},
    {"M": {}},
    {"M": {"error": {"S": "E"}}},
    {"M": {"token": {"N": "1"}}},
    {"M": {"at": {"N": "5"}, "of": {"S": "stream"}}},
    {"M": {"at": {"S": "soon"}, "why": {"N": "1"}}},
)
FULL = a_row(children=("c",), checkpoint_owner="o/1", pending=PENDING)
NAMES = (*encode_item(item_from_row(FULL)), "entityType", "somebodyElses")
FIELDS = (
    "token",
    "owner",
    "taken",
    "why",
    "stream",
    "start",
    "delivered",
    "clean",
    "held_by",
    "later",
    "lag_ms",
    "lag_at",
    "halted",
    "fault",
    "request",
    "transaction",
    "paused",
    "quiet",
)

_odd = st.sampled_from(ODD)
_changes = st.dictionaries(st.sampled_from(NAMES), st.none() | _odd, max_size=3)
_fields = st.dictionaries(st.sampled_from(FIELDS), st.none() | _odd, max_size=2)


def _with(item: Any, changes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**item, **changes}.items() if value is not None}


@given(_changes, _fields)
def test_odd_items_are_read_as_ever(changes: dict[str, Any], changed: dict[str, Any]) -> None:
    """Whatever stands in an attribute of a row, both ways give the same row or refuse it with the same sentence."""
    item = encode_item(stored(a_row()))
    item["native"] = {"M": _with(item["native"]["M"], changed)}
    item = _with(item, changes)
    assert scan_from_wire([item]) == scan_from_wire([_json(item)]) == scan_from_items([decode_item(item)])
    expected = _outcome(row_from_item, decode_item(item))
    assert _outcome(row_from_wire, item) == _outcome(row_from_wire, _json(item)) == expected


def _json(item: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(item))


def _outcome(read: Callable[[Any], LeaseRow], item: Any) -> LeaseRow | str:
    try:
        return read(item)
    except MalformedRowError as error:
        return str(error)


def test_every_field_is_read_in_c() -> None:
    """A field that is added to the row is not lost on the way in."""
    values: dict[str, Any] = {
        "halted": Halt("E", "1"),
        "later": (Later("7", 8),),
        "request": Request("r", "seek", "7"),
        "paused": Paused(7, "maintenance", is_of_stream=True),
        "str | None": "x",
        "int | None": 7,
    }
    native = Native(**{one.name: values.get(one.name, values.get(str(one.type))) for one in fields(Native)})  # type: ignore[arg-type]
    assert None not in [getattr(native, one.name) for one in fields(Native)]
    row = a_row(checkpoint_owner="o/1", sub=3, children=("c",), pending=Pending(SequenceNumber(9, 1), b"x"))
    assert row_from_wire(encode_item(item_from_row(replace(row, native=native)))).native == native
    assert {name for name, value in asdict(row).items() if not value} == set()


def test_every_row_of_the_protocol_is_read_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """What our own writes leave, and what the Java client leaves, needs no second reading."""
    monkeypatch.setattr("kcl_py.leases.wire_rows.row_from_item", None)
    for row in (JAVA, *(case.row for case in (*CASES, *BY_HAND)), *(case.after for case in (*CASES, *BY_HAND))):
        item = encode_item(stored(row))
        assert row_from_wire(item) == row_from_wire(_json(item)) == row


def test_what_many_rows_share_is_in_memory_once() -> None:
    """Each worker knows every row of a table."""
    first, second = (row_from_wire(_json(encode_item(item_from_row(a_row(counter=n))))) for n in range(2))
    assert first.owner is second.owner is not None
    assert first.native.stream is second.native.stream is not None


@pytest.mark.parametrize("text", ["-5000", "1E+125", "NaN", "Infinity", "1E+400"])
def test_rate_that_no_shard_has_tells_nothing(text: str) -> None:
    """Plans could not count with it, and the holder would write no number back, which DynamoDB refuses."""
    item = encode_item(item_from_row(a_row(throughput_kbps=7.5)))
    assert row_from_wire(item).throughput_kbps == 7.5
    odd = {**item, "throughputKBps": {"N": text}}
    assert row_from_wire(odd).throughput_kbps is None
    assert row_from_item(decode_item(odd)).throughput_kbps is None
