"""A processor with its middlewares around it: a subclass of the user's class, so that nobody else knows of them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, TypeVar, cast

from kcl_py.batchers import Batched, unknown_batcher
from kcl_py.delivery.retry import brief
from kcl_py.errors import ProcessorError
from kcl_py.events import Events
from kcl_py.middleware import Listed, Middleware
from kcl_py.outcomes import BatchOutcome, RecordOutcome, ToBatch
from kcl_py.processor import Checkpointer, OwnedShard, RecordProcessor, has_lanes
from kcl_py.records import Record, RecordBatch

P = TypeVar("P", bound=RecordProcessor)
T = TypeVar("T")


def surrounded(processor: type[P]) -> type[P]:
    """Return a subclass of ``processor`` that calls its middlewares: in their order before, and in reverse after.

    Without any it is ``processor`` itself.
    """
    if not processor.middlewares:
        return processor
    told: set[tuple[str, str, str]] = set()

    def heard(outcome: RecordOutcome) -> RecordOutcome | ProcessorError:
        """To give a record to a batcher that does not exist is a failure."""
        fault = unknown_batcher(outcome, processor.batchers) if isinstance(outcome, ToBatch) else None
        return fault or outcome

    class Surrounded(RecordProcessor):
        """The methods that go over those of the user's class."""

        _kcl_py_chain: "Chain"

        async def initialize(self, shard: OwnedShard) -> None:
            self._kcl_py_chain = Chain(processor.middlewares, told)
            self._kcl_py_chain.call("initialize", shard)
            await processor.initialize(cast("P", self), shard)

        async def process(self, record: Record) -> RecordOutcome:
            work = partial(processor.process, cast("P", self), record)
            return await self._kcl_py_chain.around("record", record, work, heard)

        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> BatchOutcome:
            seen = replace(batch, records=list(batch.records))  # the processor may change its own
            return await self._kcl_py_chain.around(
                "batch", seen, lambda: processor.process_records(cast("P", self), batch, checkpointer)
            )

        async def handle_batch(self, batch: Batched) -> BatchOutcome:
            seen = replace(batch, items=list(batch.items))
            return await self._kcl_py_chain.around(
                "batched", seen, lambda: processor.handle_batch(cast("P", self), batch)
            )

    forms = ["process" if has_lanes(processor) else "process_records"] + ["handle_batch"] * bool(processor.batchers)
    over = {name: vars(Surrounded)[name] for name in ("initialize", *forms)}
    named = {name: getattr(processor, name) for name in ("__module__", "__qualname__", "__doc__")}
    return cast("type[P]", type(processor.__name__, (processor,), {**over, **named}))


class Chain:
    """The middlewares of one ownership.

    Args:
        listed: as in ``RecordProcessor.middlewares``.
        told: the kinds of failure that were logged, over all ownerships.
    """

    def __init__(self, listed: Sequence[Listed], told: set[tuple[str, str, str]]) -> None:
        self._told = told
        made = [each if isinstance(each, Middleware) else self._make(each) for each in listed]
        self._middlewares = [each for each in made if each is not None]

    async def around(
        self, what: str, item: Any, work: Callable[[], Awaitable[T]], heard: Callable[[T], object] = lambda found: found
    ) -> T:
        """Call the middlewares before and after ``work``, and let them hear what ``heard`` makes of it."""
        self.call(f"before_{what}", item)
        outcome: object = None
        began_at = perf_counter()
        try:
            result = await work()
            outcome = heard(result)
        except BaseException as error:
            outcome = error
            raise
        finally:
            self.call(f"after_{what}", item, outcome, perf_counter() - began_at, is_reversed=True)
        return result

    def call(self, method: str, *arguments: object, is_reversed: bool = False) -> None:
        """Call a method of each, and contain what it raises."""
        for middleware in reversed(self._middlewares) if is_reversed else self._middlewares:
            try:
                getattr(middleware, method)(*arguments)
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as error:  # nothing is awaited in it, so no cancellation is one
                self._tell(type(middleware).__name__, method, error)

    def _make(self, make: Callable[[], Middleware]) -> Middleware | None:
        try:
            return make()
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            self._tell(getattr(make, "__name__", type(make).__name__), "__init__", error)
            return None

    def _tell(self, name: str, method: str, error: BaseException) -> None:
        kind = (name, method, type(error).__name__)
        if kind not in self._told:
            self._told.add(kind)
            Events().error("kcl_py.middleware.failed", middleware=name, method=method, error=brief(error))
