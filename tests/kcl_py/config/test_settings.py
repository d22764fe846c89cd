"""Files and variables: what is read from them, which wins, and what is said when they are wrong."""

from pathlib import Path

import pytest

from kcl_py.config import Config, Provisioned
from kcl_py.errors import ConfigError
from kcl_py.options import options
from kcl_py.sources.source import PositionKind

REQUIRED = "app: demo\nstream: flights\nprocessor: flights:Flights\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that is not there yet."""
    return tmp_path / "worker.yaml"


def load(file: Path, text: str, **env: str) -> Config:
    file.write_text(text, encoding="utf-8")
    return Config.load(file, env=env)


def faults(file: Path, text: str, **env: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(file, text, **env)
    return [fault.removeprefix(f"{file}: ") for fault in caught.value.faults]


def test_scalars_are_converted_by_their_option_and_not_by_yaml(file: Path) -> None:
    """YAML would make a number of the app, a datetime of the start and a boolean of the stream."""
    config = load(
        file, "app: 123\nstream: yes\nprocessor: m:C\nstart: 2026-01-01T09:00:00+01:00\nleases: {failover_s: 1_0}\n"
    )
    assert (config.app, config.stream, config.leases.failover_s) == ("123", "yes", 10)
    assert config.start.kind is PositionKind.AT_TIMESTAMP


@pytest.mark.parametrize("null", ["null", "~", "", "Null", "NULL"])
def test_null_means_the_default(file: Path, null: str) -> None:
    """For an option, and for a section that was left empty."""
    config = load(file, REQUIRED + f"grace_s: {null}\naws: {null}\nleases: {{max_leases: {null}}}\n")
    assert (config.grace_s, config.aws.region, config.leases.max_leases) == (20, None, None)


def test_quoted_null_is_text(file: Path) -> None:
    """Whoever quotes it means the word."""
    assert load(file, REQUIRED.replace("demo", "'null'")).app == "null"


def test_capacity_of_new_tables_can_be_provisioned(file: Path) -> None:
    """Billing is a word or a mapping."""
    config = load(file, REQUIRED + "leases: {billing: {read: 5, write: 6}}\n")
    assert config.leases.billing == Provisioned(read=5, write=6)


def test_environment_wins_over_file_and_file_over_default(file: Path) -> None:
    """One image, many places."""
    text = REQUIRED + "aws: {endpoint: 'http://file:1', region: eu-west-1}\nleases: {billing: on_demand}\n"
    config = load(
        file,
        text,
        KCL_AWS__ENDPOINT="http://env:2",
        KCL_DELIVERY__BATCH__MAX_RECORDS="7",
        KCL_LEASES__BILLING__READ="1",
        KCL_LEASES__BILLING__WRITE="2",
        KCL_APP="other",
    )
    assert (config.app, config.aws.endpoint, config.aws.region) == ("other", "http://env:2", "eu-west-1")
    assert config.delivery.batch.max_records == 7
    assert config.leases.billing == Provisioned(read=1, write=2)


def test_every_option_has_a_variable_of_its_own() -> None:
    """No two options share one."""
    variables = [option.variable for option in options().values()]
    assert len(set(variables)) == len(variables)
    assert "KCL_LEASES__FAILOVER_S" in variables


def test_empty_variable_gives_the_default_back(file: Path) -> None:
    """The way to unset an option of the file from outside."""
    assert load(file, REQUIRED + "leases: {max_leases: 3}\n", KCL_LEASES__MAX_LEASES="").leases.max_leases is None


def test_fault_of_a_variable_names_the_variable(file: Path) -> None:
    """Else one would look for it in the file."""
    assert faults(file, REQUIRED, KCL_GRACE_S="soon") == [
        "grace_s (from KCL_GRACE_S): expected a number of at least 0, found 'soon'"
    ]


def test_part_of_a_capacity_in_a_variable_asks_for_the_other_part(file: Path) -> None:
    """The variable that is there is not to blame."""
    assert faults(file, REQUIRED, KCL_LEASES__BILLING__READ="0") == [
        "leases.billing.read (from KCL_LEASES__BILLING__READ): expected a whole number of at least 1, found '0'",
        "leases.billing.write: expected a whole number of at least 1, found nothing",
    ]


def test_unknown_variable_is_a_warning_only(file: Path) -> None:
    """Kubernetes injects KCL_PORT for a Service named kcl."""
    with pytest.warns(UserWarning, match="^KCL_PORT: not an option, ignored$"):
        assert load(file, REQUIRED, KCL_PORT="tcp://10.0.0.1:80").app == "demo"


def test_mistyped_variable_is_warned_about_with_the_right_one(file: Path) -> None:
    """A single underscore is the usual mistake."""
    with pytest.warns(UserWarning, match="did you mean KCL_AWS__ENDPOINT"):
        load(file, REQUIRED, KCL_AWS_ENDPOINT="http://127.0.0.1:4567")


def test_other_variables_are_left_alone(file: Path) -> None:
    """Only KCL_ is ours."""
    assert load(file, REQUIRED, AWS_REGION="eu-west-1", KCLX="1").aws.region is None


AWS_HAS_NONE = "expected a region such as eu-west-1, found 'eu-west1'; AWS has none of that form"


@pytest.mark.parametrize(
    ("text", "env", "where"),
    [
        ("aws: {region: eu-west1}\n", {}, "aws.region"),
        ("aws: {region: eu-west-1, dynamodb: {region: eu-west1}}\n", {}, "aws.dynamodb.region"),
        ("", {"AWS_DEFAULT_REGION": "eu-west1"}, "AWS_DEFAULT_REGION"),
        (
            "stream: arn:aws:kinesis:eu-west1:123456789012:stream/flights\naws: {dynamodb: {region: eu-west-1}}\n",
            {},
            "stream",
        ),
        (
            "aws: {region: eu-west-1}\n"
            "delivery: {dead_letter: 'sqs:https://sqs.eu-west1.amazonaws.com/123456789012/failures'}\n",
            {},
            "delivery.dead_letter",
        ),
        (
            "aws: {region: eu-west-1, s3: {region: eu-west1}}\ndelivery: {dead_letter: 's3://failures'}\n",
            {},
            "aws.s3.region",
        ),
    ],
)
def test_region_without_a_regions_form_is_warned_about(file: Path, text: str, env: dict[str, str], where: str) -> None:
    """Once, wherever it comes from: AWS would be asked for at a host that there is not."""
    required = REQUIRED.replace("stream: flights\n", "") if "stream:" in text else REQUIRED
    with pytest.warns(UserWarning, match=f"^{where}: {AWS_HAS_NONE}") as warned:
        load(file, required + text, **env)
    assert len(warned) == 1


@pytest.mark.parametrize(
    "region", ["us-east-1", "us-gov-west-1", "eusc-de-east-1", "us-isob-east-1", "ap-southeast-10"]
)
def test_regions_of_aws_have_a_regions_form(file: Path, region: str) -> None:
    """Those of all its partitions; a warning here would be an error."""
    assert load(file, REQUIRED + f"aws: {{region: {region}}}\n").aws.region == region


@pytest.mark.parametrize(
    ("text", "env"),
    [
        ("aws: {region: local, endpoint: http://127.0.0.1:4567}\n", {}),
        ("aws: {region: local, kinesis: {endpoint: http://127.0.0.1:4567}}\nleases: {store: memory}\n", {}),
        ("aws: {region: local}\n", {"AWS_ENDPOINT_URL": "http://127.0.0.1:4567"}),
    ],
)
def test_any_region_will_do_at_an_endpoint_of_ones_own(file: Path, text: str, env: dict[str, str]) -> None:
    """Others have regions of other names."""
    assert load(file, REQUIRED + text, **env).aws.region == "local"


def test_unknown_key_without_value_is_a_fault_too(file: Path) -> None:
    """Null means the default only where there is one."""
    assert faults(file, REQUIRED + "colour:\n") == ["colour: expected a known key, found 'colour'"]


def test_missing_required_options_are_all_named(file: Path) -> None:
    """Null counts as missing."""
    assert faults(file, "app:\n") == [
        "app: expected a name (1 to 255 of a-z A-Z 0-9 _ . -), found nothing",
        "stream: expected the name or ARN of a stream, found nothing",
        "processor: expected module:Class, found nothing",
    ]
