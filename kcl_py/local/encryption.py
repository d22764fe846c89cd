"""What a stream's KMS key does to those who put and get: nothing, or the error that the key is named after. Pure.

A key whose id ends in one of ``ERRORS``, such as ``alias/KMSDisabledException``, lets a test see that error.
"""

from kcl_py.local.errors import ModelError
from kcl_py.local.stream import Stream

ERRORS = (
    "KMSAccessDeniedException",
    "KMSDisabledException",
    "KMSInvalidStateException",
    "KMSNotFoundException",
    "KMSOptInRequired",
    "KMSThrottlingException",
)
"""Source: Kinesis API reference, GetRecords."""


def check_key(stream: Stream) -> None:
    """Raise the error that the key of ``stream`` is named after, if it is."""
    if stream.key_id is None:
        return
    name = stream.key_id.rpartition("/")[2]
    if name in ERRORS:
        raise ModelError(name, f"The key {stream.key_id} of stream {stream.name} is named after this error.")
