"""How a command ends when it fails: an exit code and one line on stderr; the traceback at log level debug only."""

import traceback
from collections.abc import Sequence

from actors.errors import ActorError
from kcl_py.errors import AwsSetupError, ConfigError, KclError, ProcessorError
from kcl_py.log import shows_tracebacks
from kcl_py.printable import one_line, printable
from kcl_py.stderr import tell

WORKER_FAILED, USAGE, AWS_SETUP, UNFINISHED = 1, 2, 3, 4
"""Exit codes; 0 is a clean end, and 130 and 143 are a second SIGINT and SIGTERM."""
HALTED = 3
"""A shard that halted under ``--exit-on-halt``: as with a set-up at fault, to start again does not help by itself."""


def exit_code(error: BaseException) -> int:
    """Return the exit code that ``error`` stands for."""
    match error:
        case ConfigError() | ProcessorError():
            return USAGE
        case AwsSetupError():
            return AWS_SETUP
    return WORKER_FAILED


def fail(error: BaseException, *, code: int | None = None) -> int:
    """Say on stderr why the command fails, and return its exit code: ``code``, or what ``error`` stands for."""
    cause = first_cause(error)
    if shows_tracebacks():
        for line in "".join(traceback.format_exception(error)).splitlines():
            tell(f"{printable(line)}\n")
    if isinstance(cause, ConfigError) and cause.faults[1:]:
        print_faults(cause.faults)
    else:
        print_error(sentence(cause))
    return exit_code(cause) if code is None else code


def print_error(text: str) -> None:
    """Write one ``error:`` line; what the text quotes from outside cannot break it or steer the terminal."""
    tell(f"error: {one_line(text)}\n")


def print_faults(faults: Sequence[str]) -> None:
    """Write each fault of a configuration on a line of its own, and the ``error:`` line after them."""
    for fault in faults:
        tell(f"{one_line(fault)}\n")
    print_error(f"cannot use this configuration: expected no faults, found {len(faults)}, each on a line above")


def first_cause(error: BaseException) -> BaseException:
    """Return what a group of errors is about: the first of ours in it, else the first of all."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    causes = [first_cause(inner) for inner in error.exceptions]
    return next((cause for cause in causes if isinstance(cause, KclError)), causes[0])


def sentence(error: BaseException) -> str:
    """Return what the error says; one that is not ours is a fault of the program, and named as such."""
    text = str(error)
    if isinstance(error, ActorError) and error.__cause__ is not None:  # a supervisor gave up: what matters is why
        return f"{text}: {sentence(error.__cause__)}"
    if isinstance(error, KclError | ActorError):
        return text
    return f"unexpected {type(error).__name__}: {text}; set log.level to debug to see where it comes from"
