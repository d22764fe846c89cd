"""What the service says when a fault has it refuse or fail. Pure."""

from kcl_py.local.errors import ModelError
from kcl_py.local.faults.fault import Fault, Kind
from kcl_py.local.faults.operations import internal_code, throttling_code

_THROTTLED, _FAILED = "Rate exceeded (injected fault)", "The service failed (injected fault)"
_UNAVAILABLE = ("SlowDown", "ServiceUnavailable")


def refusal(fault: Fault, service: str, operation: str) -> ModelError:
    """Return the service's error for a fault of kind ``error``, ``throttle`` or ``lost_reply``."""
    if fault.kind is Kind.THROTTLE:
        code, message = fault.code or throttling_code(service, operation), _THROTTLED
    else:
        code, message = fault.code or internal_code(service), _FAILED
    return ModelError(code, message, _status(code))


def _status(code: str) -> int:
    """Source: the services' API references, common errors."""
    if code.startswith("Internal"):
        return 500
    return 503 if code in _UNAVAILABLE else 400
