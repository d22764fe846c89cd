"""A consumer runtime for Kinesis streams in pure Python.

What runs a worker (``Stream`` and what it takes and returns) is imported when it is first asked for, so that a
processor's module loads fast.
"""

from typing import TYPE_CHECKING, Any

from kcl_py.batchers import Batched, Batcher
from kcl_py.errors import (
    AwsSetupError,
    CheckpointFailedError,
    ConfigError,
    CredentialsError,
    DuplicateInWorkError,
    EffectsRefusedError,
    EndpointError,
    KclError,
    LeaseLostError,
    LeaseTableError,
    PositionError,
    ProcessorError,
    StreamIdentityError,
    StreamNotFoundError,
)
from kcl_py.functions.decorator import processor
from kcl_py.middleware import Middleware
from kcl_py.outcomes import Reject, Retry, ToBatch
from kcl_py.processor import Checkpointer, Failure, OwnedShard, PreparedCheckpoint, RecordProcessor, Records
from kcl_py.records import Identity, Record, RecordBatch, Redelivery, SequenceNumber

if TYPE_CHECKING:
    from actors import Clock, Node
    from kcl_py.clients import Clients
    from kcl_py.config import Config
    from kcl_py.dedup import Dedup
    from kcl_py.leases.store import LeaseStore
    from kcl_py.once import Once
    from kcl_py.sources.source import Source
    from kcl_py.tree.halts import HaltedShard
    from kcl_py.tree.stream import Outcome, Stream
    from kcl_py.tree.worker import Ids

__all__ = [
    "AwsSetupError",
    "Batched",
    "Batcher",
    "CheckpointFailedError",
    "Checkpointer",
    "Clients",
    "Clock",
    "Config",
    "ConfigError",
    "CredentialsError",
    "Dedup",
    "DuplicateInWorkError",
    "EffectsRefusedError",
    "EndpointError",
    "Failure",
    "HaltedShard",
    "Identity",
    "Ids",
    "KclError",
    "LeaseLostError",
    "LeaseStore",
    "LeaseTableError",
    "Middleware",
    "Node",
    "Once",
    "Outcome",
    "OwnedShard",
    "PositionError",
    "PreparedCheckpoint",
    "ProcessorError",
    "Record",
    "RecordBatch",
    "RecordProcessor",
    "Records",
    "Redelivery",
    "Reject",
    "Retry",
    "SequenceNumber",
    "Source",
    "Stream",
    "StreamIdentityError",
    "StreamNotFoundError",
    "ToBatch",
    "processor",
]

_LAZY = {
    "Clients": "kcl_py.clients",
    "Clock": "actors",
    "Config": "kcl_py.config",
    "Dedup": "kcl_py.dedup",
    "HaltedShard": "kcl_py.tree.halts",
    "Ids": "kcl_py.tree.worker",
    "LeaseStore": "kcl_py.leases.store",
    "Node": "actors",
    "Once": "kcl_py.once",
    "Outcome": "kcl_py.tree.stream",
    "Source": "kcl_py.sources.source",
    "Stream": "kcl_py.tree.stream",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value
