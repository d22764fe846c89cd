"""Kinesis and DynamoDB in memory, and the ways to them: the models that are behind ``kcl local``."""

import random
from collections.abc import Iterable
from typing import Any

from actors.testing import ManualClock
from kcl_py.clients import Clients
from kcl_py.config import Config
from kcl_py.dead_letters import DeadLetter
from kcl_py.leases.dynamodb import DynamoLeaseStore
from kcl_py.local.client import KinesisClient
from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.client import DynamoDBClient
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.faults.fault import Fault
from kcl_py.local.faults.faults import Faults
from kcl_py.local.model import Kinesis
from kcl_py.sources.kinesis.polling import KinesisSource
from kcl_py.testing.letters import Letters
from kcl_py.testing.line import Line
from kcl_py.testing.table import LeaseTable


class Service:
    """Both services of one account.

    Args:
        clock: their time.
        faults: what goes wrong with requests.
        generator: decides what is left to chance.
    """

    def __init__(self, clock: ManualClock, *, faults: Iterable[Fault], generator: random.Random) -> None:
        self._clock = clock
        self.faults = Faults(faults, random=generator)
        self.kinesis = Kinesis(clock, delay_s=0.0)
        self.dynamodb = DynamoDB(Behaviour(clock, generator))
        self.dead_letters: list[DeadLetter] = []

    def line(self) -> Line:
        """Return a way to the services for one more worker."""
        return Line(self.faults, self._clock)

    def kinesis_client(self, line: Line) -> Any:
        """Return a client with the face of aioboto3's."""
        return line.client("kinesis", KinesisClient(self.kinesis, self._clock))

    def clients(self, config: Config, stream: str, line: Line) -> Clients:
        """Return what a worker talks to."""
        dynamodb = line.client("dynamodb", DynamoDBClient(self.dynamodb, self._clock))
        source = KinesisSource(self.kinesis_client(line), stream, clock=self._clock)
        letters = Letters(self.dead_letters, line) if config.delivery.dead_letter else None
        return Clients(source, DynamoLeaseStore(dynamodb, config.leases, clock=self._clock), dead_letters=letters)

    def leases(self, config: Config) -> LeaseTable:
        """Return the lease table of an application, as it is."""
        return LeaseTable(self.dynamodb, config.leases.table, self._clock)
