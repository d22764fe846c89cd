"""How commands say in which way they are used, in their help and where they were used in another way."""

import re
from typing import Any

import typer
from typer.core import TyperCommand

_ONE_OF = re.compile(r"(?:\. Did you mean (.*)\?| \(Possible options: (.*)\))$")
"""How typer says what may have been meant, of commands and of options."""


class Command(TyperCommand):
    """A command whose summary stays whole in the list of commands, and whose arguments stand in the usage by name."""

    def get_short_help_str(self, limit: int = 45) -> str:
        return " ".join((self.help or "").partition("\n\n")[0].split())

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


def fail_usage(usage: typer.TyperException) -> int:
    """Say on stderr what was wrong with the arguments and whose help tells more; return the exit code."""
    from kcl_py.cli.failure import print_error

    message = _ONE_OF.sub(r"; did you mean \1\2?", usage.format_message().rstrip("."))
    context = getattr(usage, "ctx", None)
    command = "kcl" if context is None else context.command_path
    see = f" See {command} --help" if message.endswith("?") else f"; see {command} --help"
    print_error(f"{message[:1].lower()}{message[1:]}{see}")
    return usage.exit_code
