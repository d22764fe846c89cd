"""A bad day as a file: what it may say, and what is told of one that makes no sense."""

from pathlib import Path

import pytest

from kcl_py.errors import ConfigError
from kcl_py.local.faults.fault import Fault, Kind
from kcl_py.local.faults.script import Script, read_script


def write(folder: Path, text: str) -> str:
    file = folder / "faults.yaml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_script_of_every_field_is_read(tmp_path: Path) -> None:
    """Numbers are numbers, and a field without value is as good as none."""
    file = write(
        tmp_path,
        """
        seed: 7
        faults:
          - {service: kinesis, operation: GetRecords, kind: throttle, probability: 0.1, code: ThrottlingException}
          - {service: dynamodb, operation: UpdateItem, kind: lost_reply, calls: [3, 4], delay_s: 2.5}
          - {kind: delay, delay_s: 2, probability: 1e-2, times: 9}
          - kind: stale
            operation:
        """,
    )
    assert read_script(file) == Script(
        7,
        (
            Fault(
                service="kinesis",
                operation="GetRecords",
                kind=Kind.THROTTLE,
                probability=0.1,
                code="ThrottlingException",
            ),
            Fault(service="dynamodb", operation="UpdateItem", kind=Kind.LOST_REPLY, calls=(3, 4), delay_s=2.5),
            Fault(kind=Kind.DELAY, delay_s=2, probability=0.01, times=9),
            Fault(kind=Kind.STALE),
        ),
    )
    assert read_script(write(tmp_path, "faults: [{kind: hang}]")).seed is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "expected a mapping of seed and faults, found nothing"),
        ("- {kind: hang}", "expected a mapping of seed and faults, found a list"),
        ("faults: [", "expected YAML, found a mistake: "),
        ("seed: 1", "faults: expected a list of rules, found nothing"),
        ("faults: []", "faults: expected a list of rules, found an empty one"),
        ("faults: {kind: hang}", "faults: expected a list of rules, found a mapping"),
        ("seed: x\nfaults: [{kind: hang}]", "seed: expected a whole number, found 'x'"),
        ("sead: 1\nfaults: [{kind: hang}]", "'sead': expected seed or faults; did you mean seed?"),
        ("faults: [hang]", "rule 1: expected a mapping such as {kind: error, operation: PutItem}, found 'hang'"),
        (
            "faults: [{kind: hang}, {service: kinesis}]",
            "rule 2: kind: expected error, lost_reply, delay, hang, throttle, partial, stale, reset or truncated, "
            "found nothing",
        ),
        (
            "faults: [{kind: slow}]",
            "rule 1: kind: expected error, lost_reply, delay, hang, throttle, partial, stale, reset or truncated, "
            "found 'slow'",
        ),
        (
            "faults: [{kind: hang, call: 3}]",
            "rule 1: 'call': expected kind, service, operation, calls, probability, times, code or delay_s; "
            "did you mean calls?",
        ),
        (
            "faults: [{kind: hang, calls: 3}]",
            "rule 1: calls: expected a list of the numbers of calls, such as [3, 4], found '3'",
        ),
        ("faults: [{kind: hang, calls: [a]}]", "rule 1: calls: expected a list of the numbers of calls, such as"),
        ("faults: [{kind: hang, probability: x}]", "rule 1: probability: expected a number from 0 to 1, found 'x'"),
        ("faults: [{kind: hang, probability: 2}]", "rule 1: probability: expected 0 to 1, found 2"),
        ("faults: [{kind: hang, times: 1.5}]", "rule 1: times: expected a whole number, found '1.5'"),
        ("faults: [{kind: delay, delay_s: [1]}]", "rule 1: delay_s: expected a number of seconds, found ['1']"),
        (
            "faults: [{kind: hang, calls: [1, 2.5]}]",
            "rule 1: calls: expected a list of the numbers of calls, such as [3, 4], found ['1', '2.5']",
        ),
        (
            "faults: [{kind: hang, calls: []}]",
            "rule 1: calls: expected a list of the numbers of calls, such as [3, 4], found []",
        ),
        (
            "faults: [{kind: hang, calls: [1, 2, 3, 4, 5, x]}]",
            "rule 1: calls: expected a list of the numbers of calls, such as [3, 4], found a list",
        ),
        (
            "faults: [{kind: HANG}]",
            "rule 1: kind: expected error, lost_reply, delay, hang, throttle, partial, stale, reset or truncated, "
            "found 'HANG'; did you mean hang?",
        ),
        ("faults: [{kind: delay, delay_s: .inf}]", "rule 1: delay_s: expected a number of seconds, found '.inf'"),
        ("faults: [{kind: [hang]}]", "rule 1: kind: expected error, "),
        (
            "faults: [{kind: stale, operation: PutItm}]",
            "rule 1: operation: expected an operation of kinesis, dynamodb, s3 or sqs, found 'PutItm'; "
            "did you mean PutItem?",
        ),
        ("faults: [{kind: hang, service: {}}]", "rule 1: service: expected the name of a service, found a mapping"),
        ("faults:\n- kind: hang\n  kind: error\n", "faults.kind: expected the key once, found it again on line 3"),
    ],
)
def test_script_that_makes_no_sense_is_told_of(tmp_path: Path, text: str, expected: str) -> None:
    """File, rule, field, what was expected, what was found."""
    file = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_script(file)
    assert str(caught.value).startswith(f"{file}: {expected}")


def test_script_says_everything_that_is_wrong_in_one_line(tmp_path: Path) -> None:
    """And the file once."""
    file = write(tmp_path, "faults: [{kind: hang, code: x, times: 0}, {kind: hung}]")
    with pytest.raises(ConfigError) as caught:
        read_script(file)
    assert str(caught.value) == (
        f"{file}: rule 1: times: expected 1 or more, found 0; "
        "rule 1: code: expected none for kind hang, found 'x'; "
        "rule 2: kind: expected error, lost_reply, delay, hang, throttle, partial, stale, reset or truncated, "
        "found 'hung'; did you mean hang?"
    )
