"""The command ``kcl``. Each command imports what it needs when it is called, so that all start fast."""

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from kcl_py.cli.usage import Command, fail_usage
from kcl_py.stderr import drop_unwritable, tell

app = typer.Typer(
    name="kcl",
    help="Consume a Kinesis stream with leased, supervised shards.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The worker's options, in YAML.")]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line (default: that of this process) and exit.

    A failure ends with one line ``error: …`` on stderr. What stdout cannot encode is written as an escape; what stderr
    cannot take is dropped.
    """
    _fill_gaps()
    drop_unwritable()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = app(arguments, prog_name="kcl", standalone_mode=False)
    except typer.TyperException as usage:
        code = fail_usage(usage)
    except (typer.Abort, KeyboardInterrupt):
        code = 130
    except Exception as error:
        from kcl_py.cli.failure import fail

        code = fail(error)
    tell("")  # what fails there is left: it would be the exit code
    sys.exit(code)


def _fill_gaps() -> None:
    """Have a stdin, stdout or stderr that is closed be there, for nobody: a connection would get its number else."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)  # as the others are, by a child process
            stream = os.fdopen(number, mode)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version

        typer.echo(f"kcl-py {version('kcl-py')}")
        raise typer.Exit


@app.callback()
def kcl(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Consume a Kinesis stream with leased, supervised shards."""


@app.command(cls=Command)
def run(
    file: File,
    exit_on_halt: Annotated[
        bool, typer.Option("--exit-on-halt", help="Stop, with exit code 3, when a shard halts.")
    ] = False,
) -> int:
    """Run a worker until SIGTERM or SIGINT; a second one stops at once."""
    from kcl_py.cli.run import run_command

    return run_command(file, exit_on_halt=exit_on_halt)


@app.command(cls=Command)
def check(file: File) -> int:
    """Say whether FILE and its processor can be used; connects nowhere."""
    from kcl_py.cli.check import check_command

    return check_command(file)


@app.command(cls=Command)
def status(
    file: File,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
    watching: Annotated[bool, typer.Option("--watch", help="Keep it up to date until Ctrl-C.")] = False,
) -> int:
    """Show workers, shards and lags as the lease table tells them."""
    from kcl_py.cli.status import status_command

    return status_command(file, as_json=as_json, watching=watching)


@app.command(cls=Command)
def local(
    port: Annotated[str, typer.Option(metavar="PORT", help="Port on 127.0.0.1; 0 takes any that is free.")] = "4567",
    stream: Annotated[list[str] | None, typer.Option(metavar="NAME:SHARDS", help="Create this stream.")] = None,
    realistic: Annotated[bool, typer.Option("--realistic", help="Limit rates and take time, as AWS does.")] = False,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep streams and tables in this folder.")] = None,
    faults: Annotated[Path | None, typer.Option(metavar="FILE", help="Let things go wrong by these rules.")] = None,
) -> None:
    """Serve Kinesis, DynamoDB, S3 and SQS on this machine."""
    from kcl_py.cli.local import local_command

    local_command(port, stream or [], is_realistic=realistic, data=data, faults=faults)


Shards = Annotated[list[str] | None, typer.Option("--shard", metavar="ID", help="Only this shard; may be repeated.")]
Sure = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
PLACES = "trim_horizon, latest, a time, or the number of the last record that counts as finished."


@app.command(cls=Command)
def pause(
    file: File,
    shard: Shards = None,
    why: Annotated[str | None, typer.Option(metavar="TEXT", help="For who looks at the status.")] = None,
) -> int:
    """Have nothing more of the stream, or of some shards, be handed to processors until it is resumed."""
    from kcl_py.cli.control import pause_command

    return pause_command(file, shard or [], why)


@app.command(cls=Command)
def resume(file: File, shard: Shards = None) -> int:
    """Have go on what is paused or has halted: all of the stream, or some shards."""
    from kcl_py.cli.control import resume_command

    return resume_command(file, shard or [])


@app.command(cls=Command)
def seek(
    file: File,
    to: Annotated[str, typer.Argument(metavar="TO", help=f"{PLACES[:-1]}, which only a single shard has.")],
    shard: Shards = None,
    yes: Sure = False,
) -> int:
    """Have all shards that are being read, or some, be read from another place on."""
    from kcl_py.cli.leases import set_command

    return set_command(file, shard or [], to, is_sure=yes)


leases = typer.Typer(help="Show lease rows, change them, and ask workers to.")
app.add_typer(leases, name="leases")


@leases.command(cls=Command)
def show(
    file: File,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, with all fields.")] = False,
) -> int:
    """Show each lease row as it is in the table."""
    from kcl_py.cli.leases import show_command

    return show_command(file, as_json=as_json)


@leases.command(cls=Command)
def reset(
    file: File,
    start: Annotated[
        str | None, typer.Option(metavar="START", help="trim_horizon, latest or a time; default: that of FILE.")
    ] = None,
    yes: Sure = False,
) -> int:
    """Have the whole stream be read anew, as if nobody had ever read it."""
    from kcl_py.cli.leases import reset_command

    return reset_command(file, start, is_sure=yes)


@leases.command("set", cls=Command)
def set_(
    file: File,
    shard: Annotated[str, typer.Option(metavar="ID", help="The shard.")],
    to: Annotated[
        str,
        typer.Option(metavar="PLACE", help=PLACES),
    ],
    yes: Sure = False,
) -> int:
    """Have one shard be read from another place on."""
    from kcl_py.cli.leases import set_command

    return set_command(file, [shard], to, is_sure=yes)


@leases.command(cls=Command)
def release(file: File, shard: Shards = None, yes: Sure = False) -> int:
    """Free the rows of workers that are no more, and ask those at work to let go of the shards that are named.

    Freeing is of use before a worker is started: one that runs has such rows as soon by itself.
    Who gets a shard cannot be chosen; the workers share them out among themselves.
    """
    from kcl_py.cli.leases import release_command

    return release_command(file, shard or [], is_sure=yes)


@leases.command(cls=Command)
def withdraw(file: File, shard: Shards = None, yes: Sure = False) -> int:
    """Take back what set or release has asked of workers, where it has not been done yet."""
    from kcl_py.cli.leases import withdraw_command

    return withdraw_command(file, shard or [], is_sure=yes)
