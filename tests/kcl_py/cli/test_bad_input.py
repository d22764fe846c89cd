"""The command line on bad input, as a process of its own: one ``error:`` line, the exit code, no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

KCL = Path(sys.executable).with_name("kcl")
PROCESSOR = """
from kcl_py import RecordProcessor

class Good(RecordProcessor):
    async def process_records(self, batch, checkpointer): ...

class Plain: ...

class Odd(RecordProcessor):
    async def proces_records(self, batch): ...
    def lease_lost(self): ...
"""
THEIRS = """
class P:
    def initialize(self, shard_id): ...
    def process_records(self, records, checkpointer): ...
    def shutdown(self, checkpointer, reason): ...
"""
CLOSED = """
import os
from kcl_py.cli.app import main

try:
    main(["check", "nowhere.yaml"])
except SystemExit as end:
    os._exit(end.code if os.open(os.devnull, os.O_RDONLY) > 2 else 99)
"""
GOOD = "app: demo\nstream: flights\nprocessor: mine:Good\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the module ``mine``."""
    (tmp_path / "mine.py").write_text(PROCESSOR, encoding="utf-8")
    return tmp_path


def kcl(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run ``kcl`` in ``folder`` without any AWS settings."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "KCL_"))}
    return subprocess.run(
        [KCL, *arguments], cwd=folder, env={**clean, **env}, capture_output=True, text=True, timeout=50, check=False
    )


def write(folder: Path, text: str) -> str:
    (folder / "worker.yaml").write_text(text, encoding="utf-8")
    return "worker.yaml"


def error_lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert "Traceback" not in done.stderr + done.stdout
    lines = done.stderr.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    assert lines[-len(errors) :] == errors, "errors come last"
    return errors


@pytest.mark.parametrize("command", ["run", "check", "status"])
def test_missing_file_is_one_error(folder: Path, command: str) -> None:
    """Each command that takes a FILE says so."""
    done = kcl(folder, command, "nowhere.yaml")
    assert done.returncode == 2
    assert error_lines(done) == ["error: nowhere.yaml: expected a readable file, found: No such file or directory"]
    assert done.stdout == ""


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (GOOD + "strem: x\n", "worker.yaml: strem: expected a known key, found 'strem'; did you mean stream?"),
        (GOOD + "grace_s: soon\n", "worker.yaml: grace_s: expected a number of at least 0, found 'soon'"),
        (GOOD + "app: again\n", "worker.yaml: app: expected the key once, found it again on line 4"),
        ("app: [\n", "worker.yaml: expected YAML, found a mistake: "),
        (GOOD.replace("mine:Good", "mine"), "worker.yaml: processor: expected module:Class, found 'mine'"),
    ],
)
def test_file_with_one_fault_is_one_error(folder: Path, command: str, text: str, fault: str) -> None:
    """File, key, what was expected, what was found."""
    done = kcl(folder, command, write(folder, text))
    assert done.returncode == 2
    (line,) = error_lines(done)
    assert line.startswith(f"error: {fault}")


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize("processor", ["a:B:x", "", "mine"])
def test_processor_that_is_none_is_one_error(folder: Path, command: str, processor: str) -> None:
    """It is not imported besides; the same from a variable."""
    for done in (
        kcl(folder, command, write(folder, GOOD.replace("mine:Good", processor))),
        kcl(folder, command, write(folder, GOOD), KCL_PROCESSOR=processor),
    ):
        assert done.returncode == 2
        (line,) = error_lines(done)
        assert line.startswith("error: worker.yaml: processor")
        assert ": expected module:Class, found " in line


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize(
    ("processor", "fault"),
    [
        ("nowhere:Good", "found ModuleNotFoundError: No module named 'nowhere'"),
        ("mine:Missing", "expected class 'Missing' in module 'mine', found none"),
        ("mine:Plain", "expected a subclass of kcl_py.RecordProcessor, found class 'Plain' that is none"),
    ],
)
def test_processor_that_cannot_be_used_is_one_error(folder: Path, command: str, processor: str, fault: str) -> None:
    """Import failures and wrong types alike."""
    done = kcl(folder, command, write(folder, GOOD.replace("mine:Good", processor)))
    assert done.returncode == 2
    (line,) = error_lines(done)
    assert fault in line


