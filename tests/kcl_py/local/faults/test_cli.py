"""``kcl local --faults`` as a user would run it: a bad day, and what is told of it."""

import re
from pathlib import Path
from urllib.request import urlopen

import pytest
from botocore.exceptions import ClientError

from tests.kcl_py.local.test_cli import failing, running
from tests.kcl_py.local.world import boto


def test_local_with_faults_tells_at_the_end_how_often_each_rule_happened(tmp_path: Path) -> None:
    """The rules are told of at the start, with the seed; health is never faulted."""
    file = tmp_path / "faults.yaml"
    file.write_text(
        "seed: 7\nfaults:\n"
        "- {service: kinesis, operation: ListStreams, kind: error, code: AccessDeniedException, calls: [2]}\n"
        "- {service: dynamodb, kind: hang}\n"
        "- {kind: delay, delay_s: 0.01}\n",
        encoding="utf-8",
    )
    with running("--port", "0", "--faults", str(file)) as (process, line):
        url = line.split()[1]
        with boto("kinesis", url) as client:
            client.list_streams()
            with pytest.raises(ClientError, match="AccessDeniedException"):
                client.list_streams()
        with urlopen(url + "/health") as reply:
            assert reply.status == 200
        process.terminate()
        assert process.wait(20) == 0
        assert process.stdout
        assert process.stderr
        output, errors = process.stdout.read(), process.stderr.read()
    assert errors == ""
    assert f"A bad day: 3 rules of {file}, seed 7." in output
    assert output.endswith(
        "The bad day, seed 7:\n"
        "  rule 1: error in kinesis ListStreams: 1 of 2 calls\n"
        "  rule 2: hang in dynamodb: no such call\n"
        "  rule 3: delay in any operation: 1 of 2 calls (ListStreams 1)\n"
    )


def test_local_draws_a_seed_where_the_file_has_none_and_tells_it(tmp_path: Path) -> None:
    """So that the day can be had again."""
    file = tmp_path / "faults.yaml"
    file.write_text("faults: [{kind: hang}]", encoding="utf-8")
    with running("--port", "0", "--faults", str(file)) as (process, _):
        process.terminate()
        assert process.stdout
        output = process.stdout.read()
    seeds = re.findall(r"seed ([0-9]+)", output)
    assert (len(seeds), len(set(seeds))) == (2, 1)


def test_a_file_that_makes_no_sense_is_one_error_line_and_exit_2(tmp_path: Path) -> None:
    """Nothing is served."""
    file = tmp_path / "faults.yaml"
    file.write_text("faults: [{kind: hang, operation: Put}]", encoding="utf-8")
    code, errors = failing("--port", "0", "--faults", str(file))
    assert (code, errors.count("\n")) == (2, 1)
    assert errors.startswith(
        f"error: {file}: rule 1: operation: expected an operation of kinesis, dynamodb, s3 or sqs, "
    )
    assert failing("--faults", "nowhere.yaml") == (
        2,
        "error: nowhere.yaml: expected a readable file, found: No such file or directory\n",
    )
