"""Stands for ``amazon_kclpy.checkpoint_error``."""


class CheckpointError(Exception):
    """A checkpoint was not stored.

    Args:
        value: which of Java's exceptions it was, by the name of its class.
    """

    def __init__(self, value: str) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return repr(self.value)
