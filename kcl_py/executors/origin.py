"""Where a child process finds the user's class: by module and name, as pickling has it."""

import sys
from dataclasses import dataclass

from kcl_py.acceptance import check_processor, import_processor
from kcl_py.errors import ProcessorError
from kcl_py.executors.child import main
from kcl_py.processor import RecordProcessor


@dataclass(frozen=True, slots=True)
class Origin:
    """The place of a class."""

    module: str
    name: str


def origin_of(processor: type[RecordProcessor]) -> Origin:
    """Return from where a child process can import a class.

    Raises:
        ProcessorError: from nowhere, since it is in the program itself or in a function.
    """
    module, name = processor.__module__, processor.__qualname__
    if module == "__main__" or "<locals>" in name or module not in sys.modules:
        where = "the program itself" if module == "__main__" else f"{module}:{name}"
        raise ProcessorError(
            f"cannot run {name} in a child process: expected a class that can be imported by its name, found it in "
            f"{where}; put it into a module of its own, at its top level"
        )
    return Origin(module, name)


def serve(handle: int, module: str, name: str) -> None:
    """Be the child process of a worker."""
    path = f"{module}:{name}"
    main(handle, lambda: check_processor(import_processor(path), path, executor="process"))