@pytest.mark.parametrize("command", [("run",), ("status",), ("leases", "show")])
def test_other_commands_put_every_fault_on_a_line_of_its_own_before_the_error(
    folder: Path, command: tuple[str, ...]
) -> None:
    """They read as those of ``check``; a failure ends with one error line all the same."""
    file = write(folder, GOOD + "grace_s: x\nstrem: y\n")
    done = kcl(folder, *command, file)
    assert done.returncode == 2
    (line,) = error_lines(done)
    assert line == "error: cannot use this configuration: expected no faults, found 2, each on a line above"
    assert [f"error: {fault}" for fault in done.stderr.splitlines()[:-1]] == error_lines(kcl(folder, "check", file))


def test_check_puts_every_fault_on_a_line_of_its_own(folder: Path) -> None:
    """The processor's too."""
    done = kcl(folder, "check", write(folder, GOOD.replace("mine:", "nowhere:") + "grace_s: x\nstrem: y\n"))
    assert done.returncode == 2
    assert [line.split(": ")[2] for line in error_lines(done)] == ["grace_s", "strem", "processor"]


@pytest.mark.parametrize("command", ["run", "check"])
def test_dates_of_checkpoints_that_the_class_stores_itself_are_named_by_both(folder: Path, command: str) -> None:
    """One written for amazon_kclpy does, unless a mode is set."""
    (folder / "theirs.py").write_text(THEIRS, encoding="utf-8")
    text = GOOD.replace("mine:Good", "theirs:P") + "checkpoint: {records: 1234567, interval_s: 0.25}\n"
    done = kcl(folder, command, write(folder, text))
    assert done.returncode == 2
    assert error_lines(done)
    for name, found in (("interval_s", "0.25"), ("records", "1234567")):
        [line] = [line for line in done.stderr.splitlines() if f"checkpoint.{name}: expected checkpoint.mode" in line]
        assert f"found {found};" in line
    assert kcl(folder, "check", write(folder, text.replace("{", "{mode: auto, "))).returncode == 0


def test_check_says_of_a_processor_what_was_expected_and_found(folder: Path) -> None:
    """In the form of all other faults, and each of its faults."""
    done = kcl(folder, "check", write(folder, GOOD.replace("Good", "Odd")))
    assert done.returncode == 2
    assert error_lines(done) == [
        "error: worker.yaml: processor: expected a hook of RecordProcessor, found 'proces_records'; "
        "did you mean process_records?",
        "error: worker.yaml: processor: expected `async def lease_lost`, found `def`; "
        "set delivery.executor to thread or process if it is to run off the event loop",
    ]
    done = kcl(folder, "check", write(folder, GOOD.replace("mine:", "nowhere:")))
    assert error_lines(done) == [
        "error: worker.yaml: processor: expected module 'nowhere' to import, "
        "found ModuleNotFoundError: No module named 'nowhere'"
    ]


def test_check_says_of_a_function_what_was_expected_and_found(folder: Path) -> None:
    """Also where another one of its module is named."""
    text = "from kcl_py import processor\n@processor\nasync def handle(): ...\nOther = None\n"
    (folder / "functions.py").write_text(text, encoding="utf-8")
    fault = "expected a payload, a record or a batch among the parameters, found none"
    done = kcl(folder, "check", write(folder, GOOD.replace("mine:Good", "functions:handle")))
    assert error_lines(done) == [f"error: worker.yaml: processor: {fault}"]
    done = kcl(folder, "check", write(folder, GOOD.replace("mine:Good", "functions:Other")))
    assert error_lines(done) == [f"error: worker.yaml: processor: cannot use processor 'functions:handle': {fault}"]


@pytest.mark.parametrize("command", ["check", "run"])
def test_processor_that_needs_a_loop_is_refused_with_the_reason(folder: Path, command: str) -> None:
    """Nobody would take the records."""
    [line] = error_lines(kcl(folder, command, write(folder, GOOD.replace("mine:Good", "kcl_py:Records"))))
    assert line.endswith(
        "expected a processor of yours, found kcl_py.Records: that needs a program that loops over Stream.records()"
    )


