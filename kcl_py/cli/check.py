"""``kcl check FILE``: whether a worker could start with this file, without opening a socket."""

import sys
from pathlib import Path

from kcl_py.cli.failure import USAGE, print_error, sentence
from kcl_py.cli.loading import load_class, load_config
from kcl_py.errors import ConfigError, ProcessorError
from kcl_py.settings import read_document


def check_command(file: Path) -> int:
    """Print ``ok: …``, or every fault on a line of its own; return the exit code."""
    try:
        config = load_config(file)
    except ConfigError as error:
        for fault in (*error.faults, *_processor_faults(file)):
            print_error(fault)
        return USAGE
    faults = _processor_faults(file, config.processor)
    for fault in faults:
        print_error(fault)
    if not faults:
        sys.stdout.write(f"ok: app {config.app}, stream {config.stream}, processor {config.processor}\n")
    return USAGE if faults else 0


def _processor_faults(file: Path, path: str | None = None) -> list[str]:
    """What is wrong with the processor; none if other faults hide which one it is."""
    try:
        path = path or read_document(str(file))[0].get("processor")
        if isinstance(path, str) and ":" in path:
            load_class(path, file)
    except ConfigError:
        return []
    except ProcessorError as error:
        return [f"{file}: processor: {sentence(error)}"]
    return []
