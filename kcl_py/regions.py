"""Regions that have no region's form: a typing error, unless an endpoint of one's own is set. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kcl_py.dead_letters.address import Address
from kcl_py.printable import printable

if TYPE_CHECKING:
    from kcl_py.config import Config, ServiceName

_FORM = re.compile(r"[a-z]+(-[a-z]+)+-\d{1,2}")
"""Source: the regions of all partitions in botocore (data/partitions.json)."""
_VARIABLE = "AWS_DEFAULT_REGION"
_ENDPOINTS = tuple(f"AWS_ENDPOINT_URL{suffix}" for suffix in ("", "_KINESIS", "_DYNAMODB", "_SQS", "_S3"))
"""Source: the SDKs' guide to service-specific endpoints."""


def region_warnings(config: "Config", env: Mapping[str, str]) -> list[str]:
    """Return a sentence for each place that names a region which AWS cannot have.

    Nothing is said where an endpoint is set: whoever answers there may call its region as it likes.
    """
    found = dict(place for place in _places(config, env) if _FORM.fullmatch(place[1]) is None)
    return [
        f"{where}: expected a region such as eu-west-1, found {printable(region)!r}; AWS has none of that form, "
        "and no endpoint is set"
        for where, region in found.items()
    ]


def _places(config: "Config", env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield where the region of each service that is reached at AWS comes from, and the region."""
    services: list[ServiceName] = ["kinesis", "dynamodb"]
    if any(env.get(variable) for variable in _ENDPOINTS):
        return
    letters = Address.of(config.delivery.dead_letter) if config.delivery.dead_letter else None
    if letters is not None and letters.kind != "file":
        if letters.region is None:
            services += [letters.kind] if letters.kind != "kinesis" else []
        elif not config.aws.service(letters.kind).endpoint:
            yield "delivery.dead_letter", letters.region
    for name in services:
        service = config.aws.service(name)
        if service.endpoint or (name == "dynamodb" and config.leases.store == "memory"):
            continue
        if service.region:
            yield (f"aws.{name}.region" if getattr(config.aws, name).region else "aws.region"), service.region
        elif name == "kinesis" and config.stream_arn:
            yield "stream", config.stream_arn.split(":")[3]
        elif region := env.get(_VARIABLE):
            yield _VARIABLE, region
