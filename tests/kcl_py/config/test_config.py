"""The table of options, in code: defaults, ranges, rules between options, and what the sentences say."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import ValidationError

from kcl_py.config import Aws, Config, Delivery, Leases, Service
from kcl_py.errors import ConfigError
from kcl_py.options import options
from kcl_py.sources.source import LATEST, TRIM_HORIZON, Position, PositionKind

REQUIRED: dict[str, Any] = {"app": "demo", "stream": "flights", "processor": "flights:Flights"}
NINE_MS = 1_767_258_000_000
"""2026-01-01T09:00:00Z."""


def faults(**options: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        Config(**{**REQUIRED, **options})
    return caught.value.faults


def test_config_has_the_published_defaults() -> None:
    """Three options are enough; the others have the defaults that users read in the documentation."""
    config = Config(app="demo", stream="flights", processor="flights:Flights")
    assert config.grace_s == 20
    assert config.start == TRIM_HORIZON
    assert (config.leases.store, config.leases.failover_s, config.leases.handoff_timeout_s) == ("dynamodb", 10, 20)
    assert (config.fetch.max_records, config.fetch.idle_s, config.fetch.budget_bytes) == (10_000, 1, 256 << 20)
    assert (config.delivery.batch.max_records, config.delivery.batch.max_bytes) == (1000, 4 << 20)
    assert (config.delivery.retries, config.delivery.backoff_s, config.delivery.backoff_max_s) == (3, 0.5, 30)
    assert (config.checkpoint.mode, config.checkpoint.interval_s, config.log.level) == ("auto", None, "info")


def test_tables_are_named_after_the_app_when_not_named() -> None:
    """The lease table has the app's name, and the table of workers that of the Java client's metrics."""
    config = Config(app="demo", stream="flights", processor="flights:Flights")
    assert (config.leases.table, config.leases.workers_table) == ("demo", "demo-WorkerMetricStats")
    named = Config(**REQUIRED, leases=Leases(table="mine", workers_table="beats"))
    assert (named.leases.table, named.leases.workers_table) == ("mine", "beats")


@pytest.mark.parametrize(("failover_s", "expected"), [(3, (1, 0.3, 1)), (10, (10 / 3, 1, 1)), (300, (100, 30, 30))])
def test_lease_times_follow_from_the_failover_time(failover_s: float, expected: tuple[float, ...]) -> None:
    """Heartbeat, tick and margin cannot be set apart, so they always fit together."""
    leases = Leases(failover_s=failover_s)
    assert (leases.heartbeat_s, leases.tick_s, leases.margin_s) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("start", "position"),
    [
        ("trim_horizon", TRIM_HORIZON),
        ("TRIM_HORIZON", TRIM_HORIZON),
        ("latest", LATEST),
        ("Latest", LATEST),
        ("2026-01-01T09:00:00Z", Position(PositionKind.AT_TIMESTAMP, NINE_MS)),
        ("2026-01-01 10:00:00+01:00", Position(PositionKind.AT_TIMESTAMP, NINE_MS)),
        ("2026-01-01T09:00:00.0019Z", Position(PositionKind.AT_TIMESTAMP, NINE_MS + 1)),
        (datetime(2026, 1, 1, 9, tzinfo=UTC), Position(PositionKind.AT_TIMESTAMP, NINE_MS)),
        (datetime(2026, 1, 1, 4, tzinfo=timezone(timedelta(hours=-5))), Position(PositionKind.AT_TIMESTAMP, NINE_MS)),
        (LATEST, LATEST),
    ],
)
def test_start_is_a_position_when_it_means_one_thing(start: Any, position: Position) -> None:
    """A time counts in whole milliseconds, as AWS takes it."""
    assert Config(**REQUIRED, start=start).start == position


@pytest.mark.parametrize(
    "start",
    [
        "2026-01-01",
        "20260101",
        "2026-01-01T09:00:00",
        "09:00",
        "1767258000",
        "1767258000000",
        "1767258000.5",
        "yesterday",
        "",
        "  ",
        "at_timestamp",
        "1969-12-31T23:59:59Z",
        "2026-13-01T00:00:00Z",
        "9999-12-31T23:59:59-23:59",
        1767258000,
        datetime(2026, 1, 1, 9),  # noqa: DTZ001 - a time without zone is the fault
        {"kind": "LATEST"},
    ],
)
def test_start_is_a_fault_when_it_could_mean_two_things(start: Any) -> None:
    """Never a silent fall back to another position: that would skip data."""
    (fault,) = faults(start=start)
    assert fault.startswith("start: expected trim_horizon, latest or an ISO-8601 time with its zone")
    assert "+00:00Z" not in fault
    assert ":59Z?" not in fault


def test_start_without_zone_is_answered_with_the_same_time_in_utc() -> None:
    """The sentence shows what would be accepted."""
    (fault,) = faults(start="2026-01-01T09:00:00")
    assert fault.endswith("found '2026-01-01T09:00:00'; did you mean 2026-01-01T09:00:00Z?")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"grace_s": -1}, "grace_s: expected a number of at least 0, found '-1'"),
        ({"grace_s": "nan"}, "grace_s: expected a number of at least 0, found 'nan'"),
        ({"grace_s": "inf"}, "grace_s: expected a number of at least 0, found 'inf'"),
        ({"app": "a b"}, "app: expected a name (1 to 255 of a-z A-Z 0-9 _ . -), found 'a b'"),
        ({"app": 123}, "app: expected a name (1 to 255 of a-z A-Z 0-9 _ . -), found '123'"),
        ({"stream": "a/b"}, "stream: expected the name or ARN of a stream, found 'a/b'"),
        ({"stream": "orders.*"}, "stream: expected the name or ARN of a stream, found 'orders.*'"),
        ({"stream": "orders.>"}, "stream: expected the name or ARN of a stream, found 'orders.>'"),
        ({"stream": "*"}, "stream: expected the name or ARN of a stream, found '*'"),
        ({"stream": ""}, "stream: expected the name or ARN of a stream, found nothing"),
        ({"stream": "a" * 129}, "stream: expected the name or ARN of a stream, found '"),
        ({"processor": "flights.Flights"}, "processor: expected module:Class, found 'flights.Flights'"),
        ({"leases": {"failover_s": 0}}, "leases.failover_s: expected a number from 3 to 300, found '0'"),
        ({"leases": {"failover_s": 301}}, "leases.failover_s: expected a number from 3 to 300, found '301'"),
        ({"leases": {"max_leases": 0}}, "leases.max_leases: expected a whole number of at least 1, found '0'"),
        ({"leases": {"worker_id": "a/b"}}, "leases.worker_id: expected 1 to 200 characters, no space or slash"),
        (
            {"leases": {"billing": "cheap"}},
            "leases.billing: expected on_demand or a mapping of read, write, found 'cheap'",
        ),
        ({"leases": {"billing": []}}, "leases.billing: expected on_demand or a mapping of read, write, found a list"),
        (
            {"leases": {"billing": {"read": 1}}},
            "leases.billing.write: expected a whole number of at least 1, found nothing",
        ),
        (
            {"leases": {"billing": {"read": 0, "write": 1}}},
            "leases.billing.read: expected a whole number of at least 1, found '0'",
        ),
        ({"leases": {"store": "redis"}}, "leases.store: expected dynamodb or memory, found 'redis'"),
        ({"fetch": {"max_records": 0}}, "fetch.max_records: expected a whole number from 1 to 10000, found '0'"),
        ({"fetch": {"budget_bytes": 0}}, "fetch.budget_bytes: expected a whole number of at least 1, found '0'"),
        ({"fetch": {"idle_s": 0}}, "fetch.idle_s: expected a number above 0, found '0'"),
        (
            {"delivery": {"batch": {"max_records": 10_001}}},
            "delivery.batch.max_records: expected a whole number from 1 to 10000, found '10001'",
        ),
        ({"delivery": {"retries": "1.5"}}, "delivery.retries: expected a whole number of at least 0, found '1.5'"),
        (
            {"delivery": {"on_failure": "ignore"}},
            "delivery.on_failure: expected halt, dead_letter or skip, found 'ignore'",
        ),
        ({"delivery": {"concurrency": 0}}, "delivery.concurrency: expected a whole number of at least 1, found '0'"),
        (
            {"delivery": {"dead_letter": "failures", "on_failure": "dead_letter"}},
            "delivery.dead_letter: expected kinesis:STREAM (its name or ARN), sqs:QUEUE-URL, s3://BUCKET/PREFIX or "
            "file:PATH, found 'failures'",
        ),
        ({"checkpoint": {"interval_s": 0}}, "checkpoint.interval_s: expected a number above 0, found '0'"),
        ({"checkpoint": 5}, "checkpoint: expected a mapping of mode, interval_s, records, found '5'"),
        ({"log": {"level": ["info"]}}, "log.level: expected debug, info, warning or error, found a list"),
        ({"aws": {"endpoint": "localhost:4567"}}, "aws.endpoint: expected http(s)://host[:port] without user or path"),
        ({"aws": {"role": "admin"}}, "aws.role: expected the ARN of a role, found 'admin'"),
    ],
)
def test_option_out_of_range_is_named_with_what_was_expected_and_found(options: dict[str, Any], expected: str) -> None:
    """Nothing that cannot work gets past the construction."""
    (fault,) = faults(**options)
    assert fault.startswith(expected)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"leases": {"exclusive_id": True}}, "leases.exclusive_id: expected worker_id to be set beside it"),
        ({"delivery": {"backoff_s": 31}}, "delivery.backoff_max_s: expected at least backoff_s (31), found 30"),
        (
            {"delivery": {"on_failure": "dead_letter"}},
            "delivery.dead_letter: expected where records go, as on_failure is dead_letter, found nothing; set it to",
        ),
        (
            {"delivery": {"dead_letter": "kinesis:flights"}},
            "delivery.dead_letter: expected another stream than the one that is read, found 'flights'; if they are two",
        ),
        (
            {"app": "ab"},
            "app: expected a name that gives leases.table 3 to 255 characters, found one that gives it 2; "
            "change it or set leases.table",
        ),
        ({"app": "a" * 240}, "app: expected a name that gives leases.workers_table 3 to 255 characters, found one"),
        *(
            (
                {"checkpoint": {"mode": "manual", name: 7}},
                f"checkpoint.{name}: expected mode to be auto beside it, found manual, in which only the processor",
            )
            for name in ("interval_s", "records")
        ),
        (
            {"checkpoint": {"mode": "manual", "interval_s": 1, "records": 1_234_567}},
            "checkpoint.interval_s: expected mode to be auto beside it, found manual, in which only the processor "
            "stores checkpoints; leave interval_s and records out",
        ),
        ({"leases": {"workers_table": "demo"}}, "leases.workers_table: expected another table than leases.table"),
    ],
)
def test_options_that_do_not_fit_together_are_a_fault(options: dict[str, Any], expected: str) -> None:
    """Each value alone would be fine."""
    (fault,) = faults(**options)
    assert fault.startswith(expected)


ARN = "arn:aws:kinesis:{}:123456789012:stream/flights"


@pytest.mark.parametrize(
    "text",
    [
        "kinesis:failures",
        f"kinesis:{ARN.format('eu-north-1')}",
        "sqs:https://sqs.eu-west-1.amazonaws.com/123456789012/failures.fifo",
        "sqs:http://127.0.0.1:4567/000000000000/failures",
        "s3://failures",
        "s3://my.failures-2/letters/of_the_year/",
        "file:failures.jsonl",
        "file:/var/spool/dead letters",
    ],
)
@pytest.mark.parametrize("on_failure", ["halt", "dead_letter", "skip"])
def test_dead_letters_can_go_to_four_kinds_of_places(text: str, on_failure: Any) -> None:
    """Whatever happens by default: a processor can choose it for one record."""
    options: dict[str, Any] = REQUIRED | {"stream": ARN.format("eu-west-1")}
    config = Config(**options, delivery=Delivery(dead_letter=text, on_failure=on_failure))
    assert config.delivery.dead_letter == text


@pytest.mark.parametrize(
    "text",
    [
        "kinesis:",
        "kinesis:my stream",
        "sqs:failures",
        "sqs:https://user:secret@host/123456789012/failures",
        "sqs:https://sqs.eu-west-1.amazonaws.com/123456789012/failures?x=1",
        "s3:failures",
        "s3://Failures",
        "s3://failures/a b",
        "file:",
        "file:/var/spool/",
        "/var/spool/failures",
    ],
)
def test_place_that_can_be_none_is_a_fault(text: str) -> None:
    """Before anything is opened, and without the password that may be in it."""
    (fault,) = faults(delivery={"dead_letter": text})
    assert fault.startswith("delivery.dead_letter: expected kinesis:STREAM (its name or ARN), ")
    assert "secret" not in fault


def test_short_app_name_is_fine_when_tables_are_named_or_there_are_none() -> None:
    """No table of that name, no rules of tables."""
    assert Config(**{**REQUIRED, "app": "a"}, leases=Leases(table="abc")).app == "a"
    assert Config(**{**REQUIRED, "app": "a"}, leases=Leases(store="memory")).app == "a"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"strem": "x"}, "strem: expected a known key, found 'strem'; did you mean stream?"),
        ({"failover_s": 5}, "failover_s: expected a known key, found 'failover_s'; did you mean leases.failover_s?"),
        (
            {"leases": {"failover": 5}},
            "leases.failover: expected a known key of leases, found 'failover'; did you mean leases.failover_s?",
        ),
        ({"xyzzy": 1}, "xyzzy: expected a known key, found 'xyzzy'"),
        (
            {"leases": {"billing": {"read": 1, "write": 1, "wrote": 1}}},
            "leases.billing.wrote: expected a known key of leases.billing, found 'wrote'; "
            "did you mean leases.billing.write?",
        ),
        (
            {"leases.table": "x"},
            "leases.table: expected a known key, found 'leases.table'; did you mean table under leases?",
        ),
        ({"": 1}, "'': expected a known key, found ''"),
        ({"a\x1b]b": 1}, "a\\x1b]b: expected a known key, found 'a\\x1b]b'"),
        ({"k" * 70: 1}, f"{'k' * 60}…: expected a known key, found '{'k' * 60}…'"),
    ],
)
def test_unknown_key_is_a_fault_with_the_nearest_known_one(options: dict[str, Any], expected: str) -> None:
    """A typing error never turns into a default in silence."""
    assert faults(**options) == (expected,)


def test_all_faults_are_reported_at_once() -> None:
    """Nobody has to start five times to find five mistakes."""
    found = faults(grace_s="x", leases={"failover_s": 1, "store": "x"}, log={"level": "loud"}, other=1)
    assert [fault.partition(":")[0] for fault in found] == [
        "grace_s",
        "leases.store",
        "leases.failover_s",
        "log.level",
        "other",
    ]


def test_misspelt_key_is_named_before_the_option_that_lacks_it() -> None:
    """The cause first, then what follows from it; keys that nothing follows from come last."""
    options: dict[str, Any] = {
        "app": "demo",
        "procesor": "m:C",
        "stream": "flights",
        "grace": "1",
        "leases": {"billing": {"read": 1, "wrte": 1}, "store": "x"},
        "aws": {"start_timeout_s": 0},
    }
    with pytest.raises(ConfigError) as caught:
        Config(**options)
    assert [fault.partition(":")[0] for fault in caught.value.faults] == [
        "procesor",
        "processor",
        "aws.start_timeout_s",
        "leases.store",
        "leases.billing.wrte",
        "leases.billing.write",
        "grace",
    ]


def test_config_is_frozen() -> None:
    """What was checked stays as it was checked."""
    config = Config(**REQUIRED)
    with pytest.raises(ValidationError, match="frozen"):
        config.grace_s = 1
    with pytest.raises(ValidationError, match="frozen"):
        config.leases.failover_s = 1


def test_service_settings_override_those_for_all_of_aws() -> None:
    """One endpoint for all, another account for one."""
    aws = Aws(
        region="eu-west-1", endpoint="http://127.0.0.1:4567", dynamodb=Service(region="us-east-1", profile="leases")
    )
    assert aws.service("kinesis") == Service(region="eu-west-1", endpoint="http://127.0.0.1:4567")
    assert aws.service("dynamodb") == Service(region="us-east-1", profile="leases", endpoint="http://127.0.0.1:4567")


@pytest.mark.parametrize("bad", ["-1", "nan", "inf", "1e999", "soon"])
def test_no_option_takes_a_number_that_is_none_or_below_zero(bad: str) -> None:
    """B139: whichever it is; a pause, size or count of that kind would spin, block or hold two owners on a shard."""
    numbers = [option for option in options().values() if option.expected.startswith(("a number", "a whole number"))]
    assert len(numbers) > 25
    for option in numbers:
        given: Any = bad
        for name in reversed(option.path.split(".")):
            given = {name: given}
        found = faults(**given)
        assert any(fault.startswith(f"{option.path}: expected {option.expected}, found ") for fault in found), option


@pytest.mark.parametrize("stream", ["a", "orders.eu.v2", "Orders_2-b", "..", "a" * 128])
def test_stream_name_may_have_letters_digits_dots_underscores_and_hyphens(stream: str) -> None:
    """S2-01: dots are part of a name, and mean nothing."""
    assert Config(**REQUIRED | {"stream": stream}).stream == stream


def test_stream_can_be_an_arn() -> None:
    """Its name is the last part of it."""
    arn = "arn:aws:kinesis:eu-west-1:123456789012:stream/flights"
    config = Config(**{**REQUIRED, "stream": arn})
    assert (config.stream_name, config.stream_arn) == ("flights", arn)
    assert (Config(**REQUIRED).stream_name, Config(**REQUIRED).stream_arn) == ("flights", None)


def test_password_in_an_endpoint_is_neither_accepted_nor_shown() -> None:
    """Faults go to logs."""
    (fault,) = faults(aws={"endpoint": "http://me:hunter2@host"})
    assert "hunter2" not in fault
    assert "http://***@host" in fault


def test_value_under_an_unknown_key_is_not_shown() -> None:
    """It may be a secret put in the wrong place."""
    (fault,) = faults(aws={"secret_access_key": "hunter2"})
    assert "hunter2" not in fault
