"""What a person gives by mistake is refused at once, in one sentence, instead of being taken for something else."""

import asyncio
from typing import Any

import pytest

from actors import SystemClock
from kcl_py import Checkpointer, ConfigError, ProcessorError, RecordBatch, RecordProcessor
from kcl_py.config import Batch, Delivery
from kcl_py.local.errors import ModelError
from kcl_py.testing import FakeStream, Fault, FaultKind, record, run_processor


class Fine(RecordProcessor):
    """Finds nothing wrong with records."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None: ...


def run(*arguments: Any, **options: Any) -> Any:
    return asyncio.run(run_processor(*arguments, **options))


def test_instance_instead_of_its_class_is_refused() -> None:
    """With the name of the class; a name, too, as it stands in the YAML file."""
    with pytest.raises(ProcessorError, match=r"'.*:Fine': expected a subclass .* found an instance of one; give the"):
        run(Fine(), ["a"])
    with pytest.raises(ProcessorError, match=r"cannot use processor 'mine:Fine': expected a subclass .*, found str"):
        run("mine:Fine", ["a"])


@pytest.mark.parametrize("records", ["hello", b"hello", bytearray(b"hello"), {"a": 1}, record("a"), None, 5])
def test_records_that_are_no_list_of_them_are_refused(records: Any) -> None:
    """A text would be one record for each letter, bytes one of zeros for each byte."""
    with pytest.raises(
        TypeError, match=f"^cannot put records: expected a list of payloads, found {type(records).__name__}$"
    ):
        run(Fine, records)


@pytest.mark.parametrize("given", [0, 3, True, 1.5, None, {"a": 1}, ["a"], ("key", "a"), [1, 2]])
def test_record_that_is_no_payload_is_refused(given: Any) -> None:
    """A number would be as many zeros."""
    sentence = f"expected a payload, text or bytes, found {type(given).__name__}; encode it"
    with pytest.raises(TypeError, match=f"^cannot put a record: {sentence}$"):
        run(Fine, [given])
    with pytest.raises(TypeError, match=f"^cannot put a record: {sentence}$"):
        FakeStream().put("a", given)
    with pytest.raises(TypeError, match=f"^cannot make a record: {sentence}$"):
        record(given)


def test_record_of_a_stream_in_place_of_its_payload_is_refused() -> None:
    """And told from what has to be encoded."""
    with pytest.raises(TypeError, match="found Record; give its data"):
        run(Fine, FakeStream().put("a"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"key": 5}, "expected text as key, found int"),
        ({"key": b"k"}, "expected text as key, found bytes"),
        ({"hash_key": "5"}, "expected a whole number as hash_key, found str"),
        ({"hash_key": 1.5}, "expected a whole number as hash_key, found float"),
    ],
)
def test_key_of_another_type_is_refused(options: Any, sentence: str) -> None:
    """Where it is written, not where it is put."""
    with pytest.raises(TypeError, match=f"^cannot make a record: {sentence}$"):
        record("a", **options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"stream": "greetings"}, "cannot run on stream: expected a FakeStream, found str"),
        ({"stream": FakeStream}, "cannot run on stream: expected a FakeStream, found type"),
        ({"options": [("app", "a")]}, "cannot use options: expected a mapping as in the YAML file, found list"),
        ({"options": "app"}, "cannot use options: expected a mapping as in the YAML file, found str"),
        ({"crash_at": 0}, "cannot use crash_at: expected a payload, text or bytes, found int; encode it"),
        ({"stop_at": record("a")}, "cannot use stop_at: expected a payload, text or bytes, found Entry; give its data"),
        ({"fail_at": ["a"]}, "cannot use fail_at: expected a payload, text or bytes, found list; encode it"),
    ],
)
def test_argument_of_another_type_is_refused(options: Any, sentence: str) -> None:
    """By its name."""
    with pytest.raises(TypeError, match=f"^{sentence}$"):
        run(Fine, ["a"], **options)


def test_run_in_place_of_its_stream_is_refused() -> None:
    """The sentence says what to give."""
    with pytest.raises(TypeError, match="expected a FakeStream, found Run; give its stream"):
        run(Fine, stream=run(Fine, ["a"]))


@pytest.mark.parametrize("timeout_s", [0, -1, None, "1", True, float("nan")])
def test_limit_that_is_no_time_is_refused(timeout_s: Any) -> None:
    """It would be passed at once, or never."""
    with pytest.raises(ValueError, match=r"^cannot use timeout_s: expected a positive number of seconds, found"):
        run(Fine, ["a"], timeout_s=timeout_s)


@pytest.mark.parametrize(("options", "where"), [({"delivery": 5}, "delivery"), ({"delivery": {"batch": 5}}, "batch")])
def test_section_that_is_none_is_refused_as_in_the_file(options: Any, where: str) -> None:
    """Although arguments of the call belong into it."""
    with pytest.raises(ConfigError, match=rf"{where}: expected a mapping of .*, found '5'"):
        run(Fine, ["a"], batch_size=1, options=options)


def test_section_as_an_object_is_taken_together_with_the_arguments() -> None:
    """As ``Config`` takes it."""
    given = run(Fine, ["a", "b"], batch_size=1, options={"delivery": Delivery(batch=Batch(max_bytes=100), retries=7)})
    assert [len(batch) for batch in given.batches] == [1, 1]


def test_incident_at_a_finished_record_is_refused_whatever_the_application_is_called() -> None:
    """What is finished is known from the table of that application."""
    first = run(Fine, ["a"], options={"app": "another-app"})
    with pytest.raises(ValueError, match="one of the 0 records that are not finished yet"):
        run(Fine, stream=first.stream, crash_at="a", options={"app": "another-app"})
    assert run(Fine, stream=first.stream, crash_at="a").delivered == [b"a"]


@pytest.mark.parametrize("options", [{"shards": 0}, {"shards": -1}, {"shards": "2"}, {"shards": 1.5}, {"name": "a b"}])
def test_stream_that_aws_would_not_make_is_refused(options: Any) -> None:
    """When it is made, not when it is used."""
    with pytest.raises(ModelError):
        FakeStream(**options)


def test_clock_that_no_test_moves_is_refused() -> None:
    """Such a run would take the time that it says."""
    with pytest.raises(TypeError, match=r"^cannot make a FakeStream: expected a ManualClock, found SystemClock$"):
        FakeStream(clock=SystemClock())  # type: ignore[arg-type]


def test_rule_that_is_no_fault_is_refused() -> None:
    """It would look as if it never happened."""
    rule: Any = {"kind": "throttle"}
    with pytest.raises(TypeError, match=r"^cannot add a rule: expected a Fault, such as Fault\(kind=…\), found dict$"):
        FakeStream().faults.add(rule)
    with pytest.raises(TypeError, match=r"^cannot add a rule"):
        FakeStream(faults=[Fault(kind=FaultKind.ERROR), rule])
