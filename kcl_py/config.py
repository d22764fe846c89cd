"""The one table of options: what ``FILE.yaml``, the environment and code can set.

Every option has its type, default, range and meaning here and nowhere else; ``docs/configuration.md`` is tested against
it. Reading files and the environment is in ``kcl_py.settings``. Never opens a socket, never holds a secret.
Seconds end in ``_s``, sizes in ``_bytes``.
"""

import re
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from kcl_py.errors import ConfigError
from kcl_py.option_types import (
    DOTTED,
    NAME,
    STREAM,
    TABLE,
    DeadLetterAddress,
    Endpoint,
    Positive,
    Seconds,
    Start,
    TableName,
    Tags,
    Text,
    lower,
    matches,
)
from kcl_py.sources.source import TRIM_HORIZON

if TYPE_CHECKING:
    from collections.abc import Mapping

MARGIN_MIN_S = 1.0
"""Least time between a holder's own deadline and the expiry that others see: clocks drift and timers are late."""

ServiceName = Literal["kinesis", "dynamodb", "sqs", "s3"]


class Section(BaseModel):
    """A mapping of options; frozen, and unknown keys are faults."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)


class Service(Section):
    """How one AWS service is reached; null means as botocore finds it."""

    region: Annotated[str, matches(r"[a-z0-9-]+"), Text("a region such as eu-west-1")] | None = Field(
        default=None, description="AWS region"
    )
    profile: str | None = Field(default=None, description="profile of the shared AWS files")
    role: Annotated[str, matches(r"arn:aws[a-z-]*:iam::\d{12}:role/\S+"), Text("the ARN of a role")] | None = Field(
        default=None, description="role to assume, an ARN"
    )
    endpoint: Endpoint | None = Field(default=None, description="another address than AWS's, such as that of kcl local")


class Aws(Service):
    """AWS access for all services, with overrides for each."""

    start_timeout_s: Seconds = Field(default=30.0, description="longest time for AWS to answer while the worker starts")
    kinesis: Service = Field(default=Service(), description="overrides for Kinesis")
    dynamodb: Service = Field(default=Service(), description="overrides for DynamoDB")
    sqs: Service = Field(default=Service(), description="overrides for SQS, where dead letters may go")
    s3: Service = Field(default=Service(), description="overrides for S3, where dead letters may go")

    def service(self, name: ServiceName) -> Service:
        """Return the settings of one service: its overrides over those of ``aws``."""
        own: Service = getattr(self, name)
        return Service(**{key: getattr(own, key) or getattr(self, key) for key in Service.model_fields})


class Provisioned(Section):
    """Capacity of the tables that we create."""

    read: Positive = Field(description="read units a second")
    write: Positive = Field(description="write units a second")


class Leases(Section):
    """Where leases are kept and how fast they move."""

    store: Literal["dynamodb", "memory"] = Field(default="dynamodb", description="memory: one worker, for trying out")
    table: TableName = Field(default="", description="lease table; default: the app's name")
    workers_table: TableName = Field(
        default="", description="table of live workers; default: `<app>-WorkerMetricStats`"
    )
    worker_id: Annotated[str, matches(r"[^\s/\x00]{1,200}"), Text("1 to 200 characters, no space or slash")] | None = (
        Field(default=None, description="this worker's name; default: `<host>-<pid>-<8 hex digits>`")
    )
    exclusive_id: bool = Field(
        default=False, description="worker_id is promised to be unique, so its old rows are taken at once"
    )
    failover_s: float = Field(default=10.0, ge=3, le=300, description="a lease not renewed this long is taken over")
    strategy: Literal["count", "throughput"] = Field(
        default="count", description="what workers share evenly: the number of shards, or their bytes a second"
    )
    max_leases: Positive | None = Field(default=None, description="most shards this worker holds")
    handoff_timeout_s: Seconds = Field(default=20.0, description="longest drain for a handover to another worker")
    on_recreated: Literal["fail", "reset"] = Field(
        default="fail", description="if the stream was deleted and created anew"
    )
    create: bool = Field(default=True, description="create tables that are missing")
    billing: Literal["on_demand"] | Provisioned = Field(
        default="on_demand", description="billing of tables that we create"
    )

    tags: Tags = Field(default={}, description="tags of tables that we create; in the environment `name=value,...`")
    pitr: bool = Field(default=False, description="point-in-time recovery of a lease table that we create")
    deletion_protection: bool = Field(
        default=False, description="protection against deletion of a lease table that we create"
    )
    kms_key: Annotated[str, matches(r"\S{1,2048}"), Text("the id, ARN or alias of a KMS key")] | None = Field(
        default=None, description="KMS key of tables that we create; default: the one that DynamoDB owns"
    )

    @model_validator(mode="after")
    def _check_exclusive_id(self) -> Self:
        if self.exclusive_id and self.worker_id is None:
            raise ValueError("exclusive_id: expected worker_id to be set beside it, found a generated one")
        return self

    @property
    def heartbeat_s(self) -> float:
        """Time between two renewals of a lease, in seconds: a third of ``failover_s``."""
        return self.failover_s / 3

    @property
    def tick_s(self) -> float:
        """Time between two looks at the live workers, in seconds: a tenth of ``failover_s``."""
        return self.failover_s / 10

    @property
    def margin_s(self) -> float:
        """How long before its lease could expire a holder stops by itself, in seconds."""
        return max(MARGIN_MIN_S, self.failover_s / 10)


class Fetch(Section):
    """Reading from the stream."""

    max_records: int = Field(default=10_000, ge=1, le=10_000, description="most records of one read (AWS: 10,000)")
    idle_s: Seconds = Field(default=1.0, description="pause after an empty read")
    prefetch_records: Positive = Field(default=20_000, description="records held ready for each shard")
    prefetch_bytes: Positive = Field(default=20_971_520, description="bytes held ready for each shard")
    budget_bytes: Positive = Field(
        default=268_435_456, description="payload bytes held by the whole worker, and one read more"
    )


class Batch(Section):
    """What is handed over at once."""

    max_records: int = Field(default=1000, ge=1, le=10_000, description="most records of one batch")
    max_bytes: Positive = Field(default=4_194_304, description="most payload bytes of one batch")


class MaxAhead(Section):
    """How far reading may be ahead of the first unfinished record."""

    records: Positive = Field(default=10_000, description="most records read but not yet finished")
    bytes: Positive = Field(default=33_554_432, description="the same in payload bytes")
    seconds: Seconds = Field(
        default=60.0, description="longest a record may hold up the checkpoint while reading goes on"
    )


class RateLimit(Section):
    """How much is handed over a second in the whole worker; null is without limit."""

    records: Positive | None = Field(default=None, description="most records handed over a second, in the whole worker")
    bytes: Positive | None = Field(default=None, description="the same in payload bytes")


class Delivery(Section):
    """Handing records to the processor."""

    batch: Batch = Field(default=Batch(), description="what is handed over at once")
    ordering: Literal["key", "shard", "none"] = Field(
        default="key", description="what `process` gets one after the other: records of a key, of a shard, or none"
    )
    concurrency: Positive = Field(default=64, description="most records in `process` at a time, in the whole worker")
    attempt_timeout_s: Seconds | None = Field(
        default=None, description="an attempt that takes longer is cancelled and has failed"
    )
    retries: int = Field(default=3, ge=0, description="repetitions of what has failed")
    backoff_s: Seconds = Field(default=0.5, description="pause before the first repetition; doubles with each")
    backoff_max_s: Seconds = Field(default=30.0, description="longest pause between repetitions")
    on_failure: Literal["halt", "dead_letter", "skip"] = Field(
        default="halt",
        description="after the last repetition: the shard stops and keeps its place, the record goes to "
        "`dead_letter`, or it is passed over with an error in the log",
    )
    executor: Literal["thread", "process"] | None = Field(
        default=None, description="where hooks run that are `def`; default: none may be, all are `async def`"
    )
    dead_letter: DeadLetterAddress | None = Field(
        default=None, description="where records go that are given up with `dead_letter`"
    )
    max_ahead: MaxAhead = Field(default=MaxAhead(), description="how far reading may run ahead of finishing")
    rate: RateLimit = Field(default=RateLimit(), description="how much is handed over a second")

    @model_validator(mode="after")
    def _check_dead_letter(self) -> Self:
        if self.on_failure == "dead_letter" and self.dead_letter is None:
            raise ValueError(
                "dead_letter: expected where records go, as on_failure is dead_letter, found nothing; "
                "set it to s3://BUCKET/PREFIX, say"
            )
        return self

    @model_validator(mode="after")
    def _check_backoff(self) -> Self:
        if self.backoff_max_s < self.backoff_s:
            raise ValueError(
                f"backoff_max_s: expected at least backoff_s ({self.backoff_s:g}), found {self.backoff_max_s:g}"
            )
        return self


class Checkpoint(Section):
    """When progress is stored."""

    mode: Literal["auto", "manual"] = Field(default="auto", description="manual: only when the processor asks")
    interval_s: Seconds | None = Field(default=None, description="default: with each heartbeat; with auto only")
    records: Positive | None = Field(default=None, description="also after this many finished records; with auto only")

    @model_validator(mode="after")
    def _check_mode(self) -> Self:
        is_set = [name for name in ("interval_s", "records") if getattr(self, name) is not None]
        if self.mode == "manual" and is_set:
            raise ValueError(
                f"{is_set[0]}: expected mode to be auto beside it, found manual, in which only the processor stores "
                f"checkpoints; leave {' and '.join(is_set)} out"
            )
        return self


class Log(Section):
    """What is logged to stderr."""

    level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(lower)] = Field(
        default="info", description="debug also shows tracebacks"
    )
    format: Literal["auto", "text", "json"] = Field(default="auto", description="auto: text on a terminal, else JSON")


class Config(Section):
    """All options of a worker; read only.

    Raises:
        ConfigError: with one fault for each option that is wrong; never ``pydantic.ValidationError``.
    """

    app: Annotated[str, matches(f"{NAME}{{1,255}}"), Text("a name (1 to 255 of a-z A-Z 0-9 _ . -)")] = Field(
        description="name of the application: workers with the same one share the shards"
    )
    stream: Annotated[str, matches(STREAM), Text("the name or ARN of a stream")] = Field(
        description="stream to read: its name or ARN"
    )
    processor: Annotated[str, matches(f"{DOTTED}:{DOTTED}"), Text("module:Class")] = Field(
        description="your RecordProcessor as module:Class"
    )
    grace_s: float = Field(default=20.0, ge=0, description="time to finish what is running when the worker stops")
    start: Start = Field(default=TRIM_HORIZON, description="where to begin on a shard without a checkpoint")
    aws: Aws = Field(default=Aws(), description="access to AWS")
    leases: Leases = Field(default=Leases(), description="sharing shards between workers")
    fetch: Fetch = Field(default=Fetch(), description="reading from the stream")
    delivery: Delivery = Field(default=Delivery(), description="handing records to the processor")
    checkpoint: Checkpoint = Field(default=Checkpoint(), description="storing progress")
    log: Log = Field(default=Log(), description="logging to stderr")

    if not TYPE_CHECKING:  # type checkers keep the signature made from the fields

        def __init__(self, **values: object) -> None:
            try:
                super().__init__(**values)
            except ValidationError as invalid:
                from kcl_py.faults import faults_of

                raise ConfigError(*faults_of(invalid, values)) from None

    @model_validator(mode="after")
    def _check_dead_letter(self) -> Self:
        kind, _, other = (self.delivery.dead_letter or "").partition(":")
        names = {other.rpartition("/")[2], self.stream_name}
        if kind == "kinesis" and len(names) == 1 and (other == self.stream or not (":" in other and self.stream_arn)):
            raise ValueError(
                f"delivery.dead_letter: expected another stream than the one that is read, found {other!r}; "
                "if they are two of the same name, write both as ARNs"
            )
        return self

    @model_validator(mode="after")
    def _name_tables(self) -> Self:
        table = self.leases.table or self.app
        workers_table = self.leases.workers_table or f"{self.app}-WorkerMetricStats"
        if self.leases.store == "dynamodb":
            for key, name in (("table", table), ("workers_table", workers_table)):
                if re.fullmatch(TABLE, name) is None:  # so it was made of the app's, as one that is set was checked
                    raise ValueError(
                        f"app: expected a name that gives leases.{key} 3 to 255 characters, found one that gives it "
                        f"{len(name)}; change it or set leases.{key}"
                    )
            if table == workers_table:
                raise ValueError(
                    f"leases.workers_table: expected another table than leases.table, found {table!r} in both"
                )
        named = self.leases.model_copy(update={"table": table, "workers_table": workers_table})
        object.__setattr__(self, "leases", named)  # before anyone has seen it, so it is frozen all the same
        return self

    @classmethod
    def load(cls, path: str | PathLike[str], env: "Mapping[str, str] | None" = None) -> Self:
        """Read a YAML file; ``KCL_…`` variables of ``env`` (default: ``os.environ``) win over it.

        An unknown ``KCL_…`` variable is a ``UserWarning``: Kubernetes injects such for a Service named kcl. So is a
        region that has no region's form, where no endpoint is set.

        Raises:
            ConfigError: with all faults of the file and the environment.
        """
        from kcl_py.settings import load

        return load(cls, path, env)

    @property
    def stream_name(self) -> str:
        """The stream's name, also where ``stream`` is an ARN."""
        return self.stream.rpartition("/")[2]

    @property
    def stream_arn(self) -> str | None:
        """The stream's ARN if ``stream`` is one."""
        return self.stream if ":" in self.stream else None
