"""What people and other processes get to see of a failure."""

import logging
import pickle

import pytest

from actors import (
    ActorError,
    ActorStoppedError,
    AskTimeoutError,
    Child,
    GraceExceeded,
    KilledError,
    MailboxFullError,
    RestartLimitError,
    TaskAbandoned,
    TaskFailed,
    UnhandledMessageError,
    errors,
    log_event,
    running,
)
from actors.testing import settle
from tests.actors.players import Fail, Player, Troupe, refs

pytestmark = pytest.mark.anyio

ERRORS = [
    ActorStoppedError("root/a"),
    AskTimeoutError("root/a", 1.5, "Note"),
    KilledError("root/a", "it did not stop within its grace of 5 s"),
    MailboxFullError("root/a", 1000, "Note"),
    RestartLimitError("root", "a", 3, 5.0),
    UnhandledMessageError("root/a", "Note"),
]


def test_the_list_of_errors_is_complete() -> None:
    """A new error is tested like the others."""
    assert {type(e) for e in ERRORS} == {
        e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, ActorError) and e is not ActorError
    }


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_an_error_survives_the_way_to_another_process(error: Exception) -> None:
    """With its fields and its sentence."""
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert vars(copy) == vars(error)
    assert str(copy) == str(error)


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_an_error_names_its_actor_in_one_sentence(error: Exception) -> None:
    """Lower case, no full stop."""
    assert "root" in str(error)
    assert "\n" not in str(error)
    assert str(error)[0] in "c'"
    assert not str(error).endswith(".")


async def test_a_crash_is_one_log_line_with_the_traceback_down_to_the_line_that_raised(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And what is ordinary is no more than debug."""
    async with running(lambda: Troupe([Child("a", Player)])) as root:
        refs(root.ref)["a"].tell(Fail(ValueError("boom")))
        await settle()
    (record,) = [r for r in caplog.records if r.levelno > logging.DEBUG]
    assert (record.name, record.levelname, record.message) == ("actors", "ERROR", "root/a Ended")
    assert record.exc_text is None or "raise error" in record.exc_text
    assert record.exc_info is not None
    traceback = record.exc_info[2]
    assert traceback is not None
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    assert traceback.tb_frame.f_code.co_name == "on_message"


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (GraceExceeded("root/a", 5.0), "WARNING"),
        (TaskAbandoned("root/a", "Processor.process", 5.0), "WARNING"),
        (TaskFailed("root/a", OSError("boom")), "ERROR"),
    ],
)
def test_what_needs_a_look_is_logged_so_that_it_gets_one(
    event: GraceExceeded | TaskAbandoned | TaskFailed, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    """With the path of the actor."""
    log_event(event)
    (record,) = caplog.records
    assert record.levelname == level
    assert "root/a" in record.message
