"""AWS's Signature Version 4 of a POST to the root path.

Pure. botocore derives the key of a day anew for each request and spells out every header several times; here the key is
kept for as long as credentials and day are the same. Source: the Signature Version 4 guide of AWS.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

ALGORITHM = "AWS4-HMAC-SHA256"
AMZ_DATE = "%Y%m%dT%H%M%SZ"
"""The form of ``x-amz-date``, in UTC."""


@dataclass(slots=True)
class Signer:
    """Signs for one pair of keys, region and service."""

    access_key: str
    secret_key: str = field(repr=False)
    region: str
    service: str
    _day: str = ""
    _key: bytes = field(default=b"", repr=False)

    def authorization(self, headers: Mapping[str, str], body: bytes, *, at: str) -> str:
        """Return the Authorization header.

        Args:
            headers: all that are signed, ``host`` and ``x-amz-date`` among them; lower-case names in their order.
            body: what is sent.
            at: the value of ``x-amz-date``: ``20261128T150000Z``.
        """
        day = at[:8]
        if day != self._day:
            self._day, self._key = day, self._key_of(day)
        scope, names = f"{day}/{self.region}/{self.service}/aws4_request", ";".join(headers)
        lines = "".join([f"{name}:{value}\n" for name, value in headers.items()])
        request = f"POST\n/\n\n{lines}\n{names}\n{sha256(body).hexdigest()}"
        text = f"{ALGORITHM}\n{at}\n{scope}\n{sha256(request.encode()).hexdigest()}"
        signature = hmac.digest(self._key, text.encode(), "sha256").hex()
        return f"{ALGORITHM} Credential={self.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"

    def _key_of(self, day: str) -> bytes:
        key = f"AWS4{self.secret_key}".encode()
        for part in (day, self.region, self.service, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        return key
