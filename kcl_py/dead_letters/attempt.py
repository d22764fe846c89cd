"""One attempt to store a letter: its deadline, and what is said when it fails. Sizes are bytes, times are seconds."""

from collections.abc import Iterator
from contextlib import contextmanager

from actors.clock import Clock
from kcl_py.aws import request
from kcl_py.dead_letters.address import Address
from kcl_py.dead_letters.letter import DeadLetter
from kcl_py.errors import (
    CredentialsError,
    DeadLetterError,
    MissingError,
    RejectedError,
    RequestError,
    ThrottledError,
)

DEADLINE_S = 20.0
"""Total time of one attempt: as for a read of 10 MiB, which a letter may have, too."""
LOOK_DEADLINE_S = 5.0
"""Total time of one look whether a destination is there."""


@contextmanager
def attempt(operation: str, letter: DeadLetter, address: Address, clock: Clock) -> Iterator[None]:
    """Run the one request that stores ``letter``.

    Raises:
        DeadLetterError: it failed.
    """
    try:
        with request(operation, str(address), deadline_s=DEADLINE_S, clock=clock):
            yield
    except RequestError as error:
        found = f"{error.code}: {error.detail}" if error.detail else error.code
        raise not_stored(letter, address, f"found {found}; {_advice(error)}", retryable=error.retryable) from error


def too_large(letter: DeadLetter, address: Address, size_bytes: int, most_bytes: int, advice: str) -> DeadLetterError:
    """Return the error for a letter that the destination would never take."""
    what = f"expected at most {most_bytes} bytes, found {size_bytes}, for a payload of {len(letter.record.data)}"
    return not_stored(letter, address, f"{what}; {advice}send dead letters to s3://BUCKET/PREFIX", retryable=False)


def not_stored(letter: DeadLetter, address: Address, why: str, *, retryable: bool) -> DeadLetterError:
    """Return the error that says which letter it is about and where it was to go."""
    record = f"{letter.record.sequence_number} of {letter.shard_id}"
    return DeadLetterError(f"cannot store the dead letter of record {record} in {address}: {why}", retryable)


def _advice(error: RequestError) -> str:
    match error:
        case CredentialsError():
            return "check the credentials"
        case ThrottledError():
            return "if it goes on, let the destination take more"
        case MissingError():
            return "create it again, or correct delivery.dead_letter"
        case RejectedError():
            return "allow it, or correct delivery.dead_letter"
    return "check that the destination can be reached"
