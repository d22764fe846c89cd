"""How fast one shard takes records. Pure; times are Unix seconds of the service's clock."""

RECORDS_PER_S = 1000
BYTES_PER_S = 1024 * 1024
"""Source: Kinesis quotas, 1,000 records and 1 MB a second into each shard; keys count."""


class WriteWindow:
    """What one shard took in the current second."""

    def __init__(self) -> None:
        self._second, self._records, self._bytes = 0, 0, 0

    def admits(self, size_bytes: int, now_s: float) -> bool:
        """Count a record of ``size_bytes`` and return True, or return False if it is one too many for this second."""
        if int(now_s) != self._second:
            self._second, self._records, self._bytes = int(now_s), 0, 0
        if self._records >= RECORDS_PER_S or self._bytes + size_bytes > BYTES_PER_S:
            return False
        self._records += 1
        self._bytes += size_bytes
        return True
