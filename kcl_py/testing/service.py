"""Kinesis and DynamoDB in memory, and the ways to them: the models that are behind ``kcl local``."""

import random
from typing import Any

from actors import Clock
from kcl_py.clients import Clients
from kcl_py.config import Config
from kcl_py.leases.dynamodb import DynamoLeaseStore
from kcl_py.local.client import KinesisClient
from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.client import DynamoDBClient
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.model import Kinesis
from kcl_py.sources.kinesis.polling import KinesisSource
from kcl_py.testing.line import Line
from kcl_py.testing.table import LeaseTable


class Service:
    """Both services of one account.

    Args:
        clock: their time.
        seed: decides what is left to chance.
    """

    def __init__(self, clock: Clock, *, seed: int) -> None:
        self._clock = clock
        self.kinesis = Kinesis(clock, delay_s=0.0)
        self.dynamodb = DynamoDB(Behaviour(clock, random.Random(seed)))

    def kinesis_client(self, line: Line | None = None) -> Any:
        """Return a client with the face of aioboto3's."""
        return (line or Line()).client(KinesisClient(self.kinesis, self._clock))

    def dynamodb_client(self, line: Line | None = None) -> Any:
        """Return a client with the face of aioboto3's."""
        return (line or Line()).client(DynamoDBClient(self.dynamodb, self._clock))

    def clients(self, config: Config, stream: str, line: Line | None = None) -> Clients:
        """Return what a worker talks to."""
        source = KinesisSource(self.kinesis_client(line), stream, clock=self._clock)
        return Clients(source, DynamoLeaseStore(self.dynamodb_client(line), config.leases, clock=self._clock))

    def leases(self, config: Config) -> LeaseTable:
        """Return the lease table of an application, as it is."""
        return LeaseTable(self.dynamodb, config.leases.table, self._clock)
