"""Whether something can be used as a processor, and where it is imported from."""

import importlib
import inspect
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from functools import partialmethod
from os import PathLike, fspath
from types import FunctionType
from typing import Any, cast

from kcl_py.batchers import batcher_faults
from kcl_py.compat.kclpy import adapt, standing_in
from kcl_py.compat.versions import version_of
from kcl_py.errors import ProcessorError
from kcl_py.middleware import middleware_faults
from kcl_py.printable import one_line
from kcl_py.processor import FORMS, HOOKS, Executor, RecordProcessor, Records, preferred_executor

_NEARLY = 0.85
"""How alike two names must be for one to pass as a misspelling of the other; 1 is the same."""


def load_processor(
    path: str, *, folders: Sequence[str | PathLike[str]] = (), executor: Executor | None = None
) -> type[RecordProcessor]:
    """Import ``module:Class``; see ``import_processor``.

    Raises:
        ProcessorError: the import fails, or the class is not a RecordProcessor that can be used.
    """
    return check_processor(import_processor(path, folders=folders), path, executor=executor)


def import_processor(path: str, *, folders: Sequence[str | PathLike[str]] = ()) -> object:
    """Return what ``module:Class`` names, whatever it is; a class written for amazon_kclpy is adapted.

    Args:
        path: as in the option ``processor``.
        folders: go first on ``sys.path``, in this order, and stay there for what the module imports later.

    Raises:
        ProcessorError: the import fails, or there is nothing of that name.
    """
    for folder in reversed(folders):
        if sys.path[:1] != [fspath(folder)]:
            sys.path.insert(0, fspath(folder))
    module_name, _, class_path = path.partition(":")
    try:
        with standing_in():
            found: object = importlib.import_module(module_name)
    except ProcessorError:  # of a function in it that is decorated
        raise
    except (Exception, SystemExit) as error:
        raise ProcessorError(
            f"cannot import processor {path!r}: expected module {module_name!r} to import,"
            f" found {type(error).__name__}: {one_line(str(error))}"
        ) from error
    for name in class_path.split("."):
        found = getattr(found, name, None)
    if found is None:
        raise ProcessorError(
            f"cannot import processor {path!r}: expected class {class_path!r} in module {module_name!r}, found none"
        )
    is_ours = isinstance(found, type) and issubclass(found, RecordProcessor)
    return found if is_ours or version_of(found) is None else adapt(found)


def check_processor(
    found: object, path: str | None = None, *, executor: Executor | None = None
) -> type[RecordProcessor]:
    """Return ``found`` if it is a usable subclass of RecordProcessor; else raise ``ProcessorError``.

    Args:
        found: whatever somebody has given.
        path: what the error calls it; by default the place of its class.
        executor: the option ``delivery.executor``.
    """
    for fault in processor_faults(found, executor):
        raise ProcessorError(f"cannot use processor {path or path_of(found)!r}: {fault}")
    return cast("type[RecordProcessor]", found)


def path_of(found: object) -> str:
    """Say ``module:Class`` of what somebody has given."""
    if isinstance(found, str):
        return found
    named = found if isinstance(found, (type, FunctionType)) else type(found)
    return f"{named.__module__}:{named.__qualname__}"


def processor_faults(found: object, executor: Executor | None = None) -> list[str]:
    """Say what keeps ``found`` from being a processor: ``expected X, found Y`` for each fault."""
    if isinstance(found, RecordProcessor):
        return ["expected a subclass of kcl_py.RecordProcessor, found an instance of one; give the class itself"]
    if not (isinstance(found, type) and issubclass(found, RecordProcessor)):
        kind = f"class {found.__name__!r}" if isinstance(found, type) else type(found).__name__
        hint = "; decorate it with @kcl_py.processor" if isinstance(found, FunctionType) else ""
        hint += "; it is written for amazon_kclpy: give kcl_py.compat.kclpy.adapt of it" * bool(version_of(found))
        return [f"expected a subclass of kcl_py.RecordProcessor, found {kind} that is none{hint}"]
    if found is Records:
        return [
            "expected a processor of yours, found kcl_py.Records: that needs a program that loops over Stream.records()"
        ]
    misspelt = _misspelt_hooks(found)
    faults = [
        f"expected a hook of RecordProcessor, found {name!r}; did you mean {misspelt[name]}?" for name in misspelt
    ]
    forms = [form for form in FORMS if form in _own_hooks(found)]
    if len(forms) > 1:
        faults.append("expected process_records or process to be overridden, found both; take out one")
    if not forms and not set(FORMS) & set(misspelt.values()):
        faults.append("expected process_records or process to be overridden, found neither")
    own = _own_hooks(found)
    faults += batcher_faults(found.batchers, own_hooks=[*own, *misspelt.values()])
    function = getattr(found, "_kcl_py_function", None)
    if function is not None and (fault := _kind_fault(function, found.__name__, executor)):
        return [fault]
    faults += [fault for hook in own if (fault := _hook_fault(found, hook, executor))]
    return faults + _creation_faults(getattr(found, "adapted", found)) + middleware_faults(found.middlewares)


