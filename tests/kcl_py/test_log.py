"""What log lines look like, and what is kept out of them."""

import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from kcl_py import log


class Terminal(io.StringIO):
    """A file that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _same_logging_afterwards() -> Iterator[None]:
    """Logging belongs to the whole process."""
    handlers, level = logging.root.handlers, logging.root.level
    yield
    logging.root.handlers, logging.root.level = handlers, level
    logging.getLogger("kcl_py").setLevel(logging.NOTSET)
    structlog.reset_defaults()


def lines(file: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.getvalue().splitlines()]


def fail() -> None:
    raise ValueError("payload of a record")


def log_a_failure() -> None:
    try:
        fail()
    except ValueError:
        structlog.get_logger().exception("kcl_py.actor.restarted")


def test_event_is_one_json_line_when_not_on_a_terminal() -> None:
    """Event, level and a UTC timestamp, beside the event's own fields."""
    file = io.StringIO()
    log.configure("info", "auto", file=file)
    structlog.get_logger().info("kcl_py.lease.taken", shard_id="shardId-0", epoch=3)
    (line,) = lines(file)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "kcl_py.lease.taken", "level": "info", "shard_id": "shardId-0", "epoch": 3}


def test_event_is_text_when_on_a_terminal() -> None:
    """For people; and JSON is still to be had."""
    terminal = Terminal()
    log.configure("info", "auto", file=terminal)
    structlog.get_logger().info("kcl_py.lease.taken", epoch=3)
    assert "kcl_py.lease.taken" in terminal.getvalue()
    assert not terminal.getvalue().startswith("{")
    log.configure("info", "json", file=terminal)
    structlog.get_logger().info("kcl_py.lease.lost")
    assert json.loads(terminal.getvalue().splitlines()[-1])["event"] == "kcl_py.lease.lost"


def test_json_lines_begin_alike_however_the_event_was_put_together() -> None:
    """People and cut(1) read them too; contextvars come in any order."""
    file = io.StringIO()
    log.configure("info", "json", file=file)
    with structlog.contextvars.bound_contextvars(worker="w/1", stream="flights", app="demo"):
        structlog.get_logger().info("kcl_py.lease.taken", why="free", epoch=3, shard_id="shardId-0")
    structlog.get_logger().bind(stream="flights", worker="w/1", app="demo").info("kcl_py.lease.lost", why="x")
    first = ["timestamp", "level", "event", "app", "stream", "worker"]
    assert [list(line) for line in lines(file)] == [[*first, "shard_id", "epoch", "why"], [*first, "why"]]


def test_text_says_first_what_differs_and_on_a_terminal_once_what_is_the_same() -> None:
    """A line is to be read before it wraps; in a file every line says whose it is."""
    shown = {}
    for file in (Terminal(), io.StringIO()):
        log.configure("info", "text", file=file)
        for worker in ("w/1", "w/1", "w/2"):
            logger = structlog.get_logger().bind(app="demo", stream="flights", worker=worker)
            logger.warning("kcl_py.lease.lost", why="expired", shard_id="shardId-0", epoch=3)
        text = re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue())
        shown[file.isatty()] = re.sub(r"\d\d:\d\d:\d\d\.\d\d\dZ", "15:00:00.000Z", text).splitlines()
    lost = "warning kcl_py.lease.lost shard_id=shardId-0 epoch=3 why=expired"
    assert shown[True] == [
        f"15:00:00.000Z {lost} app=demo stream=flights worker=w/1",
        f"15:00:00.000Z {lost}",
        f"15:00:00.000Z {lost} worker=w/2",
    ]
    assert [line.partition("T")[2] for line in shown[False]] == [
        f"15:00:00.000Z {lost} app=demo stream=flights worker={worker}" for worker in ("w/1", "w/1", "w/2")
    ]


@pytest.mark.parametrize("style", ["text", "json"])
def test_what_an_event_quotes_cannot_steer_the_terminal(style: Any) -> None:
    """Exceptions of users and rows of others end in events; a traceback keeps its lines."""
    terminal = Terminal()
    log.configure("debug", style, file=terminal)
    try:
        raise ValueError("\x1b]0;owned\x07")
    except ValueError:
        structlog.get_logger().exception("kcl_py.actor.failed", error="\x9b1m\u202e", other=["\x1b[2J"])
    logging.getLogger("botocore").warning("\x1b[2J")
    shown = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())  # but for the renderer's own colours
    assert all(line.isprintable() for line in shown.split("\n"))
    assert len(shown.splitlines()) > 4 or style == "json"


def test_text_can_be_asked_for_and_has_no_colours_off_a_terminal() -> None:
    """Colour codes in a file are noise."""
    file = io.StringIO()
    log.configure("info", "text", file=file)
    structlog.get_logger().info("kcl_py.lease.taken", epoch=3)
    assert "epoch=3" in file.getvalue()
    assert "\x1b" not in file.getvalue()


def test_events_below_the_level_are_not_written() -> None:
    """Also for a logger that was made before, as modules do."""
    logger = structlog.get_logger()
    file = io.StringIO()
    log.configure("warning", "json", file=file)
    logger.info("kcl_py.lease.taken")
    logger.warning("kcl_py.lease.lost")
    assert [line["event"] for line in lines(file)] == ["kcl_py.lease.lost"]


@pytest.mark.parametrize("style", ["json", "text"])
def test_traceback_is_shown_at_debug_only(style: log.Format) -> None:
    """Elsewhere only the exception's class: its text may hold record data."""
    quiet, loud = io.StringIO(), io.StringIO()
    log.configure("info", style, file=quiet)
    log_a_failure()
    assert "ValueError" in quiet.getvalue()
    assert "payload" not in quiet.getvalue()
    assert "Traceback" not in quiet.getvalue()
    log.configure("debug", style, file=loud)
    log_a_failure()
    assert "Traceback (most recent call last)" in loud.getvalue()


def test_other_libraries_come_out_alike_from_warning_on() -> None:
    """No line of another shape on the same stream, and nothing of botocore's debug lines, which show payloads."""
    file = io.StringIO()
    log.configure("debug", "json", file=file)
    logging.getLogger("botocore").debug("payload")
    logging.getLogger("asyncio").error("task %s was lost", "x")
    (line,) = lines(file)
    assert (line["event"], line["level"], line["logger"]) == ("task x was lost", "error", "asyncio")


def test_other_libraries_get_no_traceback_below_debug() -> None:
    """The SDK logs one whenever credentials cannot be renewed, with whatever their source has said."""
    file = io.StringIO()
    log.configure("info", "json", file=file)
    try:
        fail()
    except ValueError:
        logging.getLogger("aiobotocore.credentials").warning("refresh failed", exc_info=True, stack_info=True)
    (line,) = lines(file)
    assert (line["event"], line["error"]) == ("refresh failed", "ValueError")
    assert not {"payload", "Traceback", "Stack"} & set(re.findall(r"[A-Za-z]+", file.getvalue()))


def test_importing_the_library_configures_nothing() -> None:
    """That is the program's business."""
    assert not structlog.is_configured()


def test_traceback_may_be_shown_only_where_somebody_has_set_logging_up() -> None:
    """By default structlog prints it on stdout with the values of all variables, which may be records."""
    structlog.reset_defaults()
    assert not log.may_show_tracebacks()
    log.configure("debug", "json", file=io.StringIO())
    assert log.may_show_tracebacks()
