"""What the operations of the local Kinesis have in common."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from kcl_py.local import requests as ask

Answer: TypeAlias = dict[str, Any]
"""An answer in AWS's shape, with records as ``Record`` structs and times as Unix seconds."""
Operations: TypeAlias = dict[type[ask.Request], Callable[[Any], Answer]]
"""What answers each kind of request."""


class Family(Protocol):
    """Operations on one thing."""

    def operations(self) -> Operations:
        """Return what answers each kind of request."""
        ...
