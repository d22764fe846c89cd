"""S3 for the local AWS: moto's."""

from collections.abc import Mapping

from kcl_py.local.moto import Moto
from kcl_py.local.replies import refused_s3


def is_s3(path: str, query: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request that names no service is for S3: by whom it is signed for, else by its path."""
    signed = headers.get("Authorization", "") + query
    if "/aws4_request" in signed or "%2Faws4_request" in signed:
        return "/s3/aws4_request" in signed or "%2Fs3%2Faws4_request" in signed
    return path != "/"


class MotoS3(Moto):
    """A ``Handler``, with the buckets of one account. ``close`` ends it."""

    def __init__(self) -> None:
        super().__init__("s3", "application/xml", refused_s3)