def test_check_imports_the_processor_of_a_variable_beside_other_faults(folder: Path) -> None:
    """What the worker would import, not what the file says."""
    file = write(folder, GOOD.replace("mine:Good", "nowhere:Good") + "? [a]\n: b\n")
    assert len(error_lines(kcl(folder, "check", file, KCL_PROCESSOR="mine:Good"))) == 1
    assert len(error_lines(kcl(folder, "check", file, KCL_PROCESSOR="mine:Plain"))) == 2


def test_check_finds_nothing_wrong_with_a_good_file(folder: Path) -> None:
    """Also from another directory: FILE's folder is searched first."""
    write(folder, GOOD)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.py").write_text("raise RuntimeError('the wrong one')\n", encoding="utf-8")
    done = kcl(elsewhere, "check", "../worker.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "ok: app demo, stream flights, processor mine:Good\n"


def test_check_opens_no_socket(folder: Path) -> None:
    """It can run where nothing can be reached."""
    guard = (
        "import sys\nsys.addaudithook(lambda event, _: event.startswith('socket.') and sys.exit('opened a socket'))\n"
    )
    (folder / "sitecustomize.py").write_text(guard, encoding="utf-8")
    file = write(folder, GOOD)
    done = kcl(folder, "check", file, PYTHONPATH=str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert "opened a socket" in kcl(folder, "status", file, PYTHONPATH=str(folder)).stderr, "the guard works"


def test_unknown_variable_is_a_warning_and_no_error(folder: Path) -> None:
    """What Kubernetes injects does not keep a worker from starting."""
    done = kcl(folder, "check", write(folder, GOOD), KCL_PORT="tcp://10.0.0.1:80")
    assert done.returncode == 0
    assert "KCL_PORT: not an option, ignored" in done.stderr


def test_variable_out_of_range_is_one_error_that_names_it(folder: Path) -> None:
    """It is not in the file, so the file is not enough."""
    done = kcl(folder, "run", write(folder, GOOD), KCL_LEASES__FAILOVER_S="1")
    assert done.returncode == 2
    (line,) = error_lines(done)
    assert "leases.failover_s (from KCL_LEASES__FAILOVER_S): expected a number from 3 to 300, found '1'" in line


def test_status_of_leases_in_memory_is_one_error(folder: Path) -> None:
    """Nobody else can see them."""
    done = kcl(folder, "status", write(folder, GOOD + "leases: {store: memory}\n"), "--json")
    assert done.returncode == 2
    (line,) = error_lines(done)
    assert "memory" in line


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "error: missing command; see kcl --help"),
        (("fly",), "error: no such command 'fly'; see kcl --help"),
        (("run",), "error: missing argument 'FILE'; see kcl run --help"),
        (("check", "a", "--fast"), "error: no such option: --fast; see kcl check --help"),
        (("stat",), "error: no such command 'stat'; did you mean 'status'? See kcl --help"),
        (("status", "a", "--wach"), "error: no such option: --wach; did you mean --watch? See kcl status --help"),
        (("leases",), "error: missing command; see kcl leases --help"),
        (("leases", "set", "a", "--shard", "s"), "error: missing option '--to'; see kcl leases set --help"),
        (("leases", "release", "a", "--to", "web-9"), "error: no such option: --to; see kcl leases release --help"),
        (("local", "--port", "80x"), "error: cannot listen on port '80x': expected a number from 0 to 65535"),
        (("local", "--port", "\u00b2"), "error: cannot listen on port '\u00b2': expected a number from 0 to 65535"),
        (("local", "--port", "65536"), "error: cannot listen on port '65536': expected a number from 0 to 65535"),
    ],
)
def test_usage_error_is_one_error(folder: Path, arguments: tuple[str, ...], error: str) -> None:
    """No box, no usage text in the way."""
    done = kcl(folder, *arguments)
    assert (done.returncode, error_lines(done), done.stdout) == (2, [error], "")


