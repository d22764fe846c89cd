"""A consumer runtime for Kinesis streams in pure Python.

``Config`` and ``Stream`` are imported when they are first asked for, so that a processor's module loads fast.
"""

from typing import TYPE_CHECKING, Any

from kcl_py.errors import (
    AwsSetupError,
    CheckpointFailedError,
    ConfigError,
    CredentialsError,
    EndpointError,
    KclError,
    LeaseLostError,
    LeaseTableError,
    PositionError,
    ProcessorError,
    StreamIdentityError,
    StreamNotFoundError,
)
from kcl_py.processor import Checkpointer, OwnedShard, RecordProcessor
from kcl_py.records import Record, RecordBatch, Redelivery, SequenceNumber

if TYPE_CHECKING:
    from kcl_py.config import Config
    from kcl_py.tree.stream import Stream

__all__ = [
    "AwsSetupError",
    "CheckpointFailedError",
    "Checkpointer",
    "Config",
    "ConfigError",
    "CredentialsError",
    "EndpointError",
    "KclError",
    "LeaseLostError",
    "LeaseTableError",
    "OwnedShard",
    "PositionError",
    "ProcessorError",
    "Record",
    "RecordBatch",
    "RecordProcessor",
    "Redelivery",
    "SequenceNumber",
    "Stream",
    "StreamIdentityError",
    "StreamNotFoundError",
]

_LAZY = {"Config": "kcl_py.config", "Stream": "kcl_py.tree.stream"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value
