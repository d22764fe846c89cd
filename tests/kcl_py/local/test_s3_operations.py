"""Which operation a request to S3 is, held against the requests that botocore makes."""

from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import boto3  # type: ignore[import-untyped]
import pytest
from botocore import xform_name
from botocore.awsrequest import AWSResponse

from kcl_py.local.s3_operations import operation_of
from kcl_py.local.shape import api

ELSEWHERE = {"WriteGetObjectResponse", "ListDirectoryBuckets", "CreateSession", "RenameObject"}
"""At hosts of their own."""
OPERATIONS = [
    name for name in sorted(api("s3").operations - ELSEWHERE) if not api("s3").model.operation_model(name).deprecated
]


def made(client: Any, operation: str) -> Any:
    """Return the request that botocore makes of an operation with nothing but what it requires."""
    model = client.meta.service_model.operation_model(operation)
    params = {name: value_of(model.input_shape.members[name]) for name in required(model.input_shape)}
    found: list[Any] = []

    def capture(request: Any, **_: Any) -> AWSResponse:
        found.append(request)
        return AWSResponse(request.url, 200, {}, None)  # type: ignore[arg-type]  # no headers are needed

    client.meta.events.register_first("before-send.s3.*", capture, unique_id="capture")
    with suppress(AttributeError):  # the answer has no body to read
        getattr(client, xform_name(operation))(**params)
    return found[0]


def required(shape: Any) -> list[str]:
    return list(shape.required_members) if shape is not None else []


def value_of(shape: Any) -> Any:
    """Return something of a shape: what botocore lets through."""
    match shape.type_name:
        case "structure":
            return {name: value_of(shape.members[name]) for name in required(shape)}
        case "list":
            return [value_of(shape.member)]
        case "integer" | "long":
            return 1
        case "boolean":
            return True
        case "blob":
            return b"x"
    return next(iter(shape.metadata.get("enum", ["bucket"])))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operation_of_s3_is_recognised_in_botocores_own_request(operation: str) -> None:
    """By method, path, query and headers."""
    client = boto3.client(
        "s3",
        endpoint_url="http://127.0.0.1:1",
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )
    request = made(client, operation)
    address = urlsplit(request.url)
    names = {str(name).lower() for name in request.headers}
    assert operation_of(request.method, address.path, address.query, names) == operation
    client.close()


@pytest.mark.parametrize(("method", "path"), [("POST", "/"), ("PATCH", "/bucket"), ("POST", "/bucket/key")])
def test_what_is_no_operation_of_s3_has_no_name(method: str, path: str) -> None:
    """Such as a form that a browser posts."""
    assert operation_of(method, path, "", set()) == ""
