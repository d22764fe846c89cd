"""``@processor``: a RecordProcessor made of a function."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast, overload

from kcl_py.acceptance import check_processor, path_of
from kcl_py.errors import ProcessorError
from kcl_py.functions.batch_function import BatchFunction, SyncBatchFunction
from kcl_py.functions.record_function import RecordFunction, SyncRecordFunction
from kcl_py.functions.signature import signature_of
from kcl_py.middleware import Listed
from kcl_py.outcomes import RecordOutcome, Verdict
from kcl_py.processor import RecordProcessor
from kcl_py.records import Record

Outcome = RecordOutcome | Mapping[Record, Verdict]
Function = Callable[..., Awaitable[Outcome] | Outcome]


@overload
def processor(function: Function, /) -> type[RecordProcessor]: ...


@overload
def processor(*, middlewares: Sequence[Listed] = ()) -> Callable[[Function], type[RecordProcessor]]: ...


def processor(
    function: Function | None = None, /, *, middlewares: Sequence[Listed] = ()
) -> type[RecordProcessor] | Callable[[Function], type[RecordProcessor]]:
    """Make a processor of a function: of ``handle``, what ``module:handle`` names and ``Stream`` takes.

    It is an ``async def``; with ``delivery.executor`` it may be a ``def``, and then runs off the event loop.

    Its parameters are passed by name. Each is known by its annotation, or by its name where it has none:

    - ``record: Record`` and ``shard: OwnedShard``;
    - the payload, of any other type, decoded as that says: ``bytes`` (also without annotation) as it was put, ``str``
      as UTF-8, models of pydantic and what msgspec knows (``dict``, ``Any``, ``Struct``, dataclass, ``TypedDict``)
      from JSON;
    - ``batch: RecordBatch`` makes it a function that is called for each batch, else it is for each record; beside it
      the payloads are a ``list``, and there may be ``checkpointer: Checkpointer``, for a ``def``
      ``checkpointer: SyncCheckpointer``.

    One that has a default and is none of these is left alone. What the function returns or raises means what it means
    for ``RecordProcessor.process``, or ``process_records``. A payload that cannot be decoded has its record rejected;
    the function is not called for it, and gets the others of its batch.

    Args:
        function: the function.
        middlewares: as the attribute of that name of a RecordProcessor.

    Raises:
        ProcessorError: the function has other parameters, or is no function.
    """
    if function is None:
        return lambda decorated: _made(decorated, middlewares)
    return _made(function, middlewares)


def _made(function: Function, middlewares: Sequence[Listed]) -> type[RecordProcessor]:
    try:
        signature = signature_of(function)
    except ValueError as fault:
        raise ProcessorError(f"cannot use processor {path_of(function)!r}: {fault}") from fault
    name = function.__name__
    attributes: dict[str, Any] = {
        "__module__": function.__module__,
        "__qualname__": function.__qualname__,
        "__doc__": function.__doc__,
        "middlewares": middlewares,
        "_kcl_py_function": staticmethod(function),
        "signature": signature,
    }
    kind = _KINDS[signature.takes_batches, signature.is_async]
    made = cast("type[RecordProcessor]", type(name, (kind,), attributes))
    return check_processor(made, executor=None if signature.is_async else "thread")


_KINDS: Mapping[tuple[bool, bool], type[RecordProcessor]] = {
    (False, True): RecordFunction,
    (False, False): SyncRecordFunction,
    (True, True): BatchFunction,
    (True, False): SyncBatchFunction,
}
"""By whether it takes batches, and whether it is an ``async def``."""
