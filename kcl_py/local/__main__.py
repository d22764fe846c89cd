"""``python -m kcl_py.local`` is ``kcl local``."""

import typer

from kcl_py.cli.local import local_command

if __name__ == "__main__":
    typer.run(local_command)
