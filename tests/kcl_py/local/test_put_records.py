"""Writing: limits of size and count, and failures one by one."""

import pytest

from kcl_py.local.errors import ModelError
from kcl_py.local.hashing import RING
from tests.kcl_py.local.world import World

MIB = 1024 * 1024


def entries(count: int, size_bytes: int = 1) -> list[dict[str, object]]:
    """Return records of ``size_bytes`` each, with a key of one byte."""
    return [{"Data": b"x" * size_bytes, "PartitionKey": "k"}] * count


def test_five_hundred_records_are_taken_and_one_more_refuses_the_request() -> None:
    """Nothing of a refused request is stored."""
    world = World()
    with pytest.raises(ModelError, match="ValidationException"):
        world.call("PutRecords", StreamName="s", Records=entries(501))
    assert world.read() == []
    assert world.call("PutRecords", StreamName="s", Records=entries(500))["FailedRecordCount"] == 0
    assert len(world.read()) == 500


def test_a_record_may_have_one_mebibyte_with_its_key() -> None:
    """The key counts."""
    world = World()
    world.put(b"x" * (MIB - 1))
    with pytest.raises(ModelError, match="InvalidArgumentException"):
        world.put(b"x" * MIB)
    with pytest.raises(ModelError, match="InvalidArgumentException"):
        world.call("PutRecords", StreamName="s", Records=[*entries(1), *entries(1, MIB)])
    assert len(world.read()) == 1


def test_a_request_may_have_ten_mebibytes_with_its_keys() -> None:
    """Ten full records pass, an eleventh byte over does not."""
    world = World()
    world.call("PutRecords", StreamName="s", Records=entries(10, MIB - 1))
    with pytest.raises(ModelError, match="InvalidArgumentException"):
        world.call("PutRecords", StreamName="s", Records=entries(10, MIB - 1) + entries(1))
    assert len(world.read()) == 10


def test_answers_line_up_with_the_records_of_the_request() -> None:
    """Each says where its record lies."""
    world = World(4)
    records = [{"Data": str(i).encode(), "PartitionKey": str(i)} for i in range(50)]
    answers = world.call("PutRecords", StreamName="s", Records=records)["Records"]
    stored = {record.sequence_number: record.data for shard in world.open_ids() for record in world.read(shard)}
    assert [stored[answer["SequenceNumber"]] for answer in answers] == [record["Data"] for record in records]


def test_records_above_a_shards_rate_fail_one_by_one_when_rates_are_limited() -> None:
    """The request succeeds; the failed ones say why, are not stored, and pass a second later."""
    world = World(limit_rates=True)
    world.put_many(900)
    answer = world.call("PutRecords", StreamName="s", Records=entries(200))
    failed = [number for number, result in enumerate(answer["Records"]) if "ErrorCode" in result]
    assert (answer["FailedRecordCount"], failed, len(world.read())) == (100, list(range(100, 200)), 1000)
    assert answer["Records"][-1]["ErrorCode"] == "ProvisionedThroughputExceededException"
    with pytest.raises(ModelError, match="ProvisionedThroughputExceededException"):
        world.put()
    world.clock.now_s += 1
    world.put()


def test_bytes_above_a_shards_rate_fail_too_when_rates_are_limited() -> None:
    """One mebibyte a second."""
    world = World(limit_rates=True)
    answer = world.call("PutRecords", StreamName="s", Records=entries(3, 400_000))
    assert ["ErrorCode" in result for result in answer["Records"]] == [False, False, True]


@pytest.mark.parametrize("key", [str(RING), "9" * 39])
def test_an_explicit_hash_key_beyond_the_ring_refuses_the_whole_request(key: str) -> None:
    """No record of it is stored, neither those before."""
    world = World()
    with pytest.raises(ModelError, match="InvalidArgumentException"):
        world.put(ExplicitHashKey=key)
    with pytest.raises(ModelError, match="InvalidArgumentException"):
        world.call(
            "PutRecords", StreamName="s", Records=[*entries(1), *[{**e, "ExplicitHashKey": key} for e in entries(1)]]
        )
    assert world.read() == []


@pytest.mark.parametrize("key", ["", "x" * 257])
def test_a_partition_key_has_1_to_256_characters(key: str) -> None:
    """Characters, not bytes."""
    with pytest.raises(ModelError, match="ValidationException"):
        World().put(key=key)
    World().put(key="é" * 256)


def test_an_order_after_a_number_that_is_none_is_refused() -> None:
    """SequenceNumberForOrdering takes a number that a put returned."""
    world = World()
    number = world.put()["SequenceNumber"]
    world.put(SequenceNumberForOrdering=number)
    with pytest.raises(ModelError, match="InvalidArgumentException"):
        world.put(SequenceNumberForOrdering="5")
