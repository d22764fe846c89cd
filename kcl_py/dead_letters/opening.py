"""Opening the destination that ``delivery.dead_letter`` names: that it is missing is seen when a worker starts.

Clients, connections and credentials are its own, so that a letter never queues behind a lease or a read. Nothing of
AWS's libraries is imported for a file. Durations are seconds.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from typing import Literal

from actors.clock import Clock, SystemClock
from kcl_py.aws import origin
from kcl_py.clients import new_client, until_answered
from kcl_py.config import Config
from kcl_py.dead_letters.address import Address
from kcl_py.dead_letters.destination import DeadLetters
from kcl_py.dead_letters.file import FileDeadLetters, told
from kcl_py.dead_letters.kinesis import KinesisDeadLetters
from kcl_py.dead_letters.s3 import S3DeadLetters
from kcl_py.dead_letters.sqs import SqsDeadLetters
from kcl_py.errors import AwsSetupError, ConfigError, MissingError
from kcl_py.events import Events

log = Events()

_KINDS = {"kinesis": KinesisDeadLetters, "sqs": SqsDeadLetters, "s3": S3DeadLetters}
_NOUNS = {"kinesis": "stream", "sqs": "queue", "s3": "bucket"}


@asynccontextmanager
async def opened(config: Config, *, clock: Clock) -> AsyncIterator[DeadLetters | None]:
    """Yield the configured destination, which is there, and close it after; None if none is configured.

    What may pass by itself is waited for, up to ``aws.start_timeout_s``.

    Raises:
        AwsSetupError: there is no such stream, queue or bucket, or it may not be looked at.
        CredentialsError, EndpointError: as named.
        ConfigError: the file cannot be written.
    """
    if config.delivery.dead_letter is None:
        yield None
        return
    address = Address.of(config.delivery.dead_letter)
    async with AsyncExitStack() as stack:
        if address.kind == "file":
            yield await _file(stack, address, clock)
        else:
            yield await _aws(stack, address, address.kind, config, clock)


async def _file(stack: AsyncExitStack, address: Address, clock: Clock) -> DeadLetters:
    letters = stack.enter_context(closing(FileDeadLetters(address, clock=clock)))
    try:
        await letters.look()
    except OSError as error:
        raise ConfigError(
            f"cannot keep dead letters in {address}: expected a file that can be written, "
            f"found {told(error)}; correct delivery.dead_letter or make its folder"
        ) from error
    return letters


async def _aws(
    stack: AsyncExitStack, address: Address, kind: Literal["kinesis", "sqs", "s3"], config: Config, clock: Clock
) -> DeadLetters:
    from kcl_py.sessions import Sessions

    sessions, service = Sessions(), config.aws.service(kind)
    if address.region is not None:
        service = service.model_copy(update={"region": address.region})
    await stack.enter_async_context(sessions.kept_fresh(SystemClock()))
    client = await new_client(stack, sessions, kind, service, f"dead letters in {address}")
    place = f"{client.meta.region_name} at {origin(client.meta.endpoint_url)}"
    what = f"cannot keep dead letters in {address}, in {place}"
    letters: KinesisDeadLetters | SqsDeadLetters | S3DeadLetters = _KINDS[kind](client, address, clock=clock)
    try:
        await until_answered(letters.look, what, timeout_s=config.aws.start_timeout_s, clock=clock)
    except MissingError as error:
        noun = _NOUNS[kind]
        raise AwsSetupError(
            f"{what}: there is no such {noun}; correct delivery.dead_letter or create the {noun}"
        ) from error
    log.info("kcl_py.destination.found", destination=str(address), place=place)
    return letters
