"""Every error that kcl_py raises, as one tree.

An error says what was tried, on which thing, what was expected and found, and what to do. Errors pickle.
"""

from collections.abc import Mapping


class KclError(Exception):
    """The root of the tree."""

    retryable = False
    """Whether trying the same thing again, unchanged, can help."""


class ConfigError(KclError):
    """The configuration cannot be used; ``faults`` holds one sentence for each thing that is wrong."""

    def __init__(self, *faults: str) -> None:
        super().__init__(*faults)
        self.faults = faults

    def __str__(self) -> str:
        return "; ".join(self.faults)


class ProcessorError(KclError):
    """The processor cannot be imported, or is not a RecordProcessor."""


class AwsSetupError(KclError):
    """AWS cannot be used as configured: raised while starting, and when the lease table goes away."""


class StreamNotFoundError(AwsSetupError):
    """The stream does not exist in this region and account."""


class CredentialsError(AwsSetupError):
    """There are no credentials or no region, or AWS refuses them."""


class EndpointError(AwsSetupError):
    """The endpoint cannot be reached."""


class LeaseTableError(AwsSetupError):
    """The lease table cannot be created or used."""


class StreamIdentityError(AwsSetupError):
    """The lease table belongs to another stream, or to an earlier one of the same name."""


class LeaseLostError(KclError):
    """This ownership of the shard is over: another worker has it or may have it."""


class PositionError(KclError):
    """What was given to ``checkpoint`` was not handed over: it is another shard's, say, or still to come."""


class CheckpointFailedError(KclError):
    """The checkpoint could not be stored in time; the lease is still held."""

    retryable = True


class DeadLetterError(KclError):
    """A dead letter is not stored, or nobody knows whether it is; its record is not acknowledged.

    Args:
        sentence: what was tried, where, what was found and what to do.
        retryable: whether the same letter, tried again, may be stored.
    """

    def __init__(self, sentence: str, retryable: bool = False) -> None:
        super().__init__(sentence, retryable)
        self.retryable = retryable

    def __str__(self) -> str:
        return str(self.args[0])


class EffectsRefusedError(KclError):
    """Effects cannot be applied as they are: a condition of theirs does not hold, say. Nothing was written.

    Args:
        text: the whole sentence, without any value of an item.
        reasons: for each effect at fault, by its place from 0, DynamoDB's reason, such as ``ConditionalCheckFailed``.
    """

    def __init__(self, text: str, reasons: Mapping[int, str] | None = None) -> None:
        super().__init__(text, reasons)
        self.reasons = reasons or {}

    def __str__(self) -> str:
        return str(self.args[0])


class DuplicateInWorkError(KclError):
    """A record with the same message id is in work elsewhere: ``Retry(error.after_s)`` asks again what became of it."""

    retryable = True

    def __init__(self, text: str, after_s: float = 0.0) -> None:
        super().__init__(text, after_s)
        self.after_s = after_s

    def __str__(self) -> str:
        return str(self.args[0])


class RequestError(KclError):
    """One AWS request failed; whether it took effect is unknown unless a subclass says so.

    Args:
        operation: the API operation, such as ``GetRecords``.
        target: what it was about: a stream, shard, table or lease key.
        code: AWS's error code, or the class of the transport error.
        detail: AWS's own sentence.
    """

    retryable = True

    def __init__(self, operation: str, target: str, code: str, detail: str = "") -> None:
        super().__init__(operation, target, code, detail)
        self.operation, self.target, self.code, self.detail = operation, target, code, detail

    def __str__(self) -> str:
        return f"cannot {self.operation} on {self.target!r}: {self.code}" + (f": {self.detail}" if self.detail else "")


class ThrottledError(RequestError):
    """AWS refused the request for its rate; it had no effect."""


class IteratorExpiredError(RequestError):
    """The shard iterator is older than five minutes; open a new one after the last record received."""


class MissingError(RequestError):
    """The stream, shard or table of the request does not exist."""

    retryable = False


class RejectedError(RequestError):
    """AWS says that the request itself is wrong or not allowed; repeating it does not help."""

    retryable = False


class ConditionFailedError(RequestError):
    """A conditional write found the row otherwise than it tested for."""

    retryable = False
