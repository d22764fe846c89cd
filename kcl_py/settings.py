"""Where a configuration comes from: a YAML file and ``KCL_…`` variables over it.

YAML scalars are taken as text and converted by ``Config``: YAML itself would turn a time into a datetime and
``app: 123`` into a number. A plain ``null`` or an empty value counts as if the key were not there.
"""

import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from kcl_py.errors import ConfigError
from kcl_py.faults import describe, did_you_mean, nearest_option
from kcl_py.options import PREFIX, options

if TYPE_CHECKING:
    from kcl_py.config import Config

_C = TypeVar("_C", bound="Config")
_NULLS = ("", "~", "null", "Null", "NULL")


def load(cls: type[_C], path: str | os.PathLike[str], env: Mapping[str, str] | None) -> _C:
    """Build the configuration, or raise ``ConfigError`` with all faults; see ``Config.load``."""
    where = os.fspath(path)
    env = os.environ if env is None else env
    values, faults = read_document(where)
    variables = {option.path: option.variable for option in options().values() if option.variable in env}
    for option_path, variable in variables.items():
        _put(values, option_path.split("."), env[variable])
    for warning in _unknown_variables(env):
        warnings.warn(warning, stacklevel=3)
    config: _C | None = None
    try:
        config = cls(**_without_nulls(values))
    except ConfigError as error:
        faults += [_with_variable(fault, variables) for fault in error.faults]
    if faults or config is None:
        raise ConfigError(*(f"{where}: {fault}" for fault in faults))
    return config


def read_document(where: str) -> tuple[dict[str, Any], list[str]]:
    """Read the file as nested mappings of text and None, with a fault for each key that is there twice.

    Raises:
        ConfigError: it cannot be read, or is not a YAML mapping.
    """
    try:
        text = Path(where).read_bytes().decode("utf-8-sig")
        node = yaml.compose(text, Loader=yaml.BaseLoader)
        faults: list[str] = []
        values = _plain(node, "", faults) if node else None
    except OSError as error:
        raise ConfigError(f"{where}: expected a readable file, found: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: expected UTF-8 text, found byte {error.object[error.start]:#04x}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{where}: expected YAML, found a mistake: {_syntax(error)}") from None
    except RecursionError:
        raise ConfigError(f"{where}: expected YAML, found a value that contains itself") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{where}: expected a mapping of options, found {describe(values)}")
    return values, faults


def _plain(node: yaml.Node, path: str, faults: list[str]) -> Any:
    if isinstance(node, yaml.MappingNode):
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            inner = f"{path}.{key}".lstrip(".")
            if key in values:
                faults.append(f"{inner}: expected the key once, found it again on line {key_node.start_mark.line + 1}")
            values[key] = _plain(value_node, inner, faults)
        return values
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, path, faults) for item in node.value]
    is_plain = getattr(node, "style", None) is None
    return None if is_plain and node.value in _NULLS else node.value


def _syntax(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
    return f"{problem.removeprefix('but found ')} (line {mark.line + 1}, column {mark.column + 1})" if mark else problem


def _put(values: dict[str, Any], keys: list[str], value: str) -> None:
    for key in keys[:-1]:
        if not isinstance(values.get(key), dict):
            values[key] = {}
        values = values[key]
    values[keys[-1]] = None if value in _NULLS else value


def _without_nulls(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    return {
        key: _without_nulls(value, f"{prefix}{key}.") if isinstance(value, dict) else value
        for key, value in values.items()
        if value is not None or prefix + key not in options()
    }


def _with_variable(fault: str, variables: Mapping[str, str]) -> str:
    path, _, sentence = fault.partition(": ")
    return f"{path} (from {variables[path]}): {sentence}" if path in variables else fault


def _unknown_variables(env: Mapping[str, str]) -> Iterator[str]:
    known = {option.variable for option in options().values()}
    for variable in sorted(env):
        if variable.startswith(PREFIX) and variable not in known:
            path = variable.removeprefix(PREFIX).lower().replace("__", ".")
            near = nearest_option(path)
            yield f"{variable}: not an option, ignored" + did_you_mean(options()[near].variable if near else None)
