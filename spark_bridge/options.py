"""The options of ``format("kcl")``: names, defaults and what their values must be.

Spark hands options over as text and lower-cases their names; case and ``_`` do not matter here. What the client shares
with the bridge (stream, start, access to AWS) is checked by ``kcl_py.Config``. No Spark, no I/O, no secrets.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Self

from kcl_py.config import Config
from kcl_py.errors import ConfigError
from kcl_py.faults import describe, did_you_mean
from kcl_py.sources.source import TRIM_HORIZON, Position

PROCESSOR = "spark_bridge.tree:SpoolingProcessor"
BATCH_RECORDS = 10_000
"""Most records of a segment; one read of Kinesis returns no more. Source: the GetRecords API reference."""
GRACE_S = 2.0
"""The tree has nothing to finish when the query stops: Spark's checkpoint says where it was."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one query."""

    stream: str
    """Name or ARN."""
    start: Position = TRIM_HORIZON
    """Where a query without a checkpoint begins."""
    region: str | None = None
    endpoint: str | None = None
    profile: str | None = None
    role: str | None = None
    max_rows_per_batch: int = 100_000
    max_buffered_bytes: int = 64 * 1024 * 1024
    """Most bytes spooled beyond what Spark has finished."""
    max_partitions: int = os.cpu_count() or 1
    """Most tasks of one batch; default: the processors of the driver's machine."""
    spool_dir: str | None = None
    """Folder for spooled segments; None: one in the temporary folder."""
    fail_on_data_loss: bool = True
    """Whether a batch fails whose records have aged out of the stream; else it goes on with those that are left."""

    @classmethod
    def parse(cls, raw: Mapping[str, str]) -> Self:
        """Read the options given to Spark.

        Raises:
            ConfigError: with one fault for each option that is unknown, missing or wrong.
        """
        values: dict[str, Any] = {}
        faults: list[str] = []
        for name, text in raw.items():
            option = _BY_KEY.get(_key(name))
            if option is None:
                faults.append(_unknown(name))
                continue
            try:
                values[option.field] = option.convert(text)
            except (KeyError, ValueError):
                faults.append(f"option {option.name}: expected {option.expected}, found {describe(text)}")
        try:
            shared = _config(values)
        except ConfigError as error:
            raise ConfigError(*map(_renamed, error.faults), *faults) from None
        if faults:
            raise ConfigError(*faults)
        return cls(**values | {"start": shared.start})

    def config(self) -> Config:
        """Return the configuration of the tree that reads for Spark."""
        return _config(
            {name: getattr(self, name) for name in ("stream", *_AWS)},
            grace_s=GRACE_S,
            fetch={"budget_bytes": self.max_buffered_bytes},
            delivery={"batch": {"max_records": min(BATCH_RECORDS, self.max_rows_per_batch)}},
        )


@dataclass(frozen=True, slots=True)
class _Option:
    name: str
    field: str
    convert: Callable[[str], Any] = str
    expected: str = "text"


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _bool(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _folder(text: str) -> str:
    if not text.strip():
        raise ValueError(text)
    return os.path.abspath(text)


_COUNT = "a whole number of at least 1"
_AWS = ("region", "endpoint", "profile", "role")
_BY_KEY = {
    option.name.lower(): option
    for option in (
        _Option("stream", "stream"),
        _Option("start", "start"),
        *(_Option(name, name) for name in _AWS),
        _Option("maxRowsPerBatch", "max_rows_per_batch", _count, _COUNT),
        _Option("maxBufferedBytes", "max_buffered_bytes", _count, _COUNT),
        _Option("maxPartitions", "max_partitions", _count, _COUNT),
        _Option("spoolDir", "spool_dir", _folder, "a folder"),
        _Option("failOnDataLoss", "fail_on_data_loss", _bool, "true or false"),
    )
}


def _key(name: str) -> str:
    return name.lower().replace("_", "")


def _unknown(name: str) -> str:
    near = get_close_matches(_key(name), _BY_KEY, n=1)
    known = did_you_mean(_BY_KEY[near[0]].name if near else None)
    return f"option {name}: expected one of {', '.join(option.name for option in _BY_KEY.values())}" + known


def _config(values: Mapping[str, Any], **more: Any) -> Config:
    shared: dict[str, Any] = {name: values[name] for name in ("stream", "start") if name in values}
    shared["aws"] = {name: values[name] for name in _AWS if name in values}
    shared["leases"] = {"store": "memory"}
    return Config(app="spark", processor=PROCESSOR, **shared, **more)


def _renamed(fault: str) -> str:
    """A fault of ``Config`` under the name that the option has here."""
    return f"option {fault.removeprefix('aws.')}"
