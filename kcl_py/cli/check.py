"""``kcl check FILE``: whether a worker could start with this file, without opening a socket."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from actors.clock import SystemClock
from kcl_py.acceptance import import_processor, load_processor, processor_faults
from kcl_py.cli.failure import USAGE, print_error
from kcl_py.cli.loading import folders_of, load_config
from kcl_py.cli.output import say
from kcl_py.config import Config
from kcl_py.errors import ConfigError, ProcessorError
from kcl_py.executors.choice import checkpoint_faults
from kcl_py.leases.start import start_faults
from kcl_py.processor import Executor
from kcl_py.settings import read


def check_command(file: Path) -> int:
    """Print ``ok: …``, or every fault on a line of its own; return the exit code."""
    try:
        config = load_config(file)
    except ConfigError as error:
        faults = [*error.faults, *_processor_faults(file, _processor(file, error.faults), _executor(file))]
    else:
        faults = _processor_faults(file, config.processor, config.delivery.executor) or _other_faults(file, config)
        if not faults:
            say(f"ok: app {config.app}, stream {config.stream}, processor {config.processor}\n")
    for fault in faults:
        print_error(fault)
    return USAGE if faults else 0


def _other_faults(file: Path, config: Config) -> list[str]:
    processor = load_processor(config.processor, folders=folders_of(file), executor=config.delivery.executor)
    faults = [*start_faults(config.start, SystemClock().time()), *checkpoint_faults(processor, config)]
    return [f"{file}: {fault}" for fault in faults]


def _processor(file: Path, faults: tuple[str, ...]) -> str | None:
    """Return which processor is named; None if that is one of the faults, or the file cannot be read."""
    if any(fault.startswith(f"{file}: processor") for fault in faults):
        return None
    try:
        return str(read(str(file), os.environ)[0]["processor"])
    except ConfigError:
        return None


def _executor(file: Path) -> Executor | None:
    """Return what is set; None also if that is a fault, or the file cannot be read."""
    try:
        delivery = read(str(file), os.environ)[0].get("delivery")
    except ConfigError:
        return None
    found = delivery.get("executor") if isinstance(delivery, Mapping) else None
    return found if found in get_args(Executor) else None


def _processor_faults(file: Path, path: str | None, executor: Executor | None) -> list[str]:
    if path is None:
        return []
    try:
        faults = processor_faults(import_processor(path, folders=folders_of(file)), executor)
    except ProcessorError as error:
        faults = [str(error).partition(f"{path!r}: ")[2] or str(error)]
    return [f"{file}: processor: {fault}" for fault in faults]
