"""Requests at random: each is answered or refused in AWS's terms, and none breaks anything."""

from collections import Counter
from contextlib import suppress
from random import Random
from typing import Any

import msgspec
import pytest

from kcl_py.local import requests as ask
from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.errors import ModelError
from kcl_py.local.subscription import Subscription
from tests.kcl_py.local.strange import Stranger
from tests.kcl_py.local.world import World

REQUESTS = 6000
PAUSES_S = [0.0, 0.0, 0.01, 0.06, 1.0]
LONG_PAUSES_S = [400.0, 90_000.0]
TABLE = {
    "TableName": "tab",
    "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("k", "o")],
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "owners",
            "KeySchema": [{"AttributeName": "o", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}


def pause_s(random: Random) -> float:
    return random.choice(PAUSES_S if random.random() < 0.99 else LONG_PAUSES_S)


def refused(refusal: ModelError) -> str:
    """Return the code of a refusal, which can be told as JSON and is the caller's fault."""
    assert refusal.status == 400, str(refusal)
    msgspec.json.encode(getattr(refusal, "more", None))
    return refusal.code


@pytest.mark.parametrize("seed", range(4))
def test_kinesis_answers_or_refuses_whatever_it_is_asked(seed: int) -> None:
    """With and without rates; events too."""
    random = Random(seed)
    world = World(2, limit_rates=seed % 2 == 1)
    stranger, codes = Stranger("kinesis", random, world.clock.now_s), Counter[str]()
    subscriptions: list[Subscription] = []
    for _ in range(REQUESTS):
        if not world.model.has_stream("s"):
            world.model.add_stream("s", 2)
        operation = random.choice(world.model.operations())
        try:
            answer = world.model.answer(ask.decode(operation, stranger.body(operation)))
        except ModelError as refusal:
            codes[refused(refusal)] += 1
        else:
            codes["answer"] += 1
            if isinstance(events := answer.get("EventStream"), Subscription):
                subscriptions = [*subscriptions[-5:], events]
            else:
                stranger.learn(msgspec.to_builtins(answer))
        for subscription in subscriptions:
            with suppress(ModelError):
                msgspec.json.encode(subscription.event(world.clock.now_s))
        world.clock.now_s += pause_s(random)
    assert codes.keys() >= {"answer", "ValidationException", "SerializationException", "InvalidArgumentException"}
    assert codes["answer"] > REQUESTS / 10


@pytest.mark.parametrize(
    "behaviour", [{}, {"stale_s": 1.0, "index_lag_s": 1.0}, {"throttles": True, "unprocessed": 0.3}, {"delay_s": 0.5}]
)
def test_dynamodb_answers_or_refuses_whatever_it_is_asked(behaviour: dict[str, Any]) -> None:
    """Prompt, late, throttled or slow."""
    world, random = World(), Random(len(behaviour))
    model = DynamoDB(Behaviour(world.clock, random=random, **behaviour))
    stranger, codes = Stranger("dynamodb", random, world.clock.now_s), Counter[str]()
    for _ in range(REQUESTS):
        if "tab" not in model.call("ListTables", {})["TableNames"]:
            model.call("CreateTable", TABLE)
        operation = random.choice(sorted(model.operations - {"DeleteTable"}))
        try:
            answer = model.answer(operation, stranger.body(operation))
        except ModelError as refusal:
            codes[refused(refusal)] += 1
        else:
            codes["answer"] += 1
            stranger.learn(msgspec.to_builtins(answer))
        world.clock.now_s += pause_s(random)
    assert codes.keys() >= {"answer", "ValidationException", "SerializationException"}
    assert codes["answer"] > REQUESTS / 10
