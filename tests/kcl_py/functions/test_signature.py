"""What functions may take."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest

import kcl_py
from kcl_py import Checkpointer, OwnedShard, ProcessorError, Record, RecordBatch
from kcl_py.functions.signature import signature_of


class Order(msgspec.Struct):
    """A payload."""

    id: int


class Plain:
    """No payload."""


async def by_name(payload, record, shard): ...  # type: ignore[no-untyped-def]
async def by_type(it: Order, one: Record, mine: OwnedShard) -> None: ...
async def type_before_name(record: dict[str, int]) -> None: ...
async def no_payload(record: Record) -> None: ...
async def with_defaults(payload: str, *, record: Record, tries: int = 3, log: Any = print) -> None: ...
async def batch(batch: RecordBatch) -> None: ...
async def whole(payloads: list[Order], batch: RecordBatch, checkpointer: Checkpointer, shard: OwnedShard) -> None: ...
async def batch_by_name(batch, payloads, checkpointer): ...  # type: ignore[no-untyped-def]


@pytest.mark.parametrize(
    ("function", "parameters", "takes_batches"),
    [
        (by_name, {"payload": "payload", "record": "record", "shard": "shard"}, False),
        (by_type, {"it": "payload", "one": "record", "mine": "shard"}, False),
        (type_before_name, {"record": "payload"}, False),
        (no_payload, {"record": "record"}, False),
        (with_defaults, {"payload": "payload", "record": "record"}, False),
        (batch, {"batch": "batch"}, True),
        (
            whole,
            {"payloads": "payload", "batch": "batch", "checkpointer": "checkpointer", "shard": "shard"},
            True,
        ),
        (batch_by_name, {"batch": "batch", "payloads": "payload", "checkpointer": "checkpointer"}, True),
    ],
)
def test_parameter_is_known_by_its_type_or_else_its_name(
    function: Any, parameters: dict[str, str], takes_batches: bool
) -> None:
    """Whatever the order."""
    signature = signature_of(function)
    assert (signature.parameters, signature.takes_batches) == (parameters, takes_batches)


def plain(batch: RecordBatch, checkpointer: Checkpointer) -> None: ...
def plain_generator(payload: bytes) -> Iterator[int]:
    yield 1


async def generator(payload: bytes) -> AsyncIterator[int]:
    yield 1


async def nothing() -> None: ...
async def only_shard(shard: OwnedShard) -> None: ...
async def two(first: int, second: str) -> None: ...
async def unknown(order): ...  # type: ignore[no-untyped-def]
async def both(record: Record, batch: RecordBatch) -> None: ...
async def lone_checkpointer(payload: bytes, checkpointer: Checkpointer) -> None: ...
async def no_list(payloads: Order, batch: RecordBatch) -> None: ...
async def variadic(*payload: bytes) -> None: ...
async def positional(payload: bytes, /) -> None: ...
async def custom(payload: Plain) -> None: ...
async def nowhere(payload: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (generator, "expected `async def` or `def`, found an async generator; take out its yield"),
        (plain_generator, "expected `async def` or `def`, found a generator; take out its yield"),
        (Plain, "expected `async def` or `def`, found type"),
        (
            plain,
            "expected checkpointer of `def` to be a kcl_py.executors.checkpointer.SyncCheckpointer, found Checkpointer",
        ),
        (nothing, "expected a payload, a record or a batch among the parameters, found none"),
        (only_shard, "expected a payload, a record or a batch among the parameters, found none"),
        (two, "expected one payload at most, found first and second"),
        (
            unknown,
            "expected parameter 'order' to be named record, batch, shard, checkpointer, payload or payloads, or to be "
            "annotated with the type of the payload, found neither",
        ),
        (both, "expected a record or a batch, found both; take out one"),
        (
            lone_checkpointer,
            "expected a batch beside the checkpointer, found none; only batches are checkpointed by hand",
        ),
        (no_list, "expected payloads to be a list beside a batch, such as list[Order], found it is none"),
        (variadic, "expected parameters that are passed by name, found '*payload'"),
        (positional, "expected parameters that are passed by name, found 'payload'"),
        (
            custom,
            "expected payload to be of a type that a payload can be decoded to, "
            "found Plain is none that msgspec or pydantic can make",
        ),
        (
            nowhere,
            "expected annotations that can be read when the module is imported, found NameError: name 'Nowhere' is not "
            "defined; define what they name above, and import it outside of `if TYPE_CHECKING`",
        ),
    ],
)
def test_function_that_cannot_be_called_is_one_error_when_it_is_decorated(function: Any, fault: str) -> None:
    """So ``kcl check`` tells of it, which imports the module."""
    with pytest.raises(ProcessorError) as caught:
        kcl_py.processor(function)
    assert str(caught.value) == f"cannot use processor '{__name__}:{function.__qualname__}': {fault}"
