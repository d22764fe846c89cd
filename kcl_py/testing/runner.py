"""Run a processor on given records, and see what it does."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar

from kcl_py.acceptance import check_processor
from kcl_py.config import Config, Section
from kcl_py.processor import RecordProcessor
from kcl_py.testing.entry import Entry, as_bytes, check_several
from kcl_py.testing.life import Life
from kcl_py.testing.recorder import Incident
from kcl_py.testing.run import Run, covers
from kcl_py.testing.stream import FakeStream

P = TypeVar("P", bound=RecordProcessor)

TIMEOUT_S = 10.0


async def run_processor(
    processor: type[P],
    records: Iterable[str | bytes | Entry] = (),
    *,
    stream: FakeStream | None = None,
    end_shards: bool = False,
    batch_size: int | None = None,
    checkpoint: Literal["auto", "manual"] | None = None,
    retries: int | None = None,
    options: Mapping[str, Any] | None = None,
    stop_at: str | bytes | None = None,
    lose_lease_at: str | bytes | None = None,
    fail_at: str | bytes | None = None,
    crash_at: str | bytes | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Run[P]:
    """Run a worker with ``processor`` until all records are finished, then stop it in order, and return what it did.

    The worker is the real one: leases, retries, checkpoints and hooks are as in ``kcl run``. It takes no real
    time but what your hooks take, since the clock moves by itself whenever everything waits.

    The last four options each name a record by its payload; what they say happens once, at the batch that holds it.
    To see what comes again after, run another worker on what this one has left: ``stream=run.stream``.

    Args:
        processor: your class; it is made and called as it is.
        records: payloads, or what ``record`` describes, put before the worker starts.
        stream: where they are put; None for a new one of one shard.
        end_shards: whether all shards are closed after the records, so that ``shard_ended`` is called.
        batch_size: most records of a batch; the option ``delivery.batch.max_records``.
        checkpoint: the option ``checkpoint.mode``.
        retries: the option ``delivery.retries``.
        options: all other options, as in the YAML file; those above go over them.
        stop_at: the worker is asked to stop just before this batch; it finishes it and stops, and so does the run.
        lose_lease_at: just before this batch another worker takes the lease. Your processor is told when the worker
            finds out, and the run ends.
        fail_at: when your hook has returned from this batch it counts as failed, and the batch comes again.
        crash_at: when your hook has returned from this batch the worker dies: nothing more is stored, no hook is
            called. What your other hooks are at is cancelled.
        timeout_s: the longest the run may take, in seconds of real time.

    Raises:
        RunTimeoutError: a hook did not return in time, or the work cannot come to its end; the sentence says which.
        ValueError: no record that is still to be finished has the payload that an option names.
        ProcessorError: the class cannot be used as a processor.
        ConfigError: an option is wrong.
        KclError: the worker could not start.
    """
    _check_types(records, stream, options, timeout_s)
    named = {
        Incident.STOP: stop_at,
        Incident.LOSE_LEASE: lose_lease_at,
        Incident.FAIL: fail_at,
        Incident.CRASH: crash_at,
    }
    script = {each: as_bytes(at, f"use {_option(each)}") for each, at in named.items() if at is not None}
    own = {
        "delivery": {"batch": {"max_records": batch_size}, "retries": retries},
        "checkpoint": {"mode": checkpoint},
    }
    stream = FakeStream() if stream is None else stream
    config = stream.config(**_merged(options or {}, own))
    check_processor(processor, executor=config.delivery.executor)
    stream.put(*records)
    if end_shards:
        stream.end()
    _check_script(script, stream, config)
    return await Life(stream, processor, config, script=script, timeout_s=timeout_s).live()


def _check_types(records: object, stream: object, options: object, timeout_s: object) -> None:
    """Check what Python would only stumble over later, or take for something else."""
    check_several(records, "put records")
    if not isinstance(stream, FakeStream | None):
        hint = "; give its stream" if isinstance(stream, Run) else ""
        raise TypeError(f"cannot run on stream: expected a FakeStream, found {type(stream).__name__}{hint}")
    if not isinstance(options, Mapping | None):
        raise TypeError(f"cannot use options: expected a mapping as in the YAML file, found {type(options).__name__}")
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)) or not timeout_s > 0:
        raise ValueError(f"cannot use timeout_s: expected a positive number of seconds, found {timeout_s!r}")


def _check_script(script: Mapping[Incident, bytes], stream: FakeStream, config: Config) -> None:
    rows = stream.service.leases(config).rows()
    left = [
        record.data
        for shard_id in stream.shards
        for record in stream.records(shard_id)
        if shard_id not in rows or not covers(rows[shard_id].checkpoint, record)
    ]
    for incident, at in script.items():
        if at not in left:
            raise ValueError(
                f"cannot use {_option(incident)}: expected the payload of one of the {len(left)} records that "
                "are not finished yet, found another"
            )


def _option(incident: Incident) -> str:
    return f"{incident.name.lower()}_at"


def _merged(options: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Put what is set in ``own`` over ``options``, section by section."""
    merged = dict(options)
    for key, value in own.items():
        if isinstance(value, Mapping):
            given = options.get(key) or {}
            given = given.model_dump(exclude_unset=True) if isinstance(given, Section) else given
            merged[key] = _merged(given, value) if isinstance(given, Mapping) else given
        elif value is not None:
            merged[key] = value
    return merged
