"""Where dead letters go, as ``delivery.dead_letter`` says it. Pure."""

import re
from dataclasses import dataclass
from typing import Literal, Self, cast

Kind = Literal["kinesis", "sqs", "s3", "file"]

_QUEUE_REGION = re.compile(r"https?://(?:[^/]*\.)?sqs(?:-fips)?\.([a-z0-9-]+)\.")
"""Source: SQS's endpoints in AWS's general reference, and those of VPCs."""


@dataclass(frozen=True, slots=True)
class Address:
    """One destination; ``str`` gives the option's text back."""

    kind: Kind
    name: str
    """A stream's name or ARN, a queue's URL, ``BUCKET/PREFIX`` or a path."""

    @classmethod
    def of(cls, text: str) -> Self:
        """Read the option, which ``Config`` has checked."""
        kind, _, name = text.partition(":")
        return cls(cast("Kind", kind), name.removeprefix("//") if kind == "s3" else name)

    def __str__(self) -> str:
        return f"{self.kind}:{'//' if self.kind == 's3' else ''}{self.name}"

    @property
    def region(self) -> str | None:
        """The region that the address itself names: an ARN's or a queue's URL's."""
        if self.kind == "kinesis" and self.name.startswith("arn:"):
            return self.name.split(":")[3]
        found = _QUEUE_REGION.match(self.name) if self.kind == "sqs" else None
        return found and found[1]
