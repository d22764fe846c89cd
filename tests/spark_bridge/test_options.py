"""Options are checked at ``load()``, and every fault names its option."""

import pytest

from kcl_py.errors import ConfigError
from kcl_py.sources.source import LATEST, TRIM_HORIZON, Position, PositionKind
from spark_bridge import KclDataSource
from spark_bridge.options import Options


def faults_of(**options: str) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        KclDataSource(options)
    return list(refused.value.faults)


def test_options_have_the_published_defaults() -> None:
    """Only the stream must be given."""
    options = Options.parse({"stream": "s"})
    assert (options.start, options.max_rows_per_batch, options.max_buffered_bytes) == (TRIM_HORIZON, 100_000, 67108864)
    assert (options.fail_on_data_loss, options.spool_dir, options.region, options.endpoint) == (True, None, None, None)


@pytest.mark.parametrize("name", ["maxRowsPerBatch", "maxrowsperbatch", "MAX_ROWS_PER_BATCH", "max_rowsPerBatch"])
def test_option_is_known_whatever_its_case_and_underscores(name: str) -> None:
    """Spark lower-cases names; Python people write underscores."""
    assert Options.parse({"stream": "s", name: "7"}).max_rows_per_batch == 7


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("trim_horizon", TRIM_HORIZON),
        ("TRIM_HORIZON", TRIM_HORIZON),
        ("latest", LATEST),
        ("Latest", LATEST),
        ("2026-01-31T09:00:00Z", Position(PositionKind.AT_TIMESTAMP, 1769850000000)),
        ("2026-01-31T10:00:00.5+01:00", Position(PositionKind.AT_TIMESTAMP, 1769850000500)),
    ],
)
def test_start_is_a_word_or_a_time_with_its_zone(text: str, start: Position) -> None:
    """The same forms as in the YAML of kcl_py."""
    assert Options.parse({"stream": "s", "start": text}).start == start


@pytest.mark.parametrize(
    "text",
    ["", " ", "earliest", "now", "2026-01-31", "2026-01-31T09:00:00", "1769850000", "1769850000000", "at_timestamp"],
)
def test_start_is_refused_when_it_could_be_misunderstood(text: str) -> None:
    """Never a silent fallback to another place in the stream."""
    [fault] = faults_of(stream="s", start=text)
    assert fault.startswith("option start: expected trim_horizon, latest or an ISO-8601 time with its zone")


def test_option_is_refused_when_it_is_unknown_and_the_nearest_is_named() -> None:
    """A misspelt limit must not be ignored."""
    [fault] = faults_of(stream="s", maxRowPerBatch="5")
    assert fault.startswith("option maxRowPerBatch: expected one of stream, start, region, ")
    assert fault.endswith("; did you mean maxRowsPerBatch?")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("maxRowsPerBatch", "0", "a whole number of at least 1"),
        ("maxRowsPerBatch", "many", "a whole number of at least 1"),
        ("maxBufferedBytes", "64m", "a whole number of at least 1"),
        ("maxPartitions", "-1", "a whole number of at least 1"),
        ("failOnDataLoss", "yes", "true or false"),
        ("spoolDir", " ", "a folder"),
        ("region", "not a region", "a region such as eu-west-1"),
        ("endpoint", "localhost:4567", "http(s)://host[:port] without user or path"),
        ("stream", "a stream", "the name or ARN of a stream"),
    ],
)
def test_option_is_refused_when_its_value_is_wrong(name: str, value: str, expected: str) -> None:
    """The sentence says what was expected and what was found."""
    [fault] = faults_of(**{"stream": "s", name: value})
    assert fault.startswith(f"option {name}: expected {expected}, found")


def test_all_faults_are_told_at_once() -> None:
    """Nobody wants to correct them one by one."""
    assert len(faults_of(start="now", maxRowsPerBatch="x", colour="red")) == 4


def test_password_in_an_endpoint_is_not_repeated() -> None:
    """Errors end up in logs."""
    [fault] = faults_of(stream="s", endpoint="http://user:hunter2@host")
    assert "hunter2" not in fault


def test_tree_is_configured_by_the_options() -> None:
    """Segments never exceed a batch, and the tree holds no more than may be buffered."""
    config = Options.parse(
        {"stream": "s", "maxRowsPerBatch": "500", "maxBufferedBytes": "1000000", "region": "eu-west-1"}
    ).config()
    assert (config.delivery.batch.max_records, config.fetch.budget_bytes) == (500, 1_000_000)
    assert (config.leases.store, config.aws.region, config.start) == ("memory", "eu-west-1", TRIM_HORIZON)
