"""Sequence numbers of growing length, as AWS may give them: it promises only that they grow.

The model's have 56 digits, so that a comparison by text would go unnoticed. Here the ordinal of the record goes to the
front, so that numbers get longer with a shard's 10th, 100th, ... record; and back again on the way in. Pure.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

_ORDINAL_BIT, _ORDINAL_MASK = 80, (1 << 64) - 1
"""Where the model's numbers have the ordinal; see ``kcl_py/local/sequence.py``."""
_REST = 10**60

Answer = Callable[[str, Any], Any]


def shorter(number: str) -> str:
    """Return what the fleet sees for a number of the model's."""
    value = int(number)
    ordinal = (value >> _ORDINAL_BIT) & _ORDINAL_MASK
    return str(ordinal * _REST + value - (ordinal << _ORDINAL_BIT))


def longer(number: str) -> str:
    """Return the model's number for one that the fleet sees."""
    ordinal, rest = divmod(int(number), _REST)
    return str(rest + (ordinal << _ORDINAL_BIT))


def renumbered(answer: Answer) -> Answer:
    """Have a Kinesis talk in the numbers that the fleet sees."""

    def answered(operation: str, params: Any) -> Any:
        if "StartingSequenceNumber" in params:
            params = params | {"StartingSequenceNumber": longer(params["StartingSequenceNumber"])}
        reply = answer(operation, params)
        match operation:
            case "GetRecords":
                reply["Records"] = [
                    replace(record, sequence_number=shorter(record.sequence_number)) for record in reply["Records"]
                ]
            case "ListShards":
                for shard in reply["Shards"]:
                    ends = shard["SequenceNumberRange"]
                    shard["SequenceNumberRange"] = {name: shorter(number) for name, number in ends.items()}
        return reply

    return answered
