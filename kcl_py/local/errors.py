"""The one error of the local Kinesis: what AWS would have answered."""


class ModelError(Exception):
    """A refusal in AWS's own terms.

    Args:
        code: AWS's error code, such as ``ResourceNotFoundException``.
        message: AWS's sentence about it.
        status: the HTTP status it travels under.
    """

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(code, message, status)
        self.code, self.message, self.status = code, message, status

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def invalid(message: str) -> ModelError:
    """Return what AWS answers to a well-formed argument that makes no sense here."""
    return ModelError("InvalidArgumentException", message)


def not_found(message: str) -> ModelError:
    """Return what AWS answers about a stream or shard that is not there."""
    return ModelError("ResourceNotFoundException", message)


def in_use(message: str) -> ModelError:
    """Return what AWS answers while a stream or shard is in another state."""
    return ModelError("ResourceInUseException", message)


def limit_exceeded(message: str) -> ModelError:
    """Return what AWS answers when there would be too many of something, or calls come too fast."""
    return ModelError("LimitExceededException", message)


def not_kept(error: OSError, code: str = "InternalFailureException") -> ModelError:
    """Return what AWS answers when it fails itself: here, when nothing can be written to the folder of ``--data``."""
    reason = error.strerror or type(error).__name__
    return ModelError(code, f"cannot write to the folder of --data: {reason}", 500)


def not_valid(message: str) -> ModelError:
    """Return what AWS answers to an operation that does not go with the stream's mode."""
    return ModelError("ValidationException", message)