def test_start_at_a_time_to_come_is_one_error_of_check(folder: Path) -> None:
    """AWS would refuse it, shard by shard and again and again; a worker cannot know, by a clock that may be wrong."""
    done = kcl(folder, "check", write(folder, GOOD + "start: 2099-01-01T00:00:00Z\naws: {region: us-east-1}\n"))
    (line,) = error_lines(done)
    assert done.returncode == 2
    assert "start: expected a time that has come, found 2099-01-01T00:00:00.000Z, and it is " in line
    assert line.endswith("; set latest to begin with what is put from now on")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_no_exit_code_and_its_number_is_not_given_away(folder: Path, closed: str) -> None:
    """As where a daemon starts it: what is written to it must not get into a connection."""
    (folder / "try.py").write_text(CLOSED, encoding="utf-8")
    done = subprocess.run(f"'{sys.executable}' try.py {closed}", shell=True, cwd=folder, timeout=50, check=False)
    assert done.returncode == 2


@pytest.mark.parametrize("command", [(), ("run",), ("check",), ("status",), ("local",)])
def test_help_is_there_by_either_name(folder: Path, command: tuple[str, ...]) -> None:
    """On stdout, for the command line and for each command."""
    short, long = (kcl(folder, *command, name) for name in ("-h", "--help"))
    assert (short.returncode, short.stdout, short.stderr) == (0, long.stdout, "")
    assert " ".join(("Usage: kcl", *command)) in short.stdout


def test_help_says_what_each_command_does_in_whole_sentences(folder: Path) -> None:
    """Also on a narrow terminal; and what is to be given is named as it is in the text."""
    listed = " ".join(kcl(folder, "leases", "--help", COLUMNS="80").stdout.split())
    assert "..." not in listed.partition("Commands:")[2]
    assert "release Free the rows of workers that are no more, and ask those at work to let go of the shards" in listed
    assert "Usage: kcl leases set [OPTIONS] FILE\n" in kcl(folder, "leases", "set", "--help").stdout


@pytest.mark.parametrize("command", ["set", "reset", "release", "withdraw"])
def test_what_needs_an_answer_is_refused_at_once_where_nobody_can_give_it(folder: Path, command: str) -> None:
    """Before anything is connected to or watched."""
    guard = "import sys\nsys.addaudithook(lambda event, _: event.startswith('socket.') and sys.exit('a socket'))\n"
    (folder / "sitecustomize.py").write_text(guard, encoding="utf-8")
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    place = ("--shard", "s", "--to", "latest") if command == "set" else ()
    done = kcl(folder, "leases", command, write(folder, GOOD), *place, PYTHONPATH=path)
    assert (done.returncode, done.stdout) == (2, "")
    assert error_lines(done) == [
        "error: cannot ask whether to change leases of 'demo': expected --yes or a terminal, found neither"
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("\x1b[31mfly",),
        ("check", "worker.yaml", "--\x9bfast"),
        ("check", "a\x1b]0;\x07\n.yaml"),
        ("check", os.fsdecode(b"\xff\x1b.yaml")),
        ("local", "--stream", "\x1bc:1"),
    ],
)
def test_error_line_cannot_steer_the_terminal(folder: Path, arguments: tuple[str, ...]) -> None:
    """Names come from anywhere; what cannot be printed is shown as an escape, on one line."""
    done = kcl(folder, *arguments)
    assert done.returncode == 2
    (line,) = error_lines(done)
    assert done.stderr == f"{line}\n"
    assert line.isprintable()
    assert "\\x" in line


def test_key_of_a_file_cannot_steer_the_terminal(folder: Path) -> None:
    """YAML has escapes for every character."""
    (line,) = error_lines(kcl(folder, "check", write(folder, GOOD + '"a\\e[2J": 1\n')))
    assert line == r"error: worker.yaml: a\x1b[2J: expected a known key, found 'a\x1b[2J'"


def test_result_is_written_even_where_stdout_has_fewer_letters(folder: Path) -> None:
    """In an old locale, a letter that it lacks is an escape and no failure."""
    (folder / "mine.py").write_text(PROCESSOR.replace("Good", "Größe"), encoding="utf-8")
    done = kcl(folder, "check", write(folder, GOOD.replace("Good", "Größe")), PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "ok: app demo, stream flights, processor mine:Gr\\xf6\\xdfe\n"


def test_version_is_that_of_the_distribution(folder: Path) -> None:
    """On stdout."""
    done = kcl(folder, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, "kcl-py 0.1.0\n", "")
