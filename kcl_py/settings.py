"""Where a configuration comes from: a YAML file and ``KCL_…`` variables over it.

YAML scalars are taken as text and converted by ``Config``: YAML itself would turn a time into a datetime and
``app: 123`` into a number. A plain ``null`` or an empty value counts as if the key were not there.
"""

import os
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from kcl_py.document import NULLS, read_document
from kcl_py.errors import ConfigError
from kcl_py.faults import describe, did_you_mean, nearest_option
from kcl_py.options import PREFIX, options
from kcl_py.regions import region_warnings

if TYPE_CHECKING:
    from kcl_py.config import Config

_C = TypeVar("_C", bound="Config")


def load(cls: type[_C], path: str | os.PathLike[str], env: Mapping[str, str] | None) -> _C:
    """Build the configuration, or raise ``ConfigError`` with all faults; see ``Config.load``."""
    where = os.fspath(path)
    env = os.environ if env is None else env
    values, faults = read(where, env)
    for warning in _unknown_variables(env):
        warnings.warn(warning, stacklevel=3)
    config: _C | None = None
    try:
        config = cls(**_without_nulls(values))
    except ConfigError as error:
        faults += [_with_variable(fault, env) for fault in error.faults]
    if faults or config is None:
        raise ConfigError(*(f"{where}: {fault}" for fault in faults))
    for warning in region_warnings(config, env):
        warnings.warn(warning, stacklevel=3)
    return config


def read(where: str, env: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Read the file, and ``env`` over it: nested mappings of text and None, and a fault for each key that is wrong.

    Raises:
        ConfigError: the file cannot be read, or is not a YAML mapping.
    """
    values, faults = read_document(where)
    if not isinstance(values, dict):
        raise ConfigError(f"{where}: expected a mapping of options, found {describe(values)}")
    for option in options().values():
        if option.variable in env:
            _put(values, option.path.split("."), env[option.variable])
    return values, faults


def _put(values: dict[str, Any], keys: list[str], value: str) -> None:
    for key in keys[:-1]:
        if not isinstance(values.get(key), dict):
            values[key] = {}
        values = values[key]
    values[keys[-1]] = None if value in NULLS else value


def _without_nulls(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    return {
        key: _without_nulls(value, f"{prefix}{key}.") if isinstance(value, dict) else value
        for key, value in values.items()
        if value is not None or prefix + key not in options()
    }


def _with_variable(fault: str, env: Mapping[str, str]) -> str:
    path, _, sentence = fault.partition(": ")
    option = options().get(path)
    return f"{path} (from {option.variable}): {sentence}" if option and option.variable in env else fault


def _unknown_variables(env: Mapping[str, str]) -> Iterator[str]:
    known = {option.variable for option in options().values()}
    for variable in sorted(env):
        if variable.startswith(PREFIX) and variable not in known:
            path = variable.removeprefix(PREFIX).lower().replace("__", ".")
            near = nearest_option(path)
            yield f"{variable}: not an option, ignored" + did_you_mean(options()[near].variable if near else None)
