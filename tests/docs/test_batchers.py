"""The page of batchers says what the code does."""

from typing import Any, get_args

import pytest

from kcl_py import Batched, Record, RecordProcessor, ToBatch
from kcl_py.acceptance import processor_faults
from kcl_py.batchers import Trigger
from tests.docs.pages import DOCS, blocks, rows

PAGE = DOCS / "batchers.md"


def test_documented_triggers_are_those_of_the_code() -> None:
    """All of them, and in their order."""
    assert tuple(row[0] for row in rows(PAGE, "Trigger")) == get_args(Trigger)


@pytest.mark.asyncio
async def test_documented_processor_can_be_used(capsys: Any) -> None:
    """What the reader copies works."""
    names: dict[str, Any] = {}
    exec(blocks(PAGE, "python")[0], names)
    archive: type[RecordProcessor] = names["Archive"]
    assert processor_faults(archive) == []
    record = Record("1", b"a", "k", 86400.0)
    given = await archive().process(record)
    assert isinstance(given, ToBatch)
    await archive().handle_batch(Batched("s3", given.key, [(record, given.value)], "age"))
    assert capsys.readouterr().out == "s3 1970-01-02 age [b'A']\n"