def _own_hooks(processor: type[RecordProcessor]) -> list[str]:
    return [hook for hook in HOOKS if getattr(processor, hook) is not getattr(RecordProcessor, hook)]


def _misspelt_hooks(processor: type[RecordProcessor]) -> dict[str, str]:
    """Return methods that would never be called, each with the hook that was meant: it has nearly the same name.

    A hook that is there is not missed, and a method that the hook's arguments do not fit has another purpose; but
    process_records has to be there, unless process is.
    """
    own = _own_hooks(processor)
    unneeded = {*(FORMS if set(FORMS) & set(own) else ()), *(() if processor.batchers else ("handle_batch",))}
    missed = [hook for hook in HOOKS if hook not in own and hook not in unneeded]
    methods = [
        name for name, _ in inspect.getmembers(processor, inspect.isroutine) if not hasattr(RecordProcessor, name)
    ]
    meant = {name: near for name in methods for near in get_close_matches(name.lower(), missed, n=1, cutoff=_NEARLY)}
    return {name: hook for name, hook in meant.items() if hook == "process_records" or _fits(processor, name, hook)}


def _hook_fault(processor: type[RecordProcessor], hook: str, executor: Executor | None) -> str | None:
    method = _method(processor, hook)
    if fault := _kind_fault(method, hook, executor or preferred_executor(processor)):
        return fault
    if not _fits(processor, hook, hook):
        return f"expected {hook} to take {_signature(RecordProcessor, hook)}, found {_signature(processor, hook)}"
    return None


def _kind_fault(method: Any, hook: str, executor: Executor | None) -> str | None:
    """Say whether a hook is the kind of function that the executor runs."""
    expected = {
        None: f"`async def {hook}`",
        "thread": f"`async def {hook}` or `def {hook}`",
        "process": f"`def {hook}`",
    }
    if inspect.isasyncgenfunction(method) or inspect.isgeneratorfunction(method):
        kind = "an async generator" if inspect.isasyncgenfunction(method) else "a generator"
        return f"expected {expected[executor]}, found {kind}; take out its yield"
    if not callable(method):
        return f"expected {expected[executor]}, found no function"
    is_async = inspect.iscoroutinefunction(method)
    if executor is None and not is_async:
        return (
            f"expected `async def {hook}`, found `def`; "
            "set delivery.executor to thread or process if it is to run off the event loop"
        )
    if executor == "process" and is_async:
        return f"expected `def {hook}` for delivery.executor: process, found `async def`; set it to thread for both"
    return None


def _fits(processor: type[RecordProcessor], name: str, hook: str) -> bool:
    """Tell whether the method ``name`` can be called with what ``hook`` is called with."""
    try:
        _signature(processor, name).bind(*_signature(RecordProcessor, hook).parameters)
    except TypeError:
        return False
    return True


def _signature(processor: type[RecordProcessor], name: str) -> inspect.Signature:
    """Return the names that a method takes, without ``self``; where it is decorated, those of the decorator."""
    parameters = inspect.signature(_method(processor, name), follow_wrapped=False).parameters.values()
    return inspect.Signature([each.replace(annotation=inspect.Parameter.empty) for each in parameters])


def _method(processor: type[RecordProcessor], name: str) -> Any:
    """Return a method as an instance would have it, without making one."""
    found = inspect.getattr_static(processor, name)
    is_method = isinstance(found, (FunctionType, classmethod, staticmethod, partialmethod))
    return found.__get__(object(), processor) if is_method else found


def _creation_faults(processor: type[RecordProcessor]) -> list[str]:
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    try:
        parameters = list(inspect.signature(processor).parameters.values())
    except ValueError:  # it is built on a class of Python's own, of which nothing can be said
        parameters = []
    if required := [each.name for each in parameters if each.default is each.empty and each.kind not in optional]:
        return [f"expected a constructor without arguments, found it needs {', '.join(required)}"]
    if left := sorted(getattr(processor, "__abstractmethods__", ())):
        return [f"expected a class that can be made, found it abstract: {', '.join(left)}"]
    return []
