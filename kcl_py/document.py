"""A YAML file as plain values: mappings, lists, text and None.

No type is made of what stands there, and no tag is obeyed. Whatever the file is (a device, a pipe, a bomb of aliases),
reading it ends soon: size, depth and number of values are bounded.
"""

import os
from typing import Any

import yaml

from kcl_py.errors import ConfigError

NULLS = ("", "~", "null", "Null", "NULL")
"""Unquoted, these are None. Source: YAML 1.1, null."""
MOST_BYTES = 65_536
"""Of a file. All options with a comment each take a fifth of it."""
MOST_VALUES = 1000
"""Mappings, lists and scalars, counted again wherever an alias repeats them."""
MOST_LEVELS = 20
"""Of values in each other; those of a configuration lie 4 deep."""
_TOO_DEEP = f"expected at most {MOST_LEVELS} levels of values in each other, found more"


def read_document(where: str) -> tuple[Any, list[str]]:
    """Return the values, None for an empty file, and a fault for each key that cannot be used: the others go on.

    Raises:
        ConfigError: the file cannot be read, is not YAML, or is beyond a bound.
    """
    document = _Document()
    try:
        node = yaml.compose(_text(where), Loader=yaml.BaseLoader)
        values = document.plain(node) if node else None
    except OSError as error:
        raise ConfigError(f"{where}: expected a readable file, found: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: expected UTF-8 text, found byte {error.object[error.start]:#04x}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{where}: expected YAML, found a mistake: {_syntax(error)}") from None
    except RecursionError:
        raise ConfigError(f"{where}: {_TOO_DEEP}") from None
    except ValueError as error:  # a name that no file can have
        raise ConfigError(f"{where}: expected a readable file, found: {error}") from None
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    return values, document.faults


def _text(where: str) -> str:
    """Read the file, of a pipe what its writer sends; where there is none, that is nothing."""
    with open(where, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:
        os.set_blocking(file.fileno(), True)
        found = file.read(MOST_BYTES + 1)
    if len(found) > MOST_BYTES:
        raise ConfigError(f"expected a file of at most {MOST_BYTES} bytes, found more")
    return found.decode("utf-8-sig")


class _Document:
    """One walk over a document. Raises ``ConfigError`` beyond a bound."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._values = 0

    def plain(self, node: yaml.Node, path: str = "", above: tuple[yaml.Node, ...] = ()) -> Any:
        self._values += 1
        if any(node is outer for outer in above):
            raise ConfigError("expected YAML, found a value that contains itself")
        if len(above) >= MOST_LEVELS:
            raise ConfigError(_TOO_DEEP)
        if self._values > MOST_VALUES:
            raise ConfigError(f"expected at most {MOST_VALUES} values, found more, with those that aliases repeat")
        above = (*above, node)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, above)
        if isinstance(node, yaml.SequenceNode):
            return [self.plain(item, path, above) for item in node.value]
        is_plain = getattr(node, "style", None) is None
        return None if is_plain and node.value in NULLS else node.value

    def _mapping(self, node: yaml.MappingNode, path: str, above: tuple[yaml.Node, ...]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.faults.append(
                    f"{path}: ".removeprefix(": ") + f"expected keys that are text, found another on line {line}"
                )
                continue
            inner = f"{path}.{key_node.value}".lstrip(".")
            if key_node.value in values:
                self.faults.append(f"{inner}: expected the key once, found it again on line {line}")
            values[key_node.value] = self.plain(value_node, inner, above)
        return values


def _syntax(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.reader.ReaderError):
        return f"the character {chr(error.character)!r}"
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "unreadable"
    return f"{problem.removeprefix('but found ')} (line {mark.line + 1}, column {mark.column + 1})" if mark else problem
